"""Fitness shaping: from the fitnesses of the candidates to the weight of each direction in the gradient.

Pure functions. A shaping turns fitnesses into utilities. In mirrored pairs ``(f+, f-)`` stands at positions ``2i`` and
``2i + 1``. A direction's :class:`Weights` are its two factors in the paper's gradient formulas (Algorithm 1, lines 3
and 4; for the reward normalization: the appendix).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clipup.compilation.math import log_each
from clipup.errors import InvalidArgument, InvalidFitness
from clipup.optimizers.protocol import check_number

FitnessArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Weights:
    """One number per direction for the gradient of the center, and one for that of the stdev, if it has one."""

    center: FitnessArray
    stdev: FitnessArray | None


def centered_rank(fitnesses: ArrayLike) -> FitnessArray:
    """Return ranks that run linearly from -0.5 (worst) to 0.5 (best); ties share their mean rank.

    If ties were broken by index, equal fitnesses would give a gradient where there is none. Non-finite values (NaN and
    both infinities) tie for the worst place: an infinite reward is a fault of the simulator, not a success.

    >>> centered_rank([3.0, 1.0, 2.0])
    array([ 0.5, -0.5,  0. ])
    >>> centered_rank([7.0, 7.0, float("nan"), 9.0])
    array([ 0. ,  0. , -0.5,  0.5])
    """
    values = np.asarray(fitnesses, dtype=np.float64)
    if values.size < 2:
        return np.zeros(values.shape)
    places, counts = _places(values)
    last = np.cumsum(counts)
    mean_rank = last - (counts + 1) / 2  # mean of the ranks last - counts .. last - 1
    return mean_rank[places.reshape(values.shape)] / (values.size - 1) - 0.5


def _places(values: FitnessArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return each value's place among the different values, from worst to best, and how often each of them occurs."""
    values = np.where(np.isfinite(values), values, -np.inf)
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return places, counts


def shared_by_rank(fitnesses: FitnessArray, by_rank: FitnessArray) -> FitnessArray:
    """Return for each fitness the entry of `by_rank` (the best one first) at its rank; ties share their mean entry.

    >>> shared_by_rank(np.array([1.0, 3.0, 3.0]), np.array([6.0, 2.0, 0.0]))
    array([0., 4., 4.])
    """
    places, counts = _places(fitnesses)
    starts = np.cumsum(counts) - counts
    return (np.add.reduceat(by_rank[::-1], starts) / counts)[places]


def nes_utilities(fitnesses: FitnessArray) -> FitnessArray:
    """Return the utilities of Wierstra et al. (2014, section 3.1), which sum to 0; ties share their mean.

    With k the rank, 1 for the best of n: ``max(0, log(n/2 + 1) - log(k))``, divided by their sum, less ``1/n``.

    >>> nes_utilities(np.array([1.0, 4.0, 2.0, 3.0])).round(3)
    array([-0.25,  0.48, -0.25,  0.02])
    """
    n = fitnesses.size
    raw = np.maximum(0.0, math.log(n / 2 + 1) - log_each(range(1, n + 1)))
    return shared_by_rank(fitnesses, raw / raw.sum() - 1 / n)


def normalized(fitnesses: FitnessArray) -> FitnessArray:
    """Return the fitnesses with mean 0 and standard deviation 1; all 0 if they are equal.

    >>> normalized(np.array([1.0, 3.0])), normalized(np.array([5.0, 5.0]))
    (array([-1.,  1.]), array([0., 0.]))
    """
    if (fitnesses == fitnesses[:1]).all():
        return np.zeros(fitnesses.shape)
    small = fitnesses / np.abs(fitnesses).max()  # so that no square over- or underflows
    centered = small - small.mean()
    return centered / math.sqrt(float(np.square(centered).mean()))


def unmirrored_weights(utilities: FitnessArray) -> Weights:
    """Return the weights of candidates that come one by one: each utility above the mean of all."""
    above = utilities - utilities.mean()
    return Weights(above, above)


