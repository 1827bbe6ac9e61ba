"""Where MuJoCo's structures keep their fields, so that machine code can read them.

`mujoco.introspect` describes ``mjModel`` and ``mjData`` as C does. From that follow the offsets, by C's rules for
alignment. They are checked against a real model and its data before anything relies on them.
"""

from __future__ import annotations

import ctypes
import importlib
import math
from collections.abc import Iterable
from functools import cache
from typing import Any, cast

import numpy as np

from clipup.compilation.functions import attribute_names
from clipup.compilation.structures import Array, Field, Nested, Number, Structure, Tuple
from clipup.errors import ClipUpError

_SIZES = {
    "mjtNum": 8, "double": 8, "float": 4, "int": 4, "mjtSize": 8, "size_t": 8, "uintptr_t": 8, "uint64_t": 8,
    "int64_t": 8, "mjtBool": 1, "mjtByte": 1, "char": 1, "bool": 1, "unsigned char": 1,
}  # fmt: skip
_DTYPES = {
    "mjtNum": "float64", "double": "float64", "float": "float32", "int": "int32", "mjtSize": "int64",
    "int64_t": "int64", "mjtBool": "bool", "bool": "bool", "mjtByte": "uint8",
}  # fmt: skip
_NESTED = ("mjOption", "mjStatistic")
"""Structures inside a model whose numbers functions may name, as in ``model.opt.timestep``."""


class UnknownStructure(ClipUpError, RuntimeError):
    """This version of MuJoCo keeps its fields in another place than it says."""


@cache
def _declarations() -> dict[str, Any]:
    """Return MuJoCo's structures by name, as it declares them."""
    return importlib.import_module("mujoco.introspect.structs").STRUCTS


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
    if kind.name in _declarations():
        size, alignment, _ = _place(_declarations()[kind.name].fields)
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
def offsets(structure: str) -> dict[str, int]:
    """Return where each field of a structure starts, in bytes."""
    return _place(_declarations()[structure].fields)[2]


@cache
def structure(name: str) -> Structure:
    """Return the fields of MuJoCo's structure that machine code can read: numbers, arrays, and a model's options.

    A view of ``mjData`` has the model's address elsewhere, where the sizes of most arrays stand, and a view of
    ``mjModel`` that of the data.
    """
    found: list[tuple[str, Field]] = []
    for declared in _declarations()[name].fields:
        kind: Any = declared.type
        form, start = type(kind).__name__, offsets(name)[declared.name]
        if form == "ValueType" and kind.name in _DTYPES:
            found.append((declared.name, Number(start, _DTYPES[kind.name])))
        elif form == "ValueType" and kind.name in _NESTED:
            found.append((declared.name, Nested(start, structure(kind.name))))
        elif form in ("PointerType", "ArrayType") and getattr(kind.inner_type, "name", "") in _DTYPES:
            extents = declared.array_extent if form == "PointerType" else kind.extents
            factors = tuple(_factors(extent, name) for extent in extents or (None,))
            if None not in factors:
                known = cast("tuple[tuple[int | Number, ...], ...]", factors)
                found.append((declared.name, Array(start, _DTYPES[kind.inner_type.name], known, form == "PointerType")))
    return Structure(name, tuple(found))


@cache
def _sizes(owner: str) -> dict[str, Number]:
    """Return the whole numbers of a model and its data, as a view of one of them finds them."""
    found: dict[str, Number] = {}
    for name in ("mjData", "mjModel"):
        for field in _declarations()[name].fields:
            kind = getattr(field.type, "name", "")
            if kind in ("int", "mjtSize"):
                found[field.name] = Number(offsets(name)[field.name], _DTYPES[kind], elsewhere=name != owner)
    return found


def _factors(extent: int | str | None, owner: str) -> tuple[int | Number, ...] | None:
    """Return an extent as a product (``nmocap*3``: a number of the model, times three); None for an unknown one."""
    mujoco = importlib.import_module("mujoco")
    factors: list[int | Number] = []
    for part in str(extent).split("*"):
        if part in _sizes(owner):
            factors.append(_sizes(owner)[part])
        elif part.isdecimal() or hasattr(mujoco, part):
            factors.append(int(part) if part.isdecimal() else int(getattr(mujoco, part)))
        else:
            return None
    return tuple(factors)


def check(functions: list[object], model: Any, data: Any) -> None:
    """Raise `UnknownStructure` unless the fields that the functions name, and our own, are where we expect them."""
    names = attribute_names(functions) | {"nq", "nv", "nu", "qpos", "qvel", "ctrl"}
    for name, owner in (("mjModel", model), ("mjData", data)):
        for field_name, field in structure(name).fields:
            if field_name in names and not _agrees(field, getattr(owner, field_name, None), owner._address):
                raise UnknownStructure(
                    f"this MuJoCo does not keep {name}.{field_name} where mujoco.introspect says; "
                    "use engine 'gymnasium'"
                )


def _agrees(field: Field, value: Any, start: int) -> bool:
    """Return whether memory holds what MuJoCo's own binding shows for a field."""
    if isinstance(field, Nested):
        return all(
            _agrees(inner, getattr(value, name, None), start + field.offset) for name, inner in field.structure.fields
        )
    if value is None or isinstance(field, Tuple):
        return False
    address = start + field.offset
    if isinstance(field, Array):
        if field.pointer:
            address = ctypes.c_uint64.from_address(address).value
        return value.size == 0 or value.ctypes.data == address
    kind = np.dtype("uint8" if field.dtype == "bool" else field.dtype)
    return bool(np.frombuffer(ctypes.string_at(address, kind.itemsize), kind)[0] == value)
