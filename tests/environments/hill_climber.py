"""A tiny search besides PGPE, so that the `Search` protocol has two implementations from the first day.

It samples normals about the best point so far, unmirrored and with a fixed standard deviation, and moves to a better
one when it finds it. It shows what a search of one's own needs: copy it to start a new one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from clipup.errors import InvalidArgument, StateMismatch
from clipup.optimizers.protocol import norm
from clipup.searches import Figures, checks, directions
from clipup.searches.population import PopulationSize
from clipup.searches.shaping import tied_share


@dataclass(frozen=True, eq=False)
class NormalBatch:
    seed: int
    generation: int
    start: int
    stop: int
    center: np.ndarray
    stdev: np.ndarray

    def __len__(self):
        return self.stop - self.start

    def candidates(self, start=None, stop=None):
        start, stop = self.start if start is None else start, self.stop if stop is None else stop
        if not self.start <= start <= stop <= self.stop:
            raise InvalidArgument(f"a range within {self.start}..{self.stop} is needed, got {start}..{stop}")
        return self.center + self.stdev * directions(self.seed, self.generation, start, stop, self.center.size)

    def until(self, stop):
        return replace(self, start=self.stop, stop=stop)

    def same_generation(self, other):
        return (
            isinstance(other, NormalBatch)
            and (self.seed, self.generation) == (other.seed, other.generation)
            and self.center.tobytes() == other.center.tobytes()
            and self.stdev.tobytes() == other.stdev.tobytes()
        )


class HillClimber:
    kind: ClassVar[str] = "hill-climber"

    def __init__(self, center, stdev, population_size=8, interactions=None, population_max=None, seed=0):
        self._center = checks.initial_center(None, center)
        self._stdev = checks.initial_stdev(self._center.size, None, stdev, None)
        self._size = PopulationSize.of(self._center.size, population_size, interactions, population_max)
        self._wholes = dict.fromkeys(("generation", "asked", "interactions_done", "population", "nonfinite"), 0)
        self._wholes |= {"seed": seed, "population": self._size.batch}
        self._numbers = {"best": -np.inf, "speed": 0.0, "tied": 0.0}
        self._fitnesses = np.empty(0)

    @property
    def dimension(self):
        return self._center.size

    @property
    def seed(self):
        return self._wholes["seed"]

    @property
    def generation(self):
        return self._wholes["generation"]

    @property
    def center(self):
        return self._center.copy()

    def _next_batch(self):
        start = self._fitnesses.size
        return NormalBatch(
            self.seed, self.generation, start, self._size.stop(start), self.center, self._stdev.copy()
        )  # fmt: skip

    def batch(self):
        batch = self._next_batch()
        self._wholes["asked"] = len(batch)
        return batch

    def following(self):
        batch = self._next_batch()
        stop = self._size.stop(batch.stop)
        return batch.until(stop) if stop > batch.stop else None

    def ask(self):
        return self.batch().candidates()

    def tell(self, fitnesses, interactions=None, *, sum_blocks=None):
        told = checks.check_told(fitnesses, self._wholes["asked"])
        done = self._wholes["interactions_done"] + self._size.count(interactions, told.size)
        told = np.concatenate([self._fitnesses, told])
        if self._size.grows(told.size, done):
            self._fitnesses = told
            self._wholes |= {"asked": 0, "interactions_done": done}
            return False
        finite = np.isfinite(told)
        usable = np.where(finite, told, -np.inf)
        leader = int(np.argmax(usable))
        center = self._center
        if usable[leader] > self._numbers["best"]:
            center = replace(self._next_batch(), start=0, stop=told.size).candidates(leader, leader + 1)[0]
        checks.check_reach(center, self._stdev, self.generation)
        self._numbers = {
            "best": max(self._numbers["best"], float(usable[leader])),
            "speed": norm(center.astype(np.float64) - self._center),
            "tied": tied_share(told),
        }
        self._wholes |= {"asked": 0, "interactions_done": 0, "generation": self.generation + 1}
        self._wholes |= {"population": told.size, "nonfinite": int(np.count_nonzero(~finite))}
        self._center, self._fitnesses = center, np.empty(0)
        return True

    def figures(self):
        return Figures(
            population=self._wholes["population"], speed=self._numbers["speed"], max_speed=None, clipped=False,
            stdev_norm=norm(self._stdev.astype(np.float64)), gradient_norm=None, gradient_agreement=None,
            nonfinite=self._wholes["nonfinite"], tied=self._numbers["tied"],
        )  # fmt: skip

    def settings(self):
        return {"population_size": self._size.batch, "radius": norm(self._stdev.astype(np.float64))}

    def state_dict(self):
        arrays = {"center": self._center.copy(), "fitnesses": self._fitnesses.copy()}
        return {"kind": self.kind, **self._wholes, **self._numbers, **arrays}

    def load_state_dict(self, state):
        state = checks.plain_state(self.kind, state)
        center = checks.state_array(state, "center", np.float32, self.dimension)
        if not np.isfinite(center).all():
            raise StateMismatch("the saved center must be finite")
        fitnesses = checks.state_array(state, "fitnesses", np.float64, None)
        wholes = {key: checks.state_whole(state, key) for key in self._wholes}
        numbers = {key: checks.state_number(state, key) for key in self._numbers}
        self._size.check_progress(fitnesses.size, wholes["asked"])
        self._center, self._fitnesses, self._wholes, self._numbers = center, fitnesses, wholes, numbers
