"""Elementary functions are right to the last place, compiled or not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from clipup.compilation import math as own

GENERATOR = np.random.default_rng(0)
ANGLES = np.concatenate([
    GENERATOR.uniform(-1, 1, 3000) * 10.0 ** GENERATOR.integers(-8, 6, 3000),
    np.arange(1, 200) * math.pi / 2, [0.0, -0.0, 1e-300],
])  # fmt: skip


def worst_error(function: Any, exact: Any, values: Any) -> float:
    """Return the largest error in units of the last place, measured in extended precision."""
    expected = exact(values.astype(np.longdouble))
    found = np.array([function(float(value)) for value in values])
    unit = np.spacing(np.abs(expected.astype(np.float64))).astype(np.longdouble)
    return float(np.max(np.abs(found.astype(np.longdouble) - expected) / unit))


extended = pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="no extended precision to compare with")


@extended
@pytest.mark.parametrize(("name", "limit"), [("sin", 1.0), ("cos", 1.0)])
def test_sines_are_within_one_unit(name: str, limit: float) -> None:
    assert worst_error(getattr(own, name), getattr(np, name), ANGLES) < limit


@extended
def test_exponentials_are_within_one_unit_and_hyperbolic_tangents_within_two() -> None:
    assert worst_error(own.exp, np.exp, GENERATOR.uniform(-700, 700, 3000)) < 1.0
    assert (
        worst_error(own.tanh, np.tanh, GENERATOR.uniform(-25, 25, 3000) * 10.0 ** GENERATOR.integers(-8, 1, 3000)) < 2.0
    )


def test_a_tangent_rounded_to_float32_is_the_right_one() -> None:
    values = np.concatenate([GENERATOR.uniform(-5, 5, 100_000), GENERATOR.normal(size=100_000) * 0.01]).astype(
        np.float32
    )
    expected = np.tanh(values.astype(np.longdouble)).astype(np.float32)
    assert (own.tanh(values.astype(np.float64)).astype(np.float32) == expected).mean() > 0.99999


def test_one_number_and_an_array_give_the_same_bits() -> None:
    values = GENERATOR.normal(size=1000) * 3
    assert own.tanh(values).tolist() == [float(own.tanh(float(value))) for value in values]


def test_each_exponential_of_an_array_has_the_bits_of_one() -> None:
    values = np.concatenate([GENERATOR.normal(size=1000) * 3, GENERATOR.uniform(-750, 715, 1000), [0.0, -0.0]])
    values = np.concatenate([values, [np.inf, -np.inf, 709.782712893384, -745.2, 5e-324]])
    assert own.exp_each(values).tolist() == [own.exp(float(value)) for value in values]
    assert np.isnan(own.exp_each(np.array([np.nan, 1.0]))).tolist() == [True, False]


def test_the_ends_of_the_range() -> None:
    assert own.tanh(np.array([np.inf, -np.inf, 1e30])).tolist() == [1.0, -1.0, 1.0]
    assert math.isnan(own.tanh(math.nan)) and math.copysign(1.0, own.tanh(-0.0)) == -1.0
    assert own.exp(1000.0) == math.inf and own.exp(-1000.0) == 0.0 and own.exp(0.0) == 1.0
    assert own.exp(-740.0) == pytest.approx(math.exp(-740.0), rel=0.1)
    assert math.isnan(own.exp(math.nan)) and math.isnan(own.sin(math.inf)) and math.isnan(own.cos(math.nan))
    assert own.sin(0.0) == 0.0 and own.cos(0.0) == 1.0
    assert own.sin(1e15) == pytest.approx(math.sin(1e15), abs=1.0)


def test_machine_code_gives_the_same_bits() -> None:
    pytest.importorskip("numba")
    import ctypes

    from clipup.compilation import machine_code
    from clipup.compilation.math import cos, exp, sin, tanh
    from clipup.compilation.structures import array_structure, array_words, viewer

    arrays = {"values": ("float64", 1), "results": ("float64", 2)}
    structure = array_structure("Values", arrays)
    view = viewer(structure)

    def run(words: int) -> None:
        block = view(words, 0)
        for i in range(block.values.size):
            block.results[0, i] = tanh(block.values[i])
            block.results[1, i] = exp(block.values[i])
            block.results[2, i] = sin(block.values[i])
            block.results[3, i] = cos(block.values[i])

    code = machine_code.load(run, lambda types: types.void(types.int64), label="a test", facts=(structure,))
    values = np.clip(ANGLES, -700, 700)
    results = np.zeros((4, len(values)))
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address)(array_words(arrays, (values, results)).ctypes.data)
    for row, function in zip(results, (own.tanh, own.exp, own.sin, own.cos), strict=True):
        assert row.tolist() == [float(function(float(value))) for value in values]
