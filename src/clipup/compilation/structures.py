"""C structures as machine code sees them: where each field stands, what it holds, how far an array extends.

Numba gets such a description as a type (`clipup.compilation.structure_code`), so compiled functions read ``data.qpos``
or ``job.totals`` straight from memory, always with the present numbers.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Number:
    """A number at an offset; `elsewhere` means from the second address that a view has."""

    offset: int
    dtype: str
    elsewhere: bool = False


@dataclass(frozen=True)
class Array:
    """An array: in place, or behind a pointer. Each extent is a product of constants and numbers in memory."""

    offset: int
    dtype: str
    extents: tuple[tuple[int | Number, ...], ...]
    pointer: bool


@dataclass(frozen=True)
class Tuple:
    """Numbers of one type, eight bytes apart."""

    offset: int
    dtype: str
    length: int


@dataclass(frozen=True)
class Nested:
    """A structure inside a structure."""

    offset: int
    structure: Structure


Field: TypeAlias = Number | Array | Tuple | Nested


@dataclass(frozen=True)
class Structure:
    """A structure's name (for messages) and fields."""

    name: str
    fields: tuple[tuple[str, Field], ...]

    def field(self, name: str) -> Field | None:
        """Return a field, or None."""
        return dict(self.fields).get(name)


def array_structure(name: str, arrays: Mapping[str, tuple[str, int]]) -> Structure:
    """Return the structure that `array_words` fills, for arrays of these types and numbers of dimensions."""
    found: list[tuple[str, Field]] = []
    place = 0
    for array, (dtype, dimensions) in arrays.items():
        extents = tuple((Number(8 * (place + 1 + axis), "int64"),) for axis in range(dimensions))
        found.append((array, Array(8 * place, dtype, extents, pointer=True)))
        place += 1 + dimensions
    return Structure(name, tuple(found))


def array_words(arrays: Mapping[str, tuple[str, int]], values: Iterable[NDArray[Any]]) -> NDArray[np.int64]:
    """Return address and shape of every array, one after the other. The arrays must outlive the result."""
    words: list[int] = []
    for (name, kind), value in zip(arrays.items(), values, strict=True):
        if (value.dtype.name, value.ndim) != kind or not value.flags.c_contiguous:
            raise ValueError(
                f"{name} must be contiguous, of type and dimensions {kind}, got {value.dtype} {value.shape}"
            )
        words += [value.ctypes.data, *value.shape]
    return np.array(words, np.int64)


def viewer(structure: Structure) -> Any:
    """Return a function, for machine code alone, of two addresses that gives a view of a structure."""
    return importlib.import_module("clipup.compilation.structure_code").viewer(structure)
