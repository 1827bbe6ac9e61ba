"""Results and errors as bytes, for transports. A candidate takes 24 bytes, plus its moments if they are collected."""

from __future__ import annotations

import json
import math
import struct
import traceback
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clipup import errors
from clipup.engines import Failure, Outcomes
from clipup.errors import ClipUpError, EnvironmentFault
from clipup.executors.jobs import Result
from clipup.policies import Moments

_LENGTH = struct.Struct("<I")  # of the text that describes the arrays after it


def pack(result: Result) -> bytes:
    """Return a result as bytes: its length, a text that describes it, its arrays."""
    about: dict[str, object] = {}
    if isinstance(result, Outcomes):
        moments = result.moments
        arrays: list[NDArray[Any]] = [result.fitness, result.returns, result.interactions]
        arrays += [] if moments is None else [moments.count, moments.mean, moments.m2]
        about["failures"] = [(failure.index, failure.message) for failure in result.failures]
    else:
        arrays = [array for block in result for array in block]
        about["blocks"] = len(result)
    about["arrays"] = [(array.dtype.str, array.shape) for array in arrays]
    text = json.dumps(about).encode()
    return b"".join([_LENGTH.pack(len(text)), text, *(array.tobytes() for array in arrays)])


def unpack(data: bytes) -> Result:
    """Return what `pack` packed; its arrays are read-only."""
    offset = _LENGTH.size + _LENGTH.unpack_from(data)[0]
    about = json.loads(data[_LENGTH.size : offset])
    arrays: list[NDArray[Any]] = []
    for kind, shape in about["arrays"]:
        arrays.append(np.frombuffer(data, kind, math.prod(shape), offset).reshape(shape))
        offset += arrays[-1].nbytes
    if "blocks" in about:
        size = len(arrays) // about["blocks"]
        return [tuple(arrays[number * size :][:size]) for number in range(about["blocks"])]
    fitness, returns, interactions, *moments = arrays
    failures = tuple(Failure(index, message) for index, message in about["failures"])
    return Outcomes(fitness, returns, interactions, Moments(*moments) if moments else None, failures)


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
