"""The columns of a run's records, and the few statistics that the rules need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clipup.diagnosis.scale import is_scale_free
from clipup.runs.config import RunConfig
from clipup.runs.records import Record

Column = NDArray[np.float64]

# Fewer generations say little: with momentum 0.9, the velocity needs about 10 to forget its start.
ENOUGH = 15


@dataclass(frozen=True, eq=False)
class Trace:
    """Records as columns, with the configuration if it could be read. Missing numbers are nan."""

    records: Sequence[Record]
    config: RunConfig | None
    actions: str = ""
    """The kind of the actions, such as "discrete" or "box"; empty where it is not known."""

    def __len__(self) -> int:
        return len(self.records)

    def column(self, name: str) -> Column:
        """One field of all records."""
        values = [getattr(record, name) for record in self.records]
        return np.array([math.nan if value is None else float(value) for value in values])

    @property
    def max_speed(self) -> float | None:
        """The cap on the speed; None for an optimizer without one."""
        return self.records[-1].max_speed

    @property
    def is_scale_free(self) -> bool:
        """Whether every `max_speed` gives the same run."""
        return is_scale_free(self.config, self.actions)

    @property
    def step_size(self) -> float | None:
        """α, from the configuration or from the first step, which has this length; None if unknown."""
        if self.config is not None and self.config.step_size is not None:
            return self.config.step_size
        if self.config is not None:
            return self.config.step_ratio * self.config.max_speed
        first = self.records[0]
        return first.speed if first.generation == 1 and first.speed > 0 else None

    @property
    def momentum(self) -> float:
        """The momentum; the default where it is unknown."""
        return default("momentum") if self.config is None else self.config.momentum

    @property
    def is_complete(self) -> bool:
        """Whether the run made at least 90 % of the generations that it was meant to make."""
        if self.config is None or self.config.generations is None:
            return True
        return self.records[-1].generation >= 0.9 * self.config.generations

    def scores(self) -> Column:
        """The center's scores in order; if it was evaluated fewer than 6 times, the mean fitness instead."""
        scores = self.column("score")
        scores = scores[np.isfinite(scores)]
        if scores.size >= 6:
            return scores
        fitness = self.column("fitness_mean")
        return fitness[np.isfinite(fitness)]

    def score_noise(self) -> float:
        """The error of a score: the median standard error of the evaluations."""
        errors = self.column("score_standard_error")
        errors = errors[np.isfinite(errors)]
        return float(np.median(errors)) if errors.size else 0.0


def default(name: str) -> float:
    """The default of a numeric setting, for runs whose configuration is unknown."""
    return float(getattr(RunConfig, name))


def thirds(values: Column) -> list[Column]:
    """The first, middle and last third of a column."""
    return list(np.array_split(values, 3))


def significance(values: Column) -> float:
    """How many standard errors the mean lies above zero (Student's t).

    The cosine of two random directions is symmetric about zero in any dimension. Its spread, 1/sqrt(dimension), shows
    in the sample itself, so the test does not need to know the dimension.
    """
    values = values[np.isfinite(values)]
    if values.size < 3:
        return math.nan
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    mean = float(values.mean())
    return mean / error if error > 0 else math.copysign(math.inf, mean) if mean else 0.0


def mean_of(values: Column) -> float:
    """The mean of the finite values; nan if there are none."""
    values = values[np.isfinite(values)]
    return float(values.mean()) if values.size else math.nan
