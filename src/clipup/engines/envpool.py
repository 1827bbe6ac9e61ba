"""The EnvPool engine: whole populations through C++ simulators.

EnvPool seeds an environment only when its pool is made, so each candidate's random numbers must be arranged for.
Candidate *i* belongs to lane ``i % lanes``; there are two ways to give it its own random numbers:

**Fresh** (any task). Each candidate gets an environment made for it, seeded by (seed, generation, candidate), and pools
are made of up to `lanes` of them. Right where making is cheap (15 µs for LunarLander).

**Replayable** (the MuJoCo tasks of Gymnasium, where making takes 2 ms and a reset 0.03 ms). They draw random numbers
when reset and at no other time, so the start of an episode depends on the environment's seed and on how often it was
reset: never on what happened in between. Lanes are reused, and a candidate's place is a number of resets:

- the first candidate of each lane (``i < lanes``) starts from the lane's *home* pool, which lasts `HOME_GENERATIONS`
  generations; generation g takes the resets from ``(g % HOME_GENERATIONS) * episodes`` on;
- candidates beyond (``i >= lanes``) start from the lane's *overflow* pool, made for that generation alone; they follow
  each other on their lane at once, from reset ``(i // lanes - 1) * episodes`` on.

A lane whose count is behind (some candidates are evaluated alone, a run is resumed) is reset until it is there; a lane
that is ahead gets a new pool. So the result of a candidate does not depend on what the engine did before.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from clipup.engines import blas
from clipup.engines.lanes import LanePools
from clipup.engines.ledger import Ledger
from clipup.engines.outcomes import Failure, Outcomes
from clipup.engines.pool import Pool, pool_layout
from clipup.engines.request import Request
from clipup.engines.seeding import Stream, int31, seed_indices, seed_words
from clipup.engines.task import Task
from clipup.engines.wave import Wave
from clipup.errors import InvalidArgument
from clipup.policies.actions import Actions
from clipup.policies.network import Network
from clipup.policies.normalizer import Statistics

HOME_GENERATIONS = 128
"""How many generations a home pool lasts: making it costs then under 1 % of even the shortest generations, and
catching up with the last of them (127 resets of each lane) about as much as making it."""

WAVES = 2
"""Pools that are stepped by turns: while one steps, the actions of the other are computed."""


class EnvPoolEngine:
    """Candidates in EnvPool; see `clipup.engines.engine.Engine` for the promises, `make_engine` for the arguments."""

    name = "envpool"

    def __init__(self, task: Task, *, lanes: int, threads: int, reason: str) -> None:
        if task.episode_seeds == "pair" and lanes % 2:
            raise InvalidArgument(f"lanes must be even where mirrored pairs share their seeds, got {lanes}")
        self.task = task
        self.lanes = lanes
        self.threads = threads
        self.reason = reason
        self._layout = pool_layout(task)
        if task.env_options:  # some are looked at only when an environment is made
            Pool(self._layout, np.zeros(1, np.int64), [0], 1).close()
        self._replay = self._layout.replayable and task.episode_seeds != "shared"
        self._home = LanePools(self._layout, threads, WAVES)
        self._overflow = LanePools(self._layout, threads, WAVES)

    @property
    def observation_size(self) -> int:
        """Length of an observation."""
        return self._layout.observation_size

    @property
    def actions(self) -> Actions:
        """How outputs become actions."""
        return self._layout.actions

    def evaluate(
        self,
        network: Network,
        parameters: NDArray[np.float32],
        *,
        seed: int,
        generation: int,
        first: int = 0,
        statistics: Statistics | None = None,
        collect_moments: bool = False,
        stream: Stream = "training",
    ) -> Outcomes:
        """Evaluate candidates ``first … first + n - 1`` of a generation; see `Engine.evaluate`."""
        request = Request(network, parameters, seed, generation, first, statistics, collect_moments, stream)
        request.check(self.observation_size, self.actions.size)
        ledger = Ledger(len(parameters), self.observation_size, collect_moments=collect_moments)
        if len(parameters):
            try:
                with blas.single_thread(), np.errstate(all="ignore"):
                    _run(self._waves(request, ledger))
            except BaseException:
                self.close()  # environments stopped midway are of no use to the next call
                raise
        message = f"no end after {self._layout.step_limit} steps; set max_episode_steps"
        return ledger.outcomes(
            episodes=self.task.episodes,
            reward_offset=self.task.reward_offset,
            failures=tuple(Failure(first + int(row), message) for row in np.flatnonzero(ledger.endless)),
        )

    def close(self) -> None:
        """Stop all threads and free all environments."""
        self._home.close()
        self._overflow.close()

    def _waves(self, request: Request, ledger: Ledger) -> Iterator[Wave]:
        if not self._replay:
            return self._fresh(request, ledger)
        return chain(self._at_home(request, ledger), self._in_overflow(request, ledger))

    def _wave(
        self, request: Request, ledger: Ledger, pool: Pool, slots: NDArray[np.int32], rows: NDArray[np.int64],
        *, stride: int = 0, keep_pool: bool = True,
    ) -> Wave:  # fmt: skip
        network, statistics = request.network, request.statistics
        return Wave(pool, slots, rows, stride, network, request.parameters, statistics, ledger, keep_pool=keep_pool)

    def _fresh(self, request: Request, ledger: Ledger) -> Iterator[Wave]:
        indices = request.indices
        size = max(1, min(-(-len(indices) // WAVES), self.lanes // WAVES))
        for start in range(0, len(indices), size):
            rows = np.arange(start, min(start + size, len(indices)))
            words = seed_words(
                request.seed, "candidate", epoch=request.generation, stream=request.stream,
                indices=seed_indices(indices[rows], self.task.episode_seeds),
            )  # fmt: skip
            pool = Pool(self._layout, rows, int31(words), self.threads)
            yield self._wave(request, ledger, pool, np.arange(len(rows), dtype=np.int32), rows, keep_pool=False)

    def _at_home(self, request: Request, ledger: Ledger) -> Iterator[Wave]:
        lanes = request.indices[request.indices < self.lanes]
        if not len(lanes):
            return
        epoch, place = divmod(request.generation, HOME_GENERATIONS)
        resets = np.full(len(lanes), place * self.task.episodes)

        def seeds(chosen: NDArray[np.int64]) -> list[int]:
            indices = seed_indices(chosen, self.task.episode_seeds)
            return int31(seed_words(request.seed, "home", epoch=epoch, stream=request.stream, indices=indices))

        for piece in self._home.take((request.seed, request.stream, epoch), seeds, lanes, resets):
            yield self._wave(request, ledger, piece.pool, piece.slots, piece.places)

    def _in_overflow(self, request: Request, ledger: Ledger) -> Iterator[Wave]:
        rows = np.flatnonzero(request.indices >= self.lanes)[: self.lanes]
        if not len(rows):
            return
        indices = request.indices[rows]
        rows = rows[np.argsort(indices % self.lanes)]
        ordinals, lanes = np.divmod(request.indices[rows], self.lanes)

        def seeds(chosen: NDArray[np.int64]) -> list[int]:
            indices = seed_indices(chosen, self.task.episode_seeds)
            words = seed_words(
                request.seed, "overflow", epoch=request.generation, stream=request.stream, indices=indices
            )
            return int31(words)

        page = (request.seed, request.stream, request.generation)
        for piece in self._overflow.take(page, seeds, lanes, (ordinals - 1) * self.task.episodes):
            yield self._wave(request, ledger, piece.pool, piece.slots, rows[piece.places], stride=self.lanes)


def _run(waves: Iterator[Wave]) -> None:
    """Advance up to `WAVES` waves by turns until all are done."""
    active: list[Wave] = []
    try:
        while True:
            while len(active) < WAVES and (wave := next(waves, None)) is not None:
                active.append(wave)
            if not active:
                return
            for wave in list(active):
                if not wave.advance():
                    active.remove(wave)
                    wave.close()
    finally:
        for wave in active:
            wave.close()
