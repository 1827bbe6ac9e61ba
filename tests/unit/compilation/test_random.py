"""Random numbers in machine code are numpy's, bit for bit."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from clipup.compilation import machine_code
from clipup.compilation.random import STATE_WORDS, seeded_random
from clipup.compilation.structures import array_structure, array_words, viewer

ARRAYS = {"state": ("uint64", 1), "seed": ("int64", 1), "numbers": ("float64", 2)}


def draw(state: Any, seed: int, numbers: Any) -> None:
    random = seeded_random(state, seed)
    for i in range(numbers.shape[0]):
        numbers[i, 0] = random.uniform(-0.05, 0.05)
        numbers[i, 1] = random.random()
        numbers[i, 2] = random.standard_normal()
        numbers[i, 3] = random.normal(1.0, 2.0)


def test_draws_equal_those_of_the_default_generator() -> None:
    structure = array_structure("Draws", ARRAYS)
    view = viewer(structure)

    def run(words: int) -> None:
        block = view(words, 0)
        draw(block.state, block.seed[0], block.numbers)

    code = machine_code.load(run, lambda types: types.void(types.int64), label="a test", facts=(structure,))
    call = ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address)
    for seed in (0, 1, 12345, 2**31, 2**32 - 1):
        numbers, expected = np.zeros((2, 5000, 4))  # enough for the tail of the normal distribution
        call(array_words(ARRAYS, (np.zeros(STATE_WORDS, np.uint64), np.array([seed]), numbers)).ctypes.data)
        draw(None, seed, expected)
        np.testing.assert_array_equal(numbers, expected)
