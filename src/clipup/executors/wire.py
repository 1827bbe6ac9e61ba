"""Results and errors as bytes, for transports. A candidate takes 24 bytes, plus its moments if they are collected."""

from __future__ import annotations

import json
import math
import struct
import traceback
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from clipup import errors
from clipup.engines import Failure, Outcomes
from clipup.errors import ClipUpError, EnvironmentFault
from clipup.executors.jobs import Result, Sums
from clipup.policies import Moments

_IS_OUTCOMES, _IS_SUMS = 1, 2
_OUTCOMES = struct.Struct("<BIII")  # kind, candidates, observation size (0: no moments), failures
_SUMS = struct.Struct("<BII")  # kind, blocks, length of the text with the shapes


def pack(result: Result) -> bytes:
    """Return a result as bytes."""
    return _pack_outcomes(result) if isinstance(result, Outcomes) else _pack_sums(result)


def unpack(data: bytes) -> Result:
    """Return what `pack` packed; its arrays are read-only."""
    return _unpack_outcomes(data) if data[0] == _IS_OUTCOMES else _unpack_sums(data)


def pack_error(error: BaseException) -> bytes:
    """Return an error of any class as bytes that can be read anywhere."""
    kind = type(error).__name__ if isinstance(error, ClipUpError) else ""
    message = str(error) if kind else f"a worker failed with {type(error).__name__}: {error}"
    detail = "".join(traceback.format_exception(error))
    return json.dumps([kind, message, detail]).encode()


def unpack_error(data: bytes) -> ClipUpError:
    """Return the error that `pack_error` packed: of its own class if that is one of clipup's, else `EnvironmentFault`.

    Its ``__notes__`` hold the worker's traceback.
    """
    kind, message, detail = json.loads(data)
    known = getattr(errors, kind, None)
    cls = known if isinstance(known, type) and issubclass(known, ClipUpError) else EnvironmentFault
    error = cls(message)
    error.add_note(detail)
    return error


def _pack_outcomes(outcomes: Outcomes) -> bytes:
    moments = outcomes.moments
    size = 0 if moments is None else moments.mean.shape[1]
    parts = [
        _OUTCOMES.pack(_IS_OUTCOMES, len(outcomes), size, len(outcomes.failures)),
        outcomes.fitness.astype("<f8").tobytes(),
        outcomes.returns.astype("<f8").tobytes(),
        outcomes.interactions.astype("<i8").tobytes(),
    ]
    if moments is not None:
        parts += [
            moments.count.astype("<i8").tobytes(),
            moments.mean.astype("<f8").tobytes(),
            moments.m2.astype("<f8").tobytes(),
        ]
    if outcomes.failures:
        parts.append(json.dumps([(failure.index, failure.message) for failure in outcomes.failures]).encode())
    return b"".join(parts)


def _unpack_outcomes(data: bytes) -> Outcomes:
    _, rows, size, failed = _OUTCOMES.unpack_from(data)
    reader = _Reader(data, _OUTCOMES.size)
    fitness, returns, interactions = reader.floats(rows), reader.floats(rows), reader.integers(rows)
    moments = None
    if size:
        moments = Moments(reader.integers(rows), reader.floats(rows, size), reader.floats(rows, size))
    failures: tuple[Failure, ...] = ()
    if failed:
        listed = cast("list[tuple[int, str]]", json.loads(data[reader.offset :]))
        failures = tuple(Failure(index, message) for index, message in listed)
    return Outcomes(fitness, returns, interactions, moments, failures)


def _pack_sums(sums: Sums) -> bytes:
    """Pack the shapes of a block's arrays (all blocks have the same) as text, then the arrays."""
    shapes = json.dumps([array.shape for array in sums[0]]).encode()
    arrays = [array.astype("<f8").tobytes() for block in sums for array in block]
    return b"".join([_SUMS.pack(_IS_SUMS, len(sums), len(shapes)), shapes, *arrays])


def _unpack_sums(data: bytes) -> Sums:
    _, blocks, length = _SUMS.unpack_from(data)
    reader = _Reader(data, _SUMS.size + length)
    shapes = cast("list[list[int]]", json.loads(data[_SUMS.size : reader.offset]))
    return [tuple(reader.floats(*shape) for shape in shapes) for _ in range(blocks)]


class _Reader:
    """Reads arrays from bytes, one after the other."""

    def __init__(self, data: bytes, offset: int) -> None:
        self._data = data
        self.offset = offset

    def floats(self, *shape: int) -> NDArray[np.float64]:
        return self._read("<f8", *shape)

    def integers(self, *shape: int) -> NDArray[np.int64]:
        return self._read("<i8", *shape)

    def _read(self, kind: str, *shape: int) -> NDArray[Any]:
        values = np.frombuffer(self._data, kind, math.prod(shape), self.offset).reshape(shape)
        self.offset += values.nbytes
        return values