def utility_weights(utilities: FitnessArray) -> Weights:
    """Return the weights of Algorithm 1: half the difference in a pair, and its mean above the baseline."""
    above, below = utilities[0::2], utilities[1::2]
    return Weights((above - below) / 2, (above + below) / 2 - utilities.mean())


def reward_normalized_weights(fitnesses: FitnessArray, fitness_max: float) -> Weights:
    """Return the weights of the original PGPE (the paper's appendix).

    `fitness_max` is the largest fitness possible, or the largest seen. The formula gives 0/0 for a pair whose members
    both reach it, and for a population that reaches it as a whole. Such weights are 0 here.
    """
    # Computed from the distances to the maximum, which are exactly 0 where all fitnesses equal it. The mean of equal
    # fitnesses may round one bit below them; divided by that bit, it would give weights of 1.
    room = fitness_max - fitnesses
    above, below = room[0::2], room[1::2]
    mean, baseline = (above + below) / 2, room.mean()
    center = np.divide((below - above) / 2, mean, out=np.zeros_like(mean), where=mean > 0)
    stdev = (baseline - mean) / baseline if baseline > 0 else np.zeros_like(mean)
    return Weights(center, stdev)


_UTILITIES: Mapping[str, Callable[[FitnessArray], FitnessArray]] = {
    "centered-rank": centered_rank,
    "raw": lambda fitnesses: fitnesses,
    "nes": lambda fitnesses: fitnesses.size * nes_utilities(fitnesses),  # we take means where NES takes sums
    "linear": lambda fitnesses: centered_rank(fitnesses) + 0.5,
    "normalized": normalized,
}
_REWARD_NORMALIZED = "reward-normalized"
_BY_RANK = frozenset({"centered-rank", "nes", "linear"})
SHAPINGS: tuple[str, ...] = ("centered-rank", "raw", _REWARD_NORMALIZED, "nes", "linear", "normalized")
"""The names, the default first."""
UTILITIES: tuple[str, ...] = tuple(_UTILITIES)
"""The shapings that give each candidate a utility of its own: all but the one that needs pairs."""


def utilities(fitnesses: FitnessArray, shaping: str) -> FitnessArray:
    """Return the utility of each candidate under the shaping of that name."""
    return _UTILITIES[shaping](fitnesses)


def shape(fitnesses: FitnessArray, shaping: str, fitness_max: float, *, mirrored: bool = True) -> Weights:
    """Return the weights of all directions of a generation under the shaping of that name."""
    if shaping == _REWARD_NORMALIZED:
        return reward_normalized_weights(fitnesses, fitness_max)
    found = utilities(fitnesses, shaping)
    return utility_weights(found) if mirrored else unmirrored_weights(found)


def check_shaping(shaping: str, fitness_max: float | None) -> str:
    """Return the name of the shaping, or refuse it; `fitness_max` belongs to one of them only."""
    if shaping not in SHAPINGS:
        raise InvalidArgument(f"fitness_shaping must be one of {', '.join(SHAPINGS)}, got {shaping!r}")
    if fitness_max is not None:
        check_number("fitness_max", fitness_max)
        if shaping != _REWARD_NORMALIZED:
            raise InvalidArgument(f"fitness_max belongs to 'reward-normalized' shaping, not to {shaping!r}")
    return shaping


def check_finite(fitnesses: FitnessArray, shaping: str) -> None:
    """Refuse non-finite fitnesses, unless the shaping ranks them last."""
    if shaping in _BY_RANK:
        return
    bad = np.flatnonzero(~np.isfinite(fitnesses))
    if bad.size:
        shown = ", ".join(map(str, bad[:8])) + (", …" if bad.size > 8 else "")
        raise InvalidFitness(
            f"{shaping!r} shaping needs finite fitnesses, got {bad.size} non-finite (candidates {shown}); "
            "repair them, or use fitness_shaping='centered-rank', which ranks them last"
        )


def tied_share(fitnesses: FitnessArray) -> float:
    """Return the share of candidates that share their rank with another one; at 1.0 ranks may hold no information."""
    _, counts = np.unique(np.where(np.isfinite(fitnesses), fitnesses, -np.inf), return_counts=True)
    return float(counts[counts > 1].sum() / fitnesses.size)
