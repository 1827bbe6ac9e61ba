"""Whole populations through EnvPool's C++ simulators.

EnvPool seeds an environment only when its pool is made. So there are two ways to give each candidate its own random
numbers. Candidate *i* belongs to lane ``i % lanes``.

**Fresh** (any task). Each candidate gets a new environment, seeded by (seed, generation, candidate); a pool holds up to
`lanes` of them. This fits tasks that are cheap to make (15 µs for LunarLander).

**Replayable** (the MuJoCo tasks of Gymnasium, where making takes 2 ms and a reset 0.03 ms). These tasks draw random
numbers when reset and at no other time. So the start of an episode depends on the environment's seed and on how often
it was reset, but not on what happened in between. Lanes are reused, and a candidate's place is a number of resets:

- the first candidate of each lane (``i < lanes``) starts from the lane's *home* pool, which lasts `HOME_GENERATIONS`
  generations; generation g takes the resets from ``(g % HOME_GENERATIONS) * episodes`` on;
- candidates beyond (``i >= lanes``) start from the lane's *overflow* pool, made for that generation alone; they follow
  each other on their lane without a pause, from reset ``(i // lanes - 1) * episodes`` on.

A lane that was reset too few times (after a resume, or when candidates are evaluated alone) is reset until the count is
right. A lane that was reset too often gets a new pool. So the result of a candidate does not depend on what the engine
did before.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from clipup.engines.accumulator import Accumulator
from clipup.engines.envpool import NAME
from clipup.engines.envpool.lanes import LanePools
from clipup.engines.envpool.lockstep import Lockstep
from clipup.engines.envpool.pool import Layout, Pool, pool_layout
from clipup.engines.inspection import LONGEST, SEEDS, STEPS, Inspection, compared, endless
from clipup.engines.outcomes import Failure, Outcomes
from clipup.engines.protocol import Engine, EngineDescription, library_version
from clipup.engines.rollout import Rollout, takes_rollout
from clipup.engines.seeding import Purpose, int31, seed_indices, seed_words
from clipup.engines.task import Task
from clipup.errors import InvalidArgument
from clipup.policies.act import Actor

HOME_GENERATIONS = 128
"""How many generations a home pool lasts. Making it then costs less than 1 % of even the shortest generations, and
resetting each lane up to the last of them (127 times) costs about as much as making it."""

PARTS = 2
"""How many pools are stepped in turns: while one steps, the actions of the other are computed."""

Part = tuple[Pool, NDArray[np.int32], NDArray[np.int64], int]
"""A pool, its environments to use, their first candidates, and the stride to the next: see `Lockstep`."""


class EnvPoolEngine(Engine):
    """Candidates in EnvPool; see `Engine` for the promises, `make_engine` for the arguments."""

    def __init__(self, task: Task, *, lanes: int, threads: int, reason: str) -> None:
        if task.episode_seeds == "pair" and lanes % 2:
            raise InvalidArgument(f"lanes must be even where mirrored pairs share their seeds, got {lanes}")
        self.task = task
        self.lanes = lanes
        self.threads = threads
        self._layout = pool_layout(task)
        self.description = describe(self._layout, reason)
        if task.env_options:  # EnvPool checks some of them only when it makes an environment
            Pool(self._layout, np.zeros(1, np.int64), [0], 1).close()
        self._replay = self._layout.replayable and task.episode_seeds != "shared"
        self._home = LanePools(self._layout, threads, PARTS)
        self._overflow = LanePools(self._layout, threads, PARTS)

    def inspect(self) -> Inspection:
        """Compare the starts of a few seeds in a pool of their own; see `Engine.inspect`."""
        layout = self._layout
        seeds = [*SEEDS, SEEDS[0]]
        pool = Pool(layout, np.arange(len(seeds)), seeds, self.threads)
        slots = np.arange(len(seeds), dtype=np.int32)
        still = self.actions.apply(np.zeros((len(seeds), self.actions.size), np.float32))
        found: list[list[NDArray[np.generic]]] = [[] for _ in seeds]
        try:
            pool.reset(slots)
            for step in range(LONGEST):
                states = pool.receive()
                observed = layout.observed(states)
                if step <= STEPS:
                    for slot, rows in enumerate(found):
                        rows.append(observed[slot].copy())
                        if step:  # the reward of a reset may be anything
                            rows.append(states[layout.reward_index][slot].copy())
                elif not layout.endless or states[layout.done_index].any():
                    break
                pool.send(slots, still)
            else:
                raise endless(self.task.label)
        finally:
            pool.close()
        return compared(self.task.label, found[:-1], found[-1])

    @takes_rollout
    def evaluate(self, rollout: Rollout) -> Outcomes:
        """Evaluate the candidates of `rollout`; see `Engine.evaluate`."""
        rollout.check(self.observation_size, self.actions.size)
        accumulator = Accumulator(
            len(rollout.parameters), self.observation_size, collect_moments=rollout.collect_moments
        )
        if len(rollout.parameters):
            try:
                with np.errstate(all="ignore"):
                    _run(self._parts(rollout, accumulator))
            except BaseException:
                self.close()  # environments that stopped midway are useless to the next call
                raise
        message = f"no end after {self._layout.step_limit} steps; set max_episode_steps"
        endless = np.flatnonzero(accumulator.endless)
        return accumulator.outcomes(self.task, tuple(Failure(rollout.first + int(row), message) for row in endless))

    def close(self) -> None:
        """Stop all threads and free all environments."""
        self._home.close()
        self._overflow.close()

    def _parts(self, rollout: Rollout, accumulator: Accumulator) -> Iterator[Lockstep]:
        """Yield the parts of the rollout, each made when it is about to run."""
        actor = Actor(rollout.network, rollout.statistics, self.actions)
        arranged = actor.arrange(rollout.parameters)
        ways = (self._at_home, self._in_overflow) if self._replay else (self._fresh,)
        for pool, slots, rows, stride in chain.from_iterable(way(rollout) for way in ways):
            yield Lockstep(pool, slots, rows, stride, actor, arranged, accumulator, keep_pool=self._replay)

    def _fresh(self, rollout: Rollout) -> Iterator[Part]:
        indices = rollout.indices
        size = max(1, min(-(-len(indices) // PARTS), self.lanes // PARTS))
        for start in range(0, len(indices), size):
            rows = np.arange(start, min(start + size, len(indices)))
            seeds = self._seeds(rollout, "candidate", rollout.generation, indices[rows])
            yield Pool(self._layout, rows, seeds, self.threads), np.arange(len(rows), dtype=np.int32), rows, 0

    def _at_home(self, rollout: Rollout) -> Iterator[Part]:
        lanes = rollout.indices[rollout.indices < self.lanes]
        if not len(lanes):
            return
        epoch, place = divmod(rollout.generation, HOME_GENERATIONS)
        resets = np.full(len(lanes), place * self.task.episodes)
        seed_lanes = partial(self._seeds, rollout, "home", epoch)
        for pool, slots, places in self._home.take((rollout.seed, rollout.stream, epoch), seed_lanes, lanes, resets):
            yield pool, slots, places, 0

    def _in_overflow(self, rollout: Rollout) -> Iterator[Part]:
        rows = np.flatnonzero(rollout.indices >= self.lanes)[: self.lanes]
        if not len(rows):
            return
        rows = rows[np.argsort(rollout.indices[rows] % self.lanes)]
        ordinals, lanes = np.divmod(rollout.indices[rows], self.lanes)
        resets = (ordinals - 1) * self.task.episodes
        seed_lanes = partial(self._seeds, rollout, "overflow", rollout.generation)
        page = (rollout.seed, rollout.stream, rollout.generation)
        for pool, slots, places in self._overflow.take(page, seed_lanes, lanes, resets):
            yield pool, slots, rows[places], self.lanes

    def _seeds(self, rollout: Rollout, purpose: Purpose, epoch: int, indices: NDArray[np.int64]) -> list[int]:
        shared = seed_indices(indices, self.task.episode_seeds)
        return int31(seed_words(rollout.seed, purpose, epoch=epoch, stream=rollout.stream, indices=shared))


def describe(layout: Layout, reason: str) -> EngineDescription:
    """Return what the engine says of itself for a task of that layout."""
    return EngineDescription(
        NAME,
        library_version("envpool"),
        reason,
        layout.observation_size,
        layout.actions,
        layout.own_limit,
        layout.solved_score,
        layout.observations,
    )


def _run(parts: Iterator[Lockstep]) -> None:
    """Advance up to `PARTS` parts in turns until all are done."""
    active: list[Lockstep] = []
    try:
        while True:
            while len(active) < PARTS and (part := next(parts, None)) is not None:
                active.append(part)
            if not active:
                return
            for part in list(active):
                if not part.advance():
                    active.remove(part)
                    part.close()
    finally:
        for part in active:
            part.close()
