"""Where MuJoCo's structures keep their fields, so that machine code can read them.

`mujoco.introspect` describes ``mjModel`` and ``mjData`` as C does. From that follow the offsets, by C's rules for
alignment. They are checked against a real model and its data before anything relies on them.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from clipup.compilation.functions import attribute_names
from clipup.engines.compiled.words import generate
from clipup.errors import ClipUpError

_SIZES = {
    "mjtNum": 8, "double": 8, "float": 4, "int": 4, "mjtSize": 8, "size_t": 8, "uintptr_t": 8, "uint64_t": 8,
    "int64_t": 8, "mjtBool": 1, "mjtByte": 1, "char": 1, "bool": 1, "unsigned char": 1,
}  # fmt: skip
_DTYPES = {
    "mjtNum": "float64", "double": "float64", "float": "float32", "int": "int32", "mjtSize": "int64",
    "int64_t": "int64", "mjtBool": "bool_", "bool": "bool_", "mjtByte": "uint8",
}  # fmt: skip
_LOADS = {"float64": "load_float64({})", "int32": "np.int64(load_int32({}))", "int64": "load_int64({})",
          "uint8": "np.int64(load_uint8({}))", "bool_": "load_uint8({}) != 0"}  # fmt: skip
_NESTED = ("opt", "stat")
"""Structures inside a model whose numbers functions may name, as in ``model.opt.timestep``."""


@dataclass(frozen=True)
class Field:
    """One field: where it stands, what it holds, and how far an array extends (numbers, or names of other fields)."""

    name: str
    offset: int
    dtype: str
    extents: tuple[int | str, ...] = ()
    pointer: bool = False


class UnknownStructure(ClipUpError, RuntimeError):
    """This version of MuJoCo keeps its fields in another place than it says."""


def _measure(kind: Any) -> tuple[int, int]:
    """Return size and alignment of a C type as `mujoco.introspect` describes it."""
    form = type(kind).__name__
    if form == "PointerType":
        return 8, 8
    if form == "ArrayType":
        size, alignment = _measure(kind.inner_type)
        return size * math.prod(kind.extents), alignment
    if form == "AnonymousStructDecl":
        size, alignment, _ = _place(kind.fields)
        return size, alignment
    from mujoco.introspect.structs import STRUCTS

    if kind.name in STRUCTS:
        size, alignment, _ = _place(STRUCTS[kind.name].fields)
        return size, alignment
    size = _SIZES.get(kind.name, 4)  # the rest are enumerations
    return size, size


def _place(fields: Iterable[Any]) -> tuple[int, int, dict[str, int]]:
    """Return size and alignment of a structure, and the offset of each field."""
    position, largest, offsets = 0, 1, dict[str, int]()
    for field in fields:
        size, alignment = _measure(field.type)
        position = -(-position // alignment) * alignment
        offsets[field.name] = position
        position += size
        largest = max(largest, alignment)
    return -(-position // largest) * largest, largest, offsets


@cache
def layout(structure: str) -> dict[str, Field]:
    """Return the fields of a structure that machine code can read: numbers, and arrays of numbers."""
    from mujoco.introspect.structs import STRUCTS

    _, _, offsets = _place(STRUCTS[structure].fields)
    found: dict[str, Field] = {}
    for declared in STRUCTS[structure].fields:
        kind: Any = declared.type
        form = type(kind).__name__
        inner = kind if form == "ValueType" else kind.inner_type if form in ("PointerType", "ArrayType") else None
        dtype = _DTYPES.get(getattr(inner, "name", ""))
        if dtype is None or (form == "PointerType" and declared.array_extent is None):
            continue
        extents = declared.array_extent if form == "PointerType" else getattr(kind, "extents", ())
        found[declared.name] = Field(declared.name, offsets[declared.name], dtype, tuple(extents), form == "PointerType")
    return found


@cache
def offset(structure: str, field: str) -> int:
    """Return where any field of a structure starts, in bytes."""
    from mujoco.introspect.structs import STRUCTS

    return _place(STRUCTS[structure].fields)[2][field]


def _extent(extent: int | str) -> str:
    """Return an expression for one extent of an array."""
    import mujoco

    if isinstance(extent, int):
        return str(extent)
    parts: list[str] = []
    for part in extent.split("*"):
        if part.isdecimal():
            parts.append(part)
        elif part in layout("mjModel"):
            parts.append(_LOADS[layout("mjModel")[part].dtype].format(f"model + {layout('mjModel')[part].offset}"))
        elif part in layout("mjData"):
            parts.append(_LOADS[layout("mjData")[part].dtype].format(f"data + {layout('mjData')[part].offset}"))
        else:
            parts.append(str(int(getattr(mujoco, part))))
    return " * ".join(parts)


def _expression(field: Field, place: str) -> str:
    address = f"{place} + {field.offset}"
    if not field.extents:
        return _LOADS[field.dtype].format(address)
    start = f"load_int64({address})" if field.pointer else address
    shape = ", ".join(map(_extent, field.extents))
    return f"carray(pointer_to({start}), ({shape},), np.{field.dtype})"


def used(functions: Iterable[object], structure: str) -> list[Field]:
    """Return the fields of a structure that the functions name."""
    names = attribute_names(functions)
    return [field for name, field in layout(structure).items() if name in names]


def reader(functions: list[object], structure: str) -> Callable[[int, int], Any]:
    """Return a function, for machine code, of the addresses of a model and its data.

    It gives a tuple of views of the fields of `structure` that the functions name, under their own names.
    """
    from collections import namedtuple

    place = "model" if structure == "mjModel" else "data"
    fields = used(functions, structure)
    names = [field.name for field in fields]
    items = [_expression(field, place) for field in fields]
    spaces: dict[str, object] = {}
    for nested in _NESTED if structure == "mjModel" else ():
        inner = used(functions, "mjOption" if nested == "opt" else "mjStatistic")
        if nested in attribute_names(functions) and inner:
            spaces[nested] = namedtuple(nested, [field.name for field in inner])  # noqa: PYI024
            start = f"({place} + {offset(structure, nested)})"
            items.append(f"{nested}({', '.join(_expression(field, start) for field in inner)})")
            names.append(nested)
    if not names:  # an empty tuple has no type that could tell a model from data
        names, items = ["nothing"], ["0"]
    spaces["Fields"] = namedtuple(structure, names)  # noqa: PYI024
    return generate(f"Fields({', '.join(items)})", ("model", "data"), spaces)


def check(functions: list[object], model: Any, data: Any) -> None:
    """Raise `UnknownStructure` unless the fields that the functions name, and our own, are where we expect them."""
    import mujoco

    ours = {"mjModel": ("nq", "nv", "nu"), "mjData": ("qpos", "qvel", "ctrl")}
    for structure, owner in (("mjModel", model), ("mjData", data)):
        fields = {field.name: field for field in used(functions, structure)}
        fields.update({name: layout(structure)[name] for name in ours[structure]})
        for field in fields.values():
            if not _agrees(field, owner):
                raise UnknownStructure(
                    f"MuJoCo {mujoco.__version__} does not keep {structure}.{field.name} where mujoco.introspect says; "
                    "use engine 'gymnasium'"
                )


def _agrees(field: Field, owner: Any) -> bool:
    """Return whether memory holds what MuJoCo's own binding shows for a field."""
    value = getattr(owner, field.name)
    address = owner._address + field.offset
    if field.pointer:
        start = ctypes.c_uint64.from_address(address).value
        return value.size == 0 or start == value.ctypes.data
    if field.extents:
        return value.ctypes.data == address
    kind = np.dtype("uint8" if field.dtype == "bool_" else field.dtype)
    read = np.frombuffer((ctypes.c_char * kind.itemsize).from_address(address), kind)[0]
    return bool(read == value)
