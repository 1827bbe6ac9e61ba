"""Observation statistics: collected per candidate in float64, merged in candidate order, frozen in between.

Exactly those observations count that a policy acted on, so their number equals the number of interactions. No policy
acts on the observation that ends an episode, so that one does not count.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from clipup.errors import InvalidArgument, StateMismatch

VARIANCE_FLOOR = 1e-2
"""Smallest variance used, as in the reference implementation: it keeps features that hardly vary from growing."""

LARGEST = 1e280
"""Candidates whose sum of squares reaches this are left out: merging more of them could overflow."""


@dataclass(frozen=True)
class Moments:
    """Count, mean and sum of squared deviations of each candidate's observations.

    Attributes
    ----------
    count
        (n,) int64.
    mean, m2
        (n, observation_size) float64; ``m2 / count`` is the (population) variance.
    """

    count: NDArray[np.int64]
    mean: NDArray[np.float64]
    m2: NDArray[np.float64]

    @classmethod
    def zeros(cls, rows: int, size: int) -> Moments:
        """Return the moments of `rows` candidates that saw nothing."""
        return cls(np.zeros(rows, np.int64), np.zeros((rows, size)), np.zeros((rows, size)))

    @classmethod
    def of(cls, observations: NDArray[np.floating]) -> Moments:
        """Return the moments of one candidate's observations (steps, observation_size), by two passes."""
        values = observations.astype(np.float64)
        if not len(values):
            return cls.zeros(1, values.shape[1])
        mean = values.mean(axis=0)
        m2 = np.square(values - mean).sum(axis=0)
        return cls(np.array([len(values)], np.int64), mean[np.newaxis], m2[np.newaxis])

    @classmethod
    def concatenate(cls, parts: Sequence[Moments]) -> Moments:
        """Return the candidates of all parts, in order."""
        return cls(
            np.concatenate([part.count for part in parts]),
            np.concatenate([part.mean for part in parts]),
            np.concatenate([part.m2 for part in parts]),
        )


@dataclass(frozen=True)
class Statistics:
    """Mean and standard deviation of observations, frozen while a generation runs.

    Attributes
    ----------
    mean, stdev
        (observation_size,) float64, `stdev` positive.
    """

    mean: NDArray[np.float64]
    stdev: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.mean.shape != self.stdev.shape or self.mean.ndim != 1:
            raise InvalidArgument(
                f"mean and stdev must be vectors of one length, got {self.mean.shape} and {self.stdev.shape}"
            )
        if not (np.isfinite(self.mean).all() and np.isfinite(self.stdev).all() and (self.stdev > 0).all()):
            raise InvalidArgument("mean must be finite, and stdev finite and positive")

    @cached_property
    def scale(self) -> NDArray[np.float64]:
        """One over the standard deviation."""
        return 1.0 / self.stdev

    def normalize(self, observations: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return (observations - mean) / stdev as float32, for observations (n, observation_size)."""
        values = np.subtract(observations, self.mean, dtype=np.float64)
        values *= self.scale
        return values.astype(np.float32)


class Normalizer:
    """The running statistics of all observations of a run.

    Merging uses the pairwise update of Chan, Golub and LeVeque (1979): with ``d = mean_b - mean_a`` and
    ``n = n_a + n_b``, ``mean = mean_a + d n_b / n`` and ``m2 = m2_a + m2_b + d² n_a n_b / n``. Candidates are merged
    one by one, so the result depends only on their order, not on how calls group them.

    Parameters
    ----------
    size
        Length of an observation.

    Examples
    --------
    >>> normalizer = Normalizer(1)
    >>> normalizer.statistics() is None
    True
    >>> normalizer.merge(Moments.of(np.array([[1.0], [3.0]])))
    >>> normalizer.statistics()
    Statistics(mean=array([2.]), stdev=array([1.]))
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.count = 0
        self._mean = np.zeros(size)
        self._m2 = np.zeros(size)

    def merge(self, moments: Moments) -> None:
        """Add the moments of candidates, in candidate order; candidates that saw nothing are skipped.

        Candidates that saw numbers whose squares exceed float64 are skipped too: one broken simulation must not end a
        run.
        """
        if moments.mean.shape != (len(moments.count), self.size):
            raise InvalidArgument(
                f"moments must be of observations of size {self.size}, got mean of shape {moments.mean.shape}"
            )
        mean, m2, total = self._mean.copy(), self._m2.copy(), self.count
        usable = (moments.count > 0) & (moments.m2 < LARGEST).all(axis=1)
        usable &= (np.abs(moments.mean) < math.sqrt(LARGEST)).all(axis=1)
        for row in np.flatnonzero(usable).tolist():
            count = int(moments.count[row])
            before, total = total, total + count
            delta = moments.mean[row] - mean
            mean += delta * (count / total)
            m2 += moments.m2[row]
            delta *= delta
            delta *= before * (count / total)
            m2 += delta
        self._mean, self._m2, self.count = mean, m2, total

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean of all observations so far."""
        return self._mean.copy()

    @property
    def variance(self) -> NDArray[np.float64]:
        """Population variance of all observations so far, before the floor."""
        return self._m2 / max(self.count, 1)

    def moments(self) -> Moments:
        """Return all observations so far as the moments of one candidate."""
        return Moments(np.array([self.count], np.int64), self.mean[np.newaxis], self._m2[np.newaxis].copy())

    def statistics(self) -> Statistics | None:
        """Return the statistics for a generation; None (change nothing) before anything was seen."""
        if not self.count:
            return None
        return Statistics(self.mean, np.sqrt(np.maximum(self.variance, VARIANCE_FLOOR)))

    def state_dict(self) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
        """Return the whole state as arrays."""
        return {"count": np.array(self.count, np.int64), "mean": self.mean, "m2": self._m2.copy()}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Restore what `state_dict` returned."""
        missing = {"count", "mean", "m2"} - set(state)
        if missing:
            raise StateMismatch(f"a normalizer's state needs count, mean and m2; missing: {', '.join(sorted(missing))}")
        try:
            mean = np.array(state["mean"], dtype=np.float64)
            m2 = np.array(state["m2"], dtype=np.float64)
            count = operator.index(np.array(state["count"]).item())
        except (TypeError, ValueError, OverflowError) as error:
            raise StateMismatch(f"a normalizer's state must be numbers, its count a whole one: {error}") from error
        if mean.shape != (self.size,) or m2.shape != (self.size,):
            raise StateMismatch(f"a normalizer of size {self.size} got mean {mean.shape} and m2 {m2.shape}")
        if count < 0 or not (np.isfinite(mean).all() and np.isfinite(m2).all() and (m2 >= 0).all()):
            raise StateMismatch("a normalizer's state must be finite, its count and m2 not negative")
        self._mean, self._m2, self.count = mean, m2, count
