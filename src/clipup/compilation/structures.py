"""C structures as machine code sees them: where each field stands, what it holds, how far an array extends.

Numba gets such a description as a type (`clipup.compilation.structure_code`), so compiled functions read ``data.qpos`` or
``job.totals`` straight from memory, always with the present numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


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
