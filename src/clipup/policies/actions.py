"""From the outputs of a network to the actions of an environment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clipup.errors import InvalidArgument, one_line

AnyArray = NDArray[np.generic]


_WHOLE = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_DTYPES = {name: np.dtype(name) for name in ("float16", "float32", "float64", *_WHOLE)}


@dataclass(frozen=True)
class Actions:
    """How outputs become actions: clipped to a box, or the index of the largest output.

    Parameters
    ----------
    kind
        ``"box"``: one output per number of the action; ``"discrete"``: one output per choice, the largest wins (the
        first of several equal ones).
    size
        Number of outputs.
    low, high
        Bounds of a box, one number per output, infinite where there is none.
    shape
        Shape of one action of a box.
    rescale
        True clips outputs to [-1, 1] and stretches that over [low, high]. False clips outputs to [low, high].
    start
        The first action of a discrete space.
    dtype
        Numpy type of the actions.
    """

    kind: Literal["box", "discrete"]
    size: int
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    shape: tuple[int, ...] = ()
    rescale: bool = False
    start: int = 0
    dtype: str = "float32"

    def __post_init__(self) -> None:
        if self.kind not in ("box", "discrete"):
            raise InvalidArgument(f"kind of actions must be 'box' or 'discrete', got {self.kind!r}")
        if self.size < 1:
            raise InvalidArgument(f"size of actions must be at least 1, got {self.size}")
        if not -(2**63) <= self.start < 2**63 - self.size:
            raise InvalidArgument("start of actions must fit 64 bits, got more")
        if self.kind == "discrete":
            return
        fits = math.prod(self.shape) == self.size and min(self.shape, default=1) > 0
        if len(self.low) != self.size or len(self.high) != self.size or not fits:
            raise InvalidArgument(
                f"a box of {self.size} numbers needs that many bounds and a shape of that size, got "
                f"{len(self.low)} low, {len(self.high)} high, shape {self.shape}"
            )
        if self.rescale and not np.isfinite([self.low, self.high]).all():
            raise InvalidArgument("rescale_actions needs finite bounds, but the action space is unbounded")

    @classmethod
    def box(cls, low: ArrayLike, high: ArrayLike, *, rescale: bool = False, dtype: str = "float32") -> Actions:
        """Return the actions of a box with these bounds.

        >>> Actions.box([-1.0, 0.0], [1.0, 1.0]).size
        2
        """
        shape = np.shape(low)
        lowest, highest = (tuple(float(value) for value in np.ravel(bounds)) for bounds in (low, high))
        return cls("box", len(lowest), lowest, highest, tuple(shape), rescale, dtype=dtype)

    @classmethod
    def discrete(cls, choices: int, *, start: int = 0, dtype: str = "int64") -> Actions:
        """Return the actions of a discrete space of `choices`."""
        return cls("discrete", choices, start=start, dtype=dtype)

    def to_dict(self) -> dict[str, object]:
        """Return the fields in a form that JSON can hold: an infinite bound is None."""
        low, high = ([value if math.isfinite(value) else None for value in bounds] for bounds in (self.low, self.high))
        return {**asdict(self), "low": low, "high": high, "shape": list(self.shape)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, object]) -> Actions:
        """Return the actions that `to_dict` described."""
        try:
            kind = cast(Literal["box", "discrete"], fields["kind"])
            # Looked up by name: numpy would interpret other texts as expressions.
            dtype = _DTYPES[str(fields["dtype"])]
            low, high = cast(list[float | None], fields["low"]), cast(list[float | None], fields["high"])
            return cls(
                kind,
                int(cast(int, fields["size"])),
                tuple(-math.inf if value is None else float(value) for value in low),
                tuple(math.inf if value is None else float(value) for value in high),
                tuple(int(value) for value in cast(list[int], fields["shape"])),
                bool(fields["rescale"]),
                int(cast(int, fields["start"])),
                dtype.name,
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidArgument(f"not a description of actions: {one_line(error)}") from error

    def apply(self, outputs: NDArray[np.float32]) -> AnyArray:
        """Return the actions of outputs (n, size): (n, *shape) of a box, (n,) of a discrete space.

        `outputs` itself is left alone.
        """
        if self.kind == "discrete":
            choices = np.argmax(outputs, axis=1)
            if self.start:
                choices += self.start
            return choices.astype(self._dtype, copy=False)
        # Converted before clipping: float32(0.4) lies above the float64 bound 0.4.
        values = cast("NDArray[np.floating]", outputs.astype(self._dtype))
        low, high = self._bounds
        if self.rescale:
            np.maximum(values, -1.0, out=values)
            np.minimum(values, 1.0, out=values)
            values *= (high - low) / 2
            values += (high + low) / 2
        if self._bounded:
            np.maximum(values, low, out=values)
            np.minimum(values, high, out=values)
        return values if len(self.shape) == 1 else values.reshape(len(values), *self.shape)

    @cached_property
    def _dtype(self) -> np.dtype[Any]:
        return np.dtype(self.dtype)

    @cached_property
    def _bounds(self) -> tuple[Any, Any]:
        """The bounds of a box, each as a vector, or as one number where all are equal, which is faster."""
        pairs = ((values, np.asarray(values, self._dtype)) for values in (self.low, self.high))
        low, high = (bounds[0] if len(set(values)) == 1 else bounds for values, bounds in pairs)
        return low, high

    @cached_property
    def _bounded(self) -> bool:
        return bool(np.isfinite([self.low, self.high]).any())
