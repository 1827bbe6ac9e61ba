"""From the outputs of a network to the actions of an environment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clipup.errors import InvalidArgument, one_line

AnyArray = NDArray[np.generic]


Kind = Literal["box", "discrete", "binary", "choices", "mixed"]
CHOICES = ("discrete", "binary", "choices")
"""The kinds whose actions do not change if all outputs are multiplied by one number."""
_SINGLE = ("box", "discrete", "binary")
_WHOLE = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_NOUNS = {"box": "numbers", "discrete": "choices", "binary": "bits"}
PART_LIMIT = 1000
"""Parts that actions have at most."""
_DTYPES = {name: np.dtype(name) for name in ("float16", "float32", "float64", *_WHOLE)}


@dataclass(frozen=True)
class Actions:
    """How outputs become actions: clipped to a box, the index of the largest output, or several of these side by side.

    Parameters
    ----------
    kind
        ``"box"``: one output per number of the action; ``"discrete"``: one output per choice, the largest wins (the
        first of several equal ones); ``"binary"``: one output per bit, which is 1 where the output is above 0;
        ``"choices"`` and ``"mixed"``: several actions side by side, the latter with numbers among them.
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
    parts, paths
        For several actions: each of them, in the order of its outputs, and where it stands in the environment's action
        (the keys of dictionaries and the places in tuples).
    """

    kind: Kind
    size: int
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    shape: tuple[int, ...] = ()
    rescale: bool = False
    start: int = 0
    dtype: str = "float32"
    parts: tuple[Actions, ...] = ()
    paths: tuple[tuple[str | int, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InvalidArgument(f"kind of actions must be one of {', '.join(get_args(Kind))}, got {self.kind!r}")
        if self.size < 1:
            raise InvalidArgument(f"size of actions must be at least 1, got {self.size}")
        if not -(2**63) <= self.start < 2**63 - self.size:
            raise InvalidArgument("start of actions must fit 64 bits, got more")
        if self.kind not in _SINGLE:
            fits = len(self.paths) == len(self.parts) and sum(part.size for part in self.parts) == self.size
            if not fits or not self.parts or any(part.kind not in _SINGLE for part in self.parts):
                raise InvalidArgument(
                    f"{self.kind} actions need parts with {self.size} outputs in all, and their paths"
                )
            return
        if self.parts or self.paths:
            raise InvalidArgument(f"{self.kind} actions have no parts")
        if self.kind == "discrete":
            return
        if self.kind == "binary":
            if math.prod(self.shape) != self.size:
                raise InvalidArgument(f"{self.size} bits need a shape of that size, got {self.shape}")
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

    @classmethod
    def binary(cls, shape: tuple[int, ...], *, dtype: str = "int8") -> Actions:
        """Return the actions of an array of bits."""
        return cls("binary", math.prod(shape), shape=shape, dtype=dtype)

    @classmethod
    def of_parts(cls, parts: Sequence[tuple[tuple[str | int, ...], Actions]], *, dtype: str | None = None) -> Actions:
        """Return several actions side by side, each with its path."""
        kinds = {part.kind for _, part in parts}
        kind: Kind = "mixed" if "box" in kinds else "choices"
        return cls(
            kind,
            sum(part.size for _, part in parts),
            dtype=dtype or ("float64" if kind == "mixed" else "int64"),
            parts=tuple(part for _, part in parts),
            paths=tuple(path for path, _ in parts),
        )

    def describe(self) -> str:
        """The actions in a few words.

        >>> Actions.discrete(4).describe(), Actions.box([-1.0], [1.0]).describe()
        ('4 choices', '1 numbers')
        """
        if self.kind in ("choices", "mixed"):
            return (
                ", ".join(part.describe() for part in self.parts)
                if len(self.parts) <= 4
                else (f"{len(self.parts)} actions with {self.size} outputs")
            )
        return f"{self.size} {_NOUNS[self.kind]}"

    def to_dict(self) -> dict[str, object]:
        """Return the fields in a form that JSON can hold: an infinite bound is None."""
        low, high = ([value if math.isfinite(value) else None for value in bounds] for bounds in (self.low, self.high))
        described = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        described |= {"low": low, "high": high, "shape": list(self.shape)}
        del described["parts"], described["paths"]
        if self.parts:
            described["parts"] = [part.to_dict() for part in self.parts]
            described["paths"] = [list(path) for path in self.paths]
        return described

    @classmethod
    def from_dict(cls, described: Mapping[str, object]) -> Actions:
        """Return the actions that `to_dict` described."""
        try:
            kind = cast(Kind, described["kind"])
            parts = cast("list[Mapping[str, object]]", described.get("parts", []))
            paths = cast("list[list[str | int]]", described.get("paths", []))
            if any(type(key) not in (str, int) for path in paths for key in path) or len(parts) > PART_LIMIT:
                raise TypeError("its parts are not described as expected")
            if any("parts" in part for part in parts):
                raise TypeError("a part has parts")
            # Looked up by name: numpy would interpret other texts as expressions.
            dtype = _DTYPES[str(described["dtype"])]
            low, high = cast(list[float | None], described["low"]), cast(list[float | None], described["high"])
            return cls(
                kind,
                int(cast(int, described["size"])),
                tuple(-math.inf if value is None else float(value) for value in low),
                tuple(math.inf if value is None else float(value) for value in high),
                tuple(int(value) for value in cast(list[int], described["shape"])),
                bool(described["rescale"]),
                int(cast(int, described["start"])),
                dtype.name,
                tuple(cls.from_dict(part) for part in parts),
                tuple(tuple(path) for path in paths),
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidArgument(f"not a description of actions: {one_line(error)}") from error

    def apply(self, outputs: NDArray[np.float32]) -> AnyArray:
        """Return the actions of outputs (n, size): (n, *shape) of a box or bits, (n,) of a discrete space.

        Several actions are one row of numbers: a choice is one of them. `outputs` itself is left alone.
        """
        if self.parts:
            return self._apply_parts(outputs)
        if self.kind == "binary":
            return (outputs > 0).astype(self._dtype).reshape(len(outputs), *self.shape)
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

    def _apply_parts(self, outputs: NDArray[np.float32]) -> AnyArray:
        first, columns = 0, list[AnyArray]()
        for part in self.parts:
            columns.append(part.apply(outputs[:, first : first + part.size]).reshape(len(outputs), -1))
            first += part.size
        return np.concatenate(columns, axis=1).astype(self._dtype)

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
