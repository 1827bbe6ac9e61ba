"""Sums, limits and distances rounded as numpy rounds them, in the Python that Numba compiles.

Gymnasium computes rewards with numpy. A sum of floating-point numbers depends on the order of its additions, so equal
rewards need numpy's order: from eight numbers on, numpy keeps eight partial sums, and above 128 numbers it adds the
sums of two halves. They also need numpy's types: since numpy 2, a Python number times a float32 is a float32, while
Numba would make it a float64. So every float32 is written out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clipup.engines.compiled.task import Vector

LARGEST_BLOCK = 128
"""With more numbers than these, numpy adds the sums of two halves."""

DEEPEST = 64
"""Halving a 64-bit number of numbers cannot take more levels."""


def clip(value: float, low: float, high: float) -> float:
    """``np.clip`` of one number. NaN stays NaN."""
    if math.isnan(value):
        return value
    value = value if value > low else low
    return value if value < high else high


def pairwise_sum(values: Any) -> Any:
    """``np.sum`` of a vector of at least one number, in the type of its numbers."""
    if values.size <= LARGEST_BLOCK:
        return _block_sum(values, 0, values.size)
    # A tree of halves, walked from left to right without recursion. `firsts`, `counts` and `levels` are the parts still
    # to be added; `sums` are finished parts that wait for their right neighbour on the same level.
    firsts, counts, levels = np.zeros(DEEPEST, np.int64), np.zeros(DEEPEST, np.int64), np.zeros(DEEPEST, np.int64)
    sums, heights = np.zeros(DEEPEST, values.dtype), np.zeros(DEEPEST, np.int64)
    counts[0] = values.size
    waiting, done = 1, 0
    while waiting > 0:
        waiting -= 1
        first, count, level = firsts[waiting], counts[waiting], levels[waiting]
        if count > LARGEST_BLOCK:
            half = count // 2
            half -= half % 8
            firsts[waiting], counts[waiting], levels[waiting] = first + half, count - half, level + 1
            firsts[waiting + 1], counts[waiting + 1], levels[waiting + 1] = first, half, level + 1
            waiting += 2
            continue
        total = _block_sum(values, first, count)
        while done > 0 and heights[done - 1] == level:
            done -= 1
            total = sums[done] + total
            level -= 1
        sums[done], heights[done] = total, level
        done += 1
    return sums[0]


def _block_sum(values: Any, first: int, count: int) -> Any:
    """Sum ``values[first : first + count]`` as numpy sums up to 128 numbers."""
    if count < 8:
        total = values[first]
        for i in range(first + 1, first + count):
            total += values[i]
        return total
    p0, p1, p2, p3 = values[first], values[first + 1], values[first + 2], values[first + 3]
    p4, p5, p6, p7 = values[first + 4], values[first + 5], values[first + 6], values[first + 7]
    rest = first + count - count % 8
    for i in range(first + 8, rest, 8):
        p0 += values[i]
        p1 += values[i + 1]
        p2 += values[i + 2]
        p3 += values[i + 3]
        p4 += values[i + 4]
        p5 += values[i + 5]
        p6 += values[i + 6]
        p7 += values[i + 7]
    total = ((p0 + p1) + (p2 + p3)) + ((p4 + p5) + (p6 + p7))
    for i in range(rest, first + count):
        total += values[i]
    return total


def sum_of_squares(values: Any) -> Any:
    """``np.sum(np.square(values))`` of a vector, in the type of its numbers: float32 for an action."""
    return pairwise_sum(values * values)


def sum_of_squared_forces(forces: Vector, low: float, high: float) -> float:
    """``np.sum(np.square(np.clip(forces, low, high)))`` of a table of forces."""
    columns = forces.shape[1]
    squares = np.empty(forces.size)
    for i in range(forces.shape[0]):
        for j in range(columns):
            force = clip(forces[i, j], low, high)
            squares[i * columns + j] = force * force
    return pairwise_sum(squares)


def control_cost(weight: float, action: NDArray[np.float32]) -> float:
    """``weight * np.sum(np.square(action))`` of a float32 action: rounded to float32, returned as a float64."""
    return np.float64(np.float32(weight) * sum_of_squares(action))


def distance(points: Vector, one: int, other: int) -> float:
    """``np.linalg.norm(points[one] - points[other])`` of two rows of three numbers, without BLAS.

    numpy's norm asks BLAS. On most processors OpenBLAS rounds each product and each sum, from left to right. So does
    this. OpenBLAS's kernels for AVX-512 fuse a product and a sum, so there numpy's norm may differ in the last bit.
    """
    x = points[one, 0] - points[other, 0]
    y = points[one, 1] - points[other, 1]
    z = points[one, 2] - points[other, 2]
    return np.sqrt((x * x + y * y) + z * z)
