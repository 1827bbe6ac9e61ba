"""Fitness shaping: from what the candidates scored to how much each direction counts.

Pure functions. Candidates come in mirrored pairs ``(f+, f-)`` at positions ``2i`` and ``2i + 1``. A direction's
:class:`Weights` are the two factors that stand before it in the paper's gradient formulas (Algorithm 1, lines 3 and 4;
for the reward normalization: the appendix).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clipup.errors import InvalidArgument, InvalidFitness

Shaping = Literal["centered-rank", "raw", "reward-normalized"]
SHAPINGS: tuple[str, ...] = get_args(Shaping)

FitnessArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Weights:
    """One number per direction for the gradient of the center, and one for the gradient of the stdev."""

    center: FitnessArray
    stdev: FitnessArray


def centered_rank(fitnesses: ArrayLike) -> FitnessArray:
    """Return ranks that run linearly from -0.5 (worst) to 0.5 (best); ties share their mean rank.

    Breaking ties by index instead would make a gradient out of nothing when all fitnesses are equal. Non-finite values
    (NaN and both infinities) tie for the worst place: an infinite reward is a fault of the simulator, not a success.

    >>> centered_rank([3.0, 1.0, 2.0])
    array([ 0.5, -0.5,  0. ])
    >>> centered_rank([7.0, 7.0, float("nan"), 9.0])
    array([ 0. ,  0. , -0.5,  0.5])
    """
    values = np.asarray(fitnesses, dtype=np.float64)
    if values.size < 2:
        return np.zeros(values.shape)
    values = np.where(np.isfinite(values), values, -np.inf)
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean_rank = last - (counts + 1) / 2  # mean of the ranks last - counts .. last - 1
    return mean_rank[places.reshape(values.shape)] / (values.size - 1) - 0.5


def utility_weights(utilities: FitnessArray) -> Weights:
    """Return the weights of Algorithm 1: half the difference in a pair, and its mean above the baseline."""
    above, below = utilities[0::2], utilities[1::2]
    return Weights((above - below) / 2, (above + below) / 2 - utilities.mean())


def reward_normalized_weights(fitnesses: FitnessArray, fitness_max: float) -> Weights:
    """Return the weights of the original PGPE (the paper's appendix).

    `fitness_max` is the largest fitness possible, or the largest seen. A pair whose members both reach it differs by
    nothing and gets weight 0, where the formula says 0/0; likewise a population that lies on it as a whole.
    """
    # As distances from the maximum, which are 0 to the last bit where all are equal: a mean that rounds one bit below
    # its numbers would be divided by that bit, and make weights of 1 out of nothing.
    room = fitness_max - fitnesses
    above, below = room[0::2], room[1::2]
    mean, baseline = (above + below) / 2, room.mean()
    center = np.divide((below - above) / 2, mean, out=np.zeros_like(mean), where=mean > 0)
    stdev = (baseline - mean) / baseline if baseline > 0 else np.zeros_like(mean)
    return Weights(center, stdev)


def shape(fitnesses: FitnessArray, shaping: str, fitness_max: float) -> Weights:
    """Return the weights of all directions of a generation under the shaping of that name."""
    match shaping:
        case "centered-rank":
            return utility_weights(centered_rank(fitnesses))
        case "raw":
            return utility_weights(fitnesses)
        case "reward-normalized":
            return reward_normalized_weights(fitnesses, fitness_max)
        case _:
            raise InvalidArgument(f"fitness_shaping must be one of {', '.join(SHAPINGS)}, got {shaping!r}")


def check_finite(fitnesses: FitnessArray, shaping: str) -> None:
    """Refuse non-finite fitnesses where the shaping has no place for them."""
    if shaping == "centered-rank":
        return
    bad = np.flatnonzero(~np.isfinite(fitnesses))
    if bad.size:
        shown = ", ".join(map(str, bad[:8])) + (", …" if bad.size > 8 else "")
        raise InvalidFitness(
            f"{shaping!r} shaping needs finite fitnesses, got {bad.size} non-finite (candidates {shown}); "
            "repair them, or use fitness_shaping='centered-rank', which ranks them last"
        )


def tied_share(fitnesses: FitnessArray) -> float:
    """Return the share of candidates that share their rank with another: at 1.0 there may be nothing to learn from."""
    _, counts = np.unique(np.where(np.isfinite(fitnesses), fitnesses, -np.inf), return_counts=True)
    return float(counts[counts > 1].sum() / fitnesses.size)
