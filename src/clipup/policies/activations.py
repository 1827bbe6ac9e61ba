"""Activation functions whose bits are equal in machine code, in numpy and on every processor.

All of them come from the four operations and `clipup.compilation.math.tanh`, in float64. Each works on one number, for
machine code, and on an array.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from clipup.compilation.math import tanh

Activation = Literal["identity", "tanh", "relu", "silu", "gelu", "elu"]
ACTIVATIONS: tuple[Activation, ...] = ("identity", "tanh", "relu", "silu", "gelu", "elu")
IDENTITY, TANH, RELU, SILU, GELU, ELU = range(6)
"""The place of each name in `ACTIVATIONS`: how a program of machine code names it."""

GELU_FACTOR, GELU_CUBIC = 0.7978845608028654, 0.044715
"""√(2/π), and the factor of the cube, of the usual approximation by a hyperbolic tangent."""


def sigmoid(x: Any) -> Any:
    """Return the logistic function."""
    return 0.5 * tanh(0.5 * x) + 0.5


def silu(x: Any) -> Any:
    """Return ``x sigmoid(x)``."""
    return x * sigmoid(x)


def gelu(x: Any) -> Any:
    """Return ``x Φ(x)``, approximated by ``x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2``."""
    return 0.5 * x * (1.0 + tanh(GELU_FACTOR * (x + GELU_CUBIC * (x * x * x))))


def exp_minus_one(x: Any) -> Any:
    """Return ``exp(x) - 1`` for x ≤ 0."""
    t = tanh(0.5 * x)
    return 2.0 * t / (1.0 - t)


def activate_one(x: float, activation: int) -> float:
    """Return the activation of one number."""
    if activation == TANH:
        return tanh(x)
    if activation == RELU:
        return 0.0 if x <= 0.0 else x
    if activation == SILU:
        return silu(x)
    if activation == GELU:
        return gelu(x)
    if activation == ELU:
        return exp_minus_one(x) if x <= 0.0 else x
    return x


@np.errstate(over="ignore", invalid="ignore")
def activate(x: NDArray[np.float64], activation: int) -> NDArray[np.float64]:
    """Return the activation of each number of an array."""
    if activation == IDENTITY:
        return x
    if activation == RELU:
        return np.where(x <= 0.0, 0.0, x)
    if activation == ELU:
        return np.where(x <= 0.0, exp_minus_one(np.minimum(x, 0.0)), x)
    return {TANH: tanh, SILU: silu, GELU: gelu}[activation](x)
