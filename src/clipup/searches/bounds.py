"""A box for the candidates of an unbounded search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from clipup.errors import InvalidArgument
from clipup.optimizers.protocol import Vector, as_floats
from clipup.searches.protocol import FloatArray


@dataclass(frozen=True, eq=False)
class Bounds:
    """Lower and upper limits of the parameters. A candidate outside of them is reflected back into the box.

    A search of ours knows no limits: it draws from a normal distribution. Reflection keeps the fitness continuous, and
    a candidate that is inside already is not changed. A limit may be infinite.

    >>> box = Bounds.of((-1.0, 2.0))
    >>> box.fold(np.array([[0.5, 2.25, -3.0, 5.5]]))
    array([[ 0.5 ,  1.75,  1.  , -0.5 ]], dtype=float32)
    """

    low: Vector
    high: Vector

    @classmethod
    def of(cls, bounds: tuple[ArrayLike, ArrayLike] | Bounds) -> Bounds:
        """Return the box that ``(low, high)`` describes, two numbers or two vectors, or refuse it."""
        if isinstance(bounds, Bounds):
            return bounds
        try:
            low, high = bounds
        except (TypeError, ValueError):
            raise InvalidArgument(f"bounds must be a pair (low, high), got {bounds!r}") from None
        return cls(*np.broadcast_arrays(*cls._checked(low, high)))

    @classmethod
    def _checked(cls, low: ArrayLike, high: ArrayLike) -> tuple[Vector, Vector]:
        lows, highs = as_floats("the lower bound", low), as_floats("the upper bound", high)
        if lows.ndim > 1 or highs.ndim > 1 or (lows.ndim and highs.ndim and lows.shape != highs.shape):
            raise InvalidArgument(
                f"bounds must be numbers or vectors of one size, got shapes {lows.shape} and {highs.shape}"
            )
        # A candidate is float32. The box's own edges must be too, or rounding could leave the box.
        with np.errstate(over="ignore"):
            lows, highs = _inward(lows, np.inf), _inward(highs, -np.inf)
        if not (lows < highs).all():
            raise InvalidArgument(f"each lower bound must be below its upper bound, got {low!r} and {high!r}")
        return lows, highs

    @property
    def dimension(self) -> int | None:
        """The number of parameters; None if the box has one pair of limits for all."""
        return self.low.size if self.low.ndim else None

    def middle(self, dimension: int | None) -> Vector | None:
        """Return the middle of the box; None if it is infinite, or if the dimension is not known."""
        size = dimension if self.dimension is None else self.dimension
        if size is None or not (np.isfinite(self.low).all() and np.isfinite(self.high).all()):
            return None
        return np.broadcast_to(self.low / 2 + self.high / 2, (size,)).copy()

    def check_dimension(self, dimension: int) -> Self:
        """Return the box, or refuse it for so many parameters."""
        if self.dimension not in {None, dimension}:
            raise InvalidArgument(f"bounds for {self.dimension} parameters were given, but the search has {dimension}")
        return self

    def fold(self, candidates: ArrayLike) -> FloatArray:
        """Return the candidates, reflected at the limits until they lie within them. The array is not changed."""
        x = as_floats("candidates", candidates)
        low, high = self.low, self.high
        with np.errstate(invalid="ignore"):
            width = high - low
            beyond = np.mod(x - low, 2 * width)
            both = low + np.minimum(beyond, 2 * width - beyond)
            one = np.where(np.isfinite(low), low + np.abs(x - low), high - np.abs(high - x))
        outside = (x < low) | (x > high)
        folded = np.where(np.isfinite(width), both, one)
        return np.clip(np.where(outside, folded, x), low, high).astype(np.float32)


def _inward(limits: Vector, towards: float) -> Vector:
    """Return each limit as the nearest float32 on the inner side of it."""
    near = limits.astype(np.float32)
    outside = near < limits if towards > 0 else near > limits
    inner = np.where(outside, np.nextafter(near, np.float32(towards)), near)
    return np.where(np.isfinite(limits), inner, limits).astype(np.float64)
