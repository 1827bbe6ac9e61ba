"""Means, interquartile means and bootstrap intervals of a few scores.

A few runs are weak evidence, so each number comes with an interval. Intervals are percentile bootstrap intervals, and
*stratified*: with several groups of runs, each group is resampled from its own runs only and keeps its size (Agarwal et
al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice"). The resampling has a fixed seed, so
equal scores give equal intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clipup.errors import InvalidArgument

Scores = NDArray[np.float64]
Statistic = Callable[..., Scores]
"""Takes one array (resamples, runs) per group; returns one value per resample."""

RESAMPLES = 10_000


@dataclass(frozen=True)
class Interval:
    """A range that holds the true value with probability `confidence`."""

    low: float
    high: float
    confidence: float

    def holds(self, value: float) -> bool:
        """Return whether `value` lies inside."""
        return self.low <= value <= self.high


@dataclass(frozen=True)
class GroupSummary:
    """Statistics of a group of scores."""

    count: int
    mean: float
    stdev: float
    """With n - 1 in the denominator; nan for a single score."""
    median: float
    interquartile_mean: float
    interval: Interval
    """The interval of the interquartile mean."""
    mean_interval: Interval
    low: float
    high: float

    @property
    def standard_error(self) -> float:
        """The standard error of the mean."""
        return self.stdev / math.sqrt(self.count)


def mean(scores: Scores) -> Scores:
    """Return the mean along the last axis."""
    return np.asarray(scores.mean(axis=-1))


def interquartile_mean(scores: ArrayLike) -> Scores:
    """Return the mean of the middle half along the last axis.

    An outlier does not move it, and it uses more of the scores than a median. If a quarter of the count is not a whole
    number, the scores at the edges count in part.

    >>> float(interquartile_mean([0.0, 1.0, 2.0, 100.0])), float(interquartile_mean([7.0]))
    (1.5, 7.0)
    """
    ordered = np.sort(np.asarray(scores, dtype=np.float64), axis=-1)
    count = ordered.shape[-1]
    edges: Scores = np.linspace(0.0, 1.0, count + 1)
    weights = np.clip(np.minimum(edges[1:], 0.75) - np.maximum(edges[:-1], 0.25), 0.0, None)
    # A score of weight zero is left out, not multiplied: an infinite one would make the mean nan.
    inside = weights > 0.0
    return np.asarray(ordered[..., inside] @ weights[inside] / weights.sum())


def bootstrap_interval(
    groups: Sequence[ArrayLike],
    statistic: Statistic,
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Return the percentile interval of `statistic`, each group resampled from its own scores.

    `statistic` takes as many arrays as there are groups, each of shape (resamples, scores of the group).
    """
    if not 0.0 < confidence < 1.0:
        raise InvalidArgument(f"confidence must lie between 0 and 1, got {confidence}")
    generator = np.random.Generator(np.random.Philox(seed))
    drawn: list[Scores] = []
    for group in groups:
        scores = np.asarray(group, dtype=np.float64)
        if scores.ndim != 1 or scores.size == 0:
            raise InvalidArgument(f"a group of scores must be one list of at least one, got shape {scores.shape}")
        drawn.append(scores[generator.integers(scores.size, size=(resamples, scores.size))])
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(statistic(*drawn), [tail, 1.0 - tail])
    return Interval(float(low), float(high), confidence)


def summarize_group(scores: ArrayLike, *, confidence: float = 0.95) -> GroupSummary:
    """Return everything that is reported about a group of scores."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise InvalidArgument(f"scores must be one list of at least one, got shape {values.shape}")
    return GroupSummary(
        count=values.size,
        mean=float(values.mean()),
        stdev=float(values.std(ddof=1)) if values.size > 1 else math.nan,
        median=float(np.median(values)),
        interquartile_mean=float(interquartile_mean(values)),
        interval=bootstrap_interval([values], interquartile_mean, confidence=confidence),
        mean_interval=bootstrap_interval([values], mean, confidence=confidence),
        low=float(values.min()),
        high=float(values.max()),
    )


def difference(first: ArrayLike, second: ArrayLike, *, confidence: float = 0.9) -> tuple[float, Interval]:
    """Return by how much the mean of `second` exceeds that of `first`, with its stratified interval."""

    return _compared(first, second, lambda low, high: mean(high) - mean(low), confidence)


def percent_reduction(before: ArrayLike, after: ArrayLike, *, confidence: float = 0.9) -> tuple[float, Interval]:
    """Return by how many percent the mean of `after` lies below that of `before`, with its stratified interval."""

    return _compared(before, after, lambda first, second: 100.0 * (1.0 - mean(second) / mean(first)), confidence)


def _compared(
    one: ArrayLike, other: ArrayLike, statistic: Callable[[Scores, Scores], Scores], confidence: float
) -> tuple[float, Interval]:
    estimate = float(statistic(np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)))
    return estimate, bootstrap_interval([one, other], statistic, confidence=confidence)
