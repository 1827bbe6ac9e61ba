"""Reads and writes safetensors files with numpy only.

The format is an 8-byte little-endian header length, a JSON header that names every tensor's dtype, shape and byte
range, and the bytes themselves. Every field is checked before any array is made. So a bad file cannot run code, import
a module or ask for more memory than it has bytes. Files written here also hold a digest of their whole content, so that
a change of any byte is noticed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from clipup.decoding import HEADER, decode_object
from clipup.errors import FileFault, InvalidArgument

Array = NDArray[np.generic]

SIZE_LIMIT = 1024**3
"""Largest file accepted: 89 million parameters with their standard deviations and velocities."""

HEADER_LIMIT = HEADER.size
"""Longest header accepted. Ours take a few kilobytes; a longer one means damage, or an attempt to exhaust memory."""

DIMENSION_LIMIT = 32

DIGEST_KEY = "sha256"

_DTYPES: dict[str, str] = {
    "BOOL": "|b1",
    "U8": "|u1",
    "I8": "|i1",
    "U16": "<u2",
    "I16": "<i2",
    "U32": "<u4",
    "I32": "<i4",
    "U64": "<u8",
    "I64": "<i8",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
}
_NAMES = {np.dtype(text): name for name, text in _DTYPES.items()}


@dataclass(frozen=True)
class TensorFile:
    """What a safetensors file holds: arrays by name, and text by name."""

    tensors: dict[str, Array]
    metadata: dict[str, str]


@dataclass(frozen=True)
class _Entry:
    name: str
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    start: int
    stop: int


def encode(tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> bytes:
    """Return a file with these tensors and texts, and a digest of both. Equal content gives equal bytes."""
    for name, text in metadata.items():
        if name == DIGEST_KEY:
            raise InvalidArgument(f"metadata key {DIGEST_KEY!r} is reserved for the digest; choose another")
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument(f"metadata values must be text, got {type(text).__name__} for {name!r}")
    arrays: dict[str, Array] = {}
    for name in sorted(tensors):
        array = tensors[name]
        little_endian = array.dtype.newbyteorder("<")
        if little_endian not in _NAMES:
            raise InvalidArgument(f"tensor {name!r} has dtype {array.dtype}, which safetensors cannot hold")
        # ascontiguousarray turns a scalar into one dimension; the reshape undoes that.
        arrays[name] = np.ascontiguousarray(array, dtype=little_endian).reshape(array.shape)
    complete = {**metadata, DIGEST_KEY: _digest(arrays, metadata)}
    body = b"".join(array.tobytes() for array in arrays.values())
    header = _header(arrays, complete)
    return len(header).to_bytes(8, "little") + header + body


def decode(data: bytes, *, source: str = "safetensors data", require_digest: bool = True) -> TensorFile:
    """Return the tensors and metadata in `data`; raise `FileFault` if anything is wrong with it.

    With `require_digest` (the default) only files that this module wrote are accepted, unchanged to the last byte.
    Without it, any valid safetensors file is accepted.
    """
    entries, metadata, body = _parse(data, source)
    tensors: dict[str, Array] = {}
    for entry in entries:
        raw = np.frombuffer(body[entry.start : entry.stop], dtype=entry.dtype)
        if entry.dtype == np.bool_ and raw.size and int(raw.view(np.uint8).max()) > 1:
            raise FileFault(f"{source}: tensor {entry.name!r} holds bytes that are neither true nor false")
        try:
            tensors[entry.name] = raw.reshape(entry.shape).copy()
        except ValueError as error:  # it has no bytes, but sizes beyond any array
            raise FileFault(f"{source}: tensor {entry.name!r} cannot have the shape {entry.shape}") from error
    if DIGEST_KEY in metadata:
        expected = metadata.pop(DIGEST_KEY)
        if _digest(tensors, metadata) != expected:
            raise FileFault(f"{source}: the content does not match its digest; the file is damaged")
        if require_digest:
            # The digest covers neither padding nor the spelling of numbers, so the header must be as we write it.
            canonical = _header(tensors, {**metadata, DIGEST_KEY: expected})
            if data[8 : 8 + len(canonical)] != canonical or len(data) != 8 + len(canonical) + len(body):
                raise FileFault(f"{source}: the header is not as clipup writes it; the file is damaged")
    elif require_digest:
        raise FileFault(f"{source}: no digest; this file was not written by clipup")
    return TensorFile(tensors, metadata)


def _digest(tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> str:
    hasher = hashlib.sha256()
    hasher.update(_json({name: metadata[name] for name in sorted(metadata)}))
    for name in sorted(tensors):
        array = tensors[name]
        hasher.update(_json([name, _NAMES[array.dtype.newbyteorder("<")], list(array.shape)]))
        hasher.update(array.tobytes())
    return hasher.hexdigest()


def _header(tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> bytes:
    header: dict[str, object] = {"__metadata__": {name: metadata[name] for name in sorted(metadata)}}
    offset = 0
    for name in sorted(tensors):
        array = tensors[name]
        stop = offset + array.nbytes
        header[name] = {
            "dtype": _NAMES[array.dtype.newbyteorder("<")],
            "shape": list(array.shape),
            "data_offsets": [offset, stop],
        }
        offset = stop
    encoded = _json(header)
    return encoded + b" " * (-len(encoded) % 8)  # readers that map the file need aligned tensors


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def check_head(data: bytes, size: int, source: str) -> int:
    """Return the length of the header of a file of `size` bytes that begins with `data`, or raise FileFault.

    It costs nothing, so it is called before the rest of a file is read.
    """
    if size < 10 or len(data) < 10:
        raise FileFault(f"{source}: {size} bytes are too few for a safetensors file; it was cut short")
    length = int.from_bytes(data[:8], "little")
    if not 2 <= length <= min(HEADER_LIMIT, size - 8):
        raise FileFault(f"{source}: the header claims {length} bytes of {size}; damaged or not safetensors")
    if data[8:9] != b"{":
        raise FileFault(f"{source}: the header is not a JSON object")
    return length


def _parse(data: bytes, source: str) -> tuple[list[_Entry], dict[str, str], memoryview]:
    length = check_head(data, len(data), source)
    body = memoryview(data)[8 + length :]
    fields = decode_object(data[8 : 8 + length], f"{source}: the header", HEADER, repeated_names=False)
    metadata = _metadata(fields.pop("__metadata__", {}), source)
    entries = sorted((_entry(name, value, source) for name, value in fields.items()), key=lambda e: (e.start, e.stop))
    position = 0
    for entry in entries:
        if entry.start != position:
            raise FileFault(f"{source}: tensor {entry.name!r} starts at byte {entry.start}, expected {position}")
        position = entry.stop
    if position != len(body):
        raise FileFault(f"{source}: tensors take {position} bytes, the file has {len(body)}; damaged or cut short")
    return entries, metadata, body


def _metadata(value: object, source: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise FileFault(f"{source}: metadata is not a JSON object")
    metadata: dict[str, str] = {}
    for name, text in cast("dict[str, object]", value).items():
        if not isinstance(text, str):
            raise FileFault(f"{source}: metadata {name!r} is not text")
        metadata[name] = text
    return metadata


def _entry(name: str, value: object, source: str) -> _Entry:
    if not isinstance(value, dict) or set(cast("dict[str, object]", value)) != {"dtype", "shape", "data_offsets"}:
        raise FileFault(f"{source}: tensor {name!r} needs exactly dtype, shape and data_offsets")
    fields = cast("dict[str, object]", value)
    dtype_name = fields["dtype"]
    if not isinstance(dtype_name, str) or dtype_name not in _DTYPES:
        raise FileFault(f"{source}: tensor {name!r} has dtype {str(dtype_name)[:40]!r}; known: {', '.join(_DTYPES)}")
    dtype = np.dtype(_DTYPES[dtype_name])
    shape = _sizes(fields["shape"], f"{source}: shape of tensor {name!r}")
    if len(shape) > DIMENSION_LIMIT:
        raise FileFault(f"{source}: tensor {name!r} has {len(shape)} dimensions; at most {DIMENSION_LIMIT}")
    offsets = _sizes(fields["data_offsets"], f"{source}: data_offsets of tensor {name!r}")
    if len(offsets) != 2 or offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise FileFault(f"{source}: tensor {name!r} has a byte range that does not fit its shape and dtype")
    return _Entry(name, dtype, shape, offsets[0], offsets[1])


def _sizes(value: object, what: str) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise FileFault(f"{what} is not a list")
    sizes: list[int] = []
    for item in cast("list[object]", value):
        if not isinstance(item, int) or isinstance(item, bool) or not 0 <= item < 2**63:
            raise FileFault(f"{what} holds {str(item)[:40]!r}, expected a whole number from 0")
        sizes.append(item)
    return tuple(sizes)
