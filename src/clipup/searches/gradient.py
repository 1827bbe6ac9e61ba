"""PGPE's gradients, summed over directions in an order that does not depend on who sums.

With ``delta = stdev * z`` the formulas of Algorithm 1 become sums over the standard normals alone::

    gradient of the center = stdev / n * sum_i  w_i * z_i
    gradient of the stdev  = stdev / n * sum_i  s_i * (z_i**2 - 1)

The sums run in float64 over blocks of `BLOCK` directions: one direction after the other within a block, then one block
after the other. Each addition is an elementwise numpy operation, so the result has the same bits for any chunk size,
and for any number of workers as long as each of them sums whole blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from clipup.errors import InvalidArgument
from clipup.optimizers.protocol import Vector, norm
from clipup.searches.protocol import FloatArray
from clipup.searches.sampling import each_direction
from clipup.searches.shaping import Weights

BLOCK = 64


class Sums(NamedTuple):
    """Sums over a range of directions.

    The center's sum is kept in two halves, even and odd directions. These are two independent estimates of one
    gradient: their agreement tells how much of it is noise, at no cost.
    """

    even: Vector
    odd: Vector
    squares: Vector

    @classmethod
    def zeros(cls, dimension: int, *, squares: bool = True) -> Sums:
        """Return the sums over no direction; without squares, their place is empty."""
        return cls(np.zeros(dimension), np.zeros(dimension), np.zeros(dimension if squares else 0))

    @property
    def center(self) -> Vector:
        """The weighted sum of all directions."""
        return self.even + self.odd


@dataclass(frozen=True, eq=False)
class Gradients:
    """The estimates of Algorithm 1, lines 3 and 4, and how well two halves of the population agree on the first."""

    center: Vector
    stdev: Vector
    agreement: float


@dataclass(frozen=True, eq=False)
class GradientWork:
    """All that is needed to sum a generation's directions, block by block, anywhere: a few kB for any dimension."""

    weights: Weights
    seed: int
    generation: int
    dimension: int
    orthogonal: int = 0

    @property
    def block_count(self) -> int:
        """How many blocks the generation's directions fill."""
        return -(-len(self.weights.center) // BLOCK)

    @property
    def size(self) -> int:
        """How many numbers all directions have together."""
        return len(self.weights.center) * self.dimension

    def block(self, number: int, kept: Sequence[FloatArray] | None = None) -> Sums:
        """Return the sums over the directions of block `number`.

        `kept` holds all directions of the generation, if the caller still has them. Otherwise they are made again, one
        row at a time.
        """
        start, stop = number * BLOCK, min((number + 1) * BLOCK, len(self.weights.center))
        rows: Iterable[tuple[int, FloatArray]]
        if kept is None:
            row = np.empty((1, self.dimension), np.float32)
            rows = each_direction(self.seed, self.generation, start, stop, row, self.orthogonal)
        else:
            rows = ((index, kept[index]) for index in range(start, stop))
        squares = self.weights.stdev
        sums = Sums.zeros(self.dimension, squares=squares is not None)
        z, term = np.empty(self.dimension), np.empty(self.dimension)
        for index, direction in rows:
            z[:] = direction
            np.multiply(z, self.weights.center[index], out=term)
            half = sums.odd if index % 2 else sums.even
            np.add(half, term, out=half)
            if squares is not None:
                np.multiply(z, z, out=z)
                np.multiply(z, squares[index], out=z)
                np.add(sums.squares, z, out=sums.squares)
        return sums


def add_blocks(work: GradientWork, blocks: Iterable[tuple[Vector, ...]]) -> Sums:
    """Return the sums over all directions from the sums of all blocks, which must come in their order."""
    total, count = Sums.zeros(work.dimension, squares=work.weights.stdev is not None), 0
    for block in blocks:
        for whole, part in zip(total, block, strict=True):
            np.add(whole, part, out=whole)
        count += 1
    if count != work.block_count:
        raise InvalidArgument(f"the sums of {work.block_count} blocks are needed, got {count}")
    return total


def estimate(work: GradientWork, stdev: FloatArray, blocks: Iterable[tuple[Vector, ...]]) -> Gradients:
    """Return PGPE's gradients from the sums of all blocks, which must come in their order."""
    total = add_blocks(work, blocks)
    if work.weights.stdev is None:
        raise InvalidArgument("PGPE's gradients need weights of the stdev, got none")
    scale = stdev.astype(np.float64) / len(work.weights.center)
    return Gradients(
        center=scale * total.center,
        stdev=scale * (total.squares - work.weights.stdev.sum()),
        agreement=agreement(total, scale),
    )


def agreement(sums: Sums, scale: Vector | float = 1.0) -> float:
    """Return the cosine between the halves of the center's sum, each coordinate scaled first."""
    return _cosine(sums.even * scale, sums.odd * scale)


def _cosine(one: Vector, other: Vector) -> float:
    lengths = norm(one), norm(other)
    if min(lengths) == 0 or not np.isfinite(lengths).all():
        return 0.0
    cosine = float(((one / lengths[0]) * (other / lengths[1])).sum())
    return min(1.0, max(-1.0, cosine))
