"""Results as bytes: 24 a candidate and a header of 12, plus the moments where they are collected."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from clipup.engines import Failure, Outcomes
from clipup.policies import Moments
from clipup.searches.gradient import Sums

_OUTCOMES = struct.Struct("<III")  # candidates, observation size (0: no moments), failures
_SUMS = struct.Struct("<II")  # blocks, dimension


def pack_outcomes(outcomes: Outcomes) -> bytes:
    """Return the outcomes as bytes."""
    moments = outcomes.moments
    size = 0 if moments is None else moments.mean.shape[1]
    parts = [
        _OUTCOMES.pack(len(outcomes), size, len(outcomes.failures)),
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


def unpack_outcomes(data: bytes) -> Outcomes:
    """Return what `pack_outcomes` packed; its arrays are read-only."""
    rows, size, failed = _OUTCOMES.unpack_from(data)
    reader = _Reader(data, _OUTCOMES.size)
    fitness, returns, interactions = reader.floats(rows), reader.floats(rows), reader.integers(rows)
    moments = None
    if size:
        moments = Moments(
            reader.integers(rows),
            reader.floats(rows * size).reshape(rows, size),
            reader.floats(rows * size).reshape(rows, size),
        )
    failures: tuple[Failure, ...] = ()
    if failed:
        listed = cast("list[tuple[int, str]]", json.loads(data[reader.offset :]))
        failures = tuple(Failure(index, message) for index, message in listed)
    return Outcomes(fitness, returns, interactions, moments, failures)


def pack_sums(blocks: Sequence[Sums]) -> bytes:
    """Return the sums of consecutive blocks as bytes."""
    parts = [_SUMS.pack(len(blocks), len(blocks[0].even) if blocks else 0)]
    for block in blocks:
        parts += [array.astype("<f8").tobytes() for array in (block.even, block.odd, block.squares)]
    return b"".join(parts)


def unpack_sums(data: bytes) -> list[Sums]:
    """Return what `pack_sums` packed; its arrays are read-only."""
    count, dimension = _SUMS.unpack_from(data)
    reader = _Reader(data, _SUMS.size)
    return [Sums(*(reader.floats(dimension) for _ in range(3))) for _ in range(count)]


class _Reader:
    """Walks through bytes, an array at a time."""

    def __init__(self, data: bytes, offset: int) -> None:
        self._data = data
        self.offset = offset

    def floats(self, count: int) -> NDArray[np.float64]:
        values = np.frombuffer(self._data, "<f8", count, self.offset)
        self.offset += values.nbytes
        return values

    def integers(self, count: int) -> NDArray[np.int64]:
        values = np.frombuffer(self._data, "<i8", count, self.offset)
        self.offset += values.nbytes
        return values
