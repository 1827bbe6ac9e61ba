"""Numpy views of memory at an address, for machine code and, the same, for plain Python."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from clipup.compilation.functions import primitive


def _view(address: int, kind: Any, shape: tuple[int, ...]) -> Any:
    count = int(np.prod(shape))
    if not count:
        return np.zeros(shape, kind)
    size = count * np.dtype(kind).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(int(address)), kind).reshape(shape)


@primitive
def int64_vector(address: Any, count: int) -> Any:
    """Return `count` whole numbers at an address."""
    return _view(address, np.int64, (count,))


@primitive
def float64_vector(address: Any, count: int) -> Any:
    """Return `count` float64 numbers at an address."""
    return _view(address, np.float64, (count,))


@primitive
def float64_table(address: Any, rows: int, columns: int) -> Any:
    """Return rows of float64 numbers at an address."""
    return _view(address, np.float64, (rows, columns))


@primitive
def float32_table(address: Any, rows: int, columns: int) -> Any:
    """Return rows of float32 numbers at an address."""
    return _view(address, np.float32, (rows, columns))
