"""Numbers that say something about a handful of returns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clipup.errors import InvalidArgument


@dataclass(frozen=True)
class Summary:
    """Statistics of the returns of some episodes."""

    episodes: int
    mean: float
    median: float
    min: float
    max: float
    standard_deviation: float
    """Of a single episode (n - 1 in the denominator); nan for one episode."""
    standard_error: float
    """Of the mean; nan for one episode."""


def summarize(returns: ArrayLike) -> Summary:
    """Return the statistics of `returns`; with a non-finite return among them, all are nan.

    >>> summarize([1.0, 2.0, 3.0, 6.0]).mean
    3.0
    """
    values = _values(returns)
    if not np.isfinite(values).all():
        return Summary(values.size, *([math.nan] * 6))
    deviation = float(values.std(ddof=1)) if values.size > 1 else math.nan
    return Summary(
        episodes=values.size,
        mean=float(values.mean()),
        median=float(np.median(values)),
        min=float(values.min()),
        max=float(values.max()),
        standard_deviation=deviation,
        standard_error=deviation / math.sqrt(values.size),
    )


def _values(values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise InvalidArgument(f"a list of at least one number is needed, got shape {array.shape}")
    return array
