"""The hot loop: all candidates step in lockstep, and no Python runs for a single one of them.

Rows that are still running are kept as a prefix of every array, so that each round works on views. When a row ends, the
last running row moves into its place. Rows are independent, so their order has no effect on any result. Rows that are
about to be reset (for a further episode, or the next candidate of that lane) come last within the prefix::

    0 ………… acting ………… live ………… capacity
      act     │  reset at the next send │ free
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clipup.engines.accumulator import Accumulator
from clipup.engines.envpool.pool import Pool
from clipup.policies.act import Actor
from clipup.policies.compiled import observe_rows

ROW, STARTED, EPISODE, STEPS, BROKEN, ENDLESS = range(6)
"""Columns of whole numbers about each row: its candidate, the round of its last reset, the episodes and steps that it
has completed, how often a number was not finite, and how many endless episodes were stopped."""


class Lockstep:
    """Runs candidates in some of the environments of one pool.

    Parameters
    ----------
    pool, slots
        The pool, and which of its environments are used: one per row. They are reset first.
    rows
        The first candidate (row of `parameters`) of each environment.
    stride
        The next candidate in the environment of row r is row ``r + stride``, up to the last row. 0: there is no next.
    actor, parameters
        The policies: how they act, and one candidate's parameters per row, as ``actor.arrange`` returns them.
    accumulator
        Takes the results.
    keep_pool
        Whether the pool stays open afterwards.
    """

    def __init__(
        self,
        pool: Pool,
        slots: NDArray[np.int32],
        rows: NDArray[np.int64],
        stride: int,
        actor: Actor,
        parameters: NDArray[np.float32],
        accumulator: Accumulator,
        *,
        keep_pool: bool = True,
    ) -> None:
        capacity, size = len(slots), pool.layout.observation_size
        self._pool = pool
        self._keep_pool = keep_pool
        self._parameters = parameters
        self._act_without_nan = actor.act_without_nan
        self._accumulator = accumulator
        self._episodes = pool.layout.task.episodes
        self._stride = stride
        self._where = (pool.layout.reward_index, pool.layout.done_index)
        self._observed = pool.layout.observed

        self._live, self._acting = capacity, 0  # all are reset first, and none acts
        self._round = 0
        self._slot = slots.copy()
        self._weights = parameters[rows]
        self._total = np.zeros(capacity)
        self._facts = np.zeros((capacity, 6), np.int64)
        self._facts[:, ROW] = rows
        # Everything that belongs to a row and moves with it.
        self._columns: list[NDArray[Any]] = [self._facts, self._slot, self._weights, self._total]
        self._collect = accumulator.moments is not None
        if self._collect:
            self._count = np.zeros((capacity, 1))
            self._mean = np.zeros((capacity, size))
            self._m2 = np.zeros((capacity, size))
            self._columns += [self._count, self._mean, self._m2]
        self._state = actor.initial_state(capacity) if actor.state_size else None
        if self._state is not None:
            self._columns.append(self._state)
        pool.reset(self._slot)

    def advance(self) -> bool:
        """Receive the states of one round, act on them, and send the actions; return whether any row still runs."""
        states = self._pool.receive()
        where = self._where
        observations, reward, done = self._observed(states), states[where[0]], states[where[1]]
        if self._acting < self._live:
            # Those rows were reset, not stepped. Some tasks (dm_control's) do not write a reward when they are reset.
            reward[self._acting :] = 0.0
        self._total[: self._live] += reward
        self._acting = self._live
        if b"\x01" in done.tobytes():  # ten times faster than `any`, and this runs at every round
            observations = self._retire(np.flatnonzero(done), observations)
            if not self._live:
                return False
        self._round += 1
        self._act(observations[: self._acting])
        return True

    def close(self) -> None:
        """Free the pool, unless it is to stay open."""
        if not self._keep_pool:
            self._pool.close()

    def _act(self, observations: NDArray[np.floating]) -> None:
        acting, live = self._acting, self._live
        state = None if self._state is None else self._state[:acting]
        actions, broken = self._act_without_nan(self._weights[:acting], observations, state)
        if broken is not None:
            self._facts[:acting, BROKEN] += broken
        if acting < live:
            ignored = np.zeros((live - acting, *actions.shape[1:]), actions.dtype)
            actions = np.concatenate([actions, ignored])
        self._pool.send(self._slot[:live], actions)
        # The environments are stepping now; meanwhile this does what the next action does not need.
        flat = observations.ravel()
        # A finite sum proves all finite; it is the cheapest such test.
        if not math.isfinite(np.add.reduce(flat)):
            self._facts[:acting, BROKEN] += ~np.isfinite(observations).all(axis=1)
        if self._collect:
            self._observe(observations)

    def _observe(self, observations: NDArray[np.floating]) -> None:
        acting = self._acting
        count = self._count[:acting]
        count += 1.0
        observe_rows(observations, count, self._mean[:acting], self._m2[:acting])

    def _retire(self, finished: NDArray[np.int64], observations: NDArray[Any]) -> NDArray[Any]:
        """End the episodes of the rows `finished`; return the observations of those that act next, in order."""
        facts = self._facts
        steps = self._round - facts[finished, STARTED]
        facts[finished, STEPS] += steps
        if self._pool.layout.endless:
            facts[finished, ENDLESS] += steps >= self._pool.layout.step_limit
        again = self._continue(finished) if self._episodes > 1 or self._stride else None
        if again is None:
            self._record(finished)
            saved = None
        else:
            saved = [column[again] for column in self._columns]
        acting = self._live - len(finished)
        self._close_up(finished, acting, observations)
        self._live = self._acting = acting
        if saved is not None and again is not None:
            self._live += len(again)
            for column, values in zip(self._columns, saved, strict=True):
                column[acting : self._live] = values
            if self._state is not None:
                self._state[acting : self._live] = 0.0  # an episode starts
        return observations

    def _continue(self, finished: NDArray[np.int64]) -> NDArray[np.int64]:
        """Record the candidates that are complete; return the rows that go on with an episode or a candidate."""
        facts = self._facts
        facts[finished, EPISODE] += 1
        complete = facts[finished, EPISODE] == self._episodes
        again, finished = finished[~complete], finished[complete]
        self._record(finished)
        if self._stride:
            following = facts[finished, ROW] + self._stride
            refill = following < len(self._parameters)
            places, rows = finished[refill], following[refill]
            facts[places] = 0
            facts[places, ROW] = rows
            self._weights[places] = self._parameters[rows]
            for column in self._columns[3:]:  # sums
                column[places] = 0.0
            again = np.concatenate([again, places])
        facts[again, STARTED] = self._round + 1
        self._pool.resets[self._slot[again]] += 1
        return again

    def _record(self, finished: NDArray[np.int64]) -> None:
        facts = self._facts[finished]
        rows = facts[:, ROW]
        accumulator = self._accumulator
        accumulator.totals[rows] = self._total[finished]
        accumulator.steps[rows] = facts[:, STEPS]
        accumulator.broken[rows] = facts[:, BROKEN] > 0
        accumulator.endless[rows] = facts[:, ENDLESS] > 0
        if accumulator.moments is not None:
            accumulator.moments.count[rows] = self._count[finished, 0].astype(np.int64)
            accumulator.moments.mean[rows] = self._mean[finished]
            accumulator.moments.m2[rows] = self._m2[finished]

    def _close_up(self, leaving: NDArray[np.int64], keep: int, observations: NDArray[Any]) -> None:
        """Move the rows from `keep` on that stay into the places, before `keep`, of the rows `leaving`."""
        holes = leaving[leaving < keep]
        if not len(holes):
            return
        staying = np.ones(self._live - keep, np.bool_)
        staying[leaving[len(holes) :] - keep] = False
        movers = np.flatnonzero(staying) + keep
        for column in self._columns:
            column[holes] = column[movers]
        observations[holes] = observations[movers]
