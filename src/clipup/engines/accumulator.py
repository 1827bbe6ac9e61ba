"""Sums the results of a rollout."""

from __future__ import annotations

import numpy as np

from clipup.engines.outcomes import Failure, Outcomes
from clipup.engines.task import Task
from clipup.policies.normalizer import Moments


class Accumulator:
    """Sums over each candidate's episodes, by row: the environment's own rewards (`totals`), and `steps`.

    `scored` is what the fitness counts; it is the same array as `totals` where that is the environment's own reward.
    `broken` marks rows with a number that was not finite, `endless` those with an episode that had to be stopped
    because nothing limits it. `moments` are those of the observations, where they are collected.
    """

    def __init__(self, rows: int, observation_size: int, *, collect_moments: bool, own_score: bool = False) -> None:
        self.totals = np.full(rows, np.nan)
        self.scored = np.zeros(rows) if own_score else self.totals
        self.steps = np.zeros(rows, np.int64)
        self.broken = np.zeros(rows, np.bool_)
        self.endless = np.zeros(rows, np.bool_)
        self.moments = Moments.zeros(rows, observation_size) if collect_moments else None

    def outcomes(self, task: Task, failures: tuple[Failure, ...] = ()) -> Outcomes:
        """Return means over the episodes, NaN where a number was not finite or an episode had no end."""
        broken = self.broken | self.endless | ~np.isfinite(self.totals) | ~np.isfinite(self.scored)
        fitness = task.fitness(self.scored, self.steps)
        fitness[broken] = np.nan
        returns = self.totals / task.episodes
        returns[broken] = np.nan
        if self.moments is not None and broken.any():
            self.moments.count[broken] = 0
            self.moments.mean[broken] = 0.0
            self.moments.m2[broken] = 0.0
        return Outcomes(fitness, returns, self.steps, self.moments, failures)
