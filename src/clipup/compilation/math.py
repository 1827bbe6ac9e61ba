"""Elementary functions from additions, multiplications and divisions alone, so their bits are equal everywhere.

The C library's and numpy's own functions may differ in the last bit between processors, versions and systems. IEEE 754
defines the four operations, rounding and scaling by powers of two to the last bit, and these functions use nothing
else. Each is a plain Python function that Numba can compile. Errors are below one unit in the last place of float64
(`tanh`: below two).

The method is the usual one: take away a multiple of ln 2 or π/2, held as a sum of two or three numbers, and sum the
Taylor series of what is left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LOG2E = float.fromhex("0x1.71547652b82fep+0")
# ln 2: 32 bits, so that a product with a small integer is exact, and the rest.
_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_LARGEST_EXPONENT = 709.782712893384
_POWERS_OF_TWO = 2.0 ** np.arange(59)
_TWO_OVER_PI = float.fromhex("0x1.45f306dc9c883p-1")
# π/2: twice 33 bits, and the rest.
_HALF_PI_1 = float.fromhex("0x1.921fb54400000p+0")
_HALF_PI_2 = float.fromhex("0x1.0b4611a600000p-34")
_HALF_PI_3 = float.fromhex("0x1.3198a2e037073p-69")


def _exp_tail(r: Any) -> Any:
    """Return ``exp(r) - 1 - r`` for ``|r| ≤ ln(2) / 2``."""
    s = r * (1 / 6227020800) + 1 / 479001600
    s = s * r + 1 / 39916800
    s = s * r + 1 / 3628800
    s = s * r + 1 / 362880
    s = s * r + 1 / 40320
    s = s * r + 1 / 5040
    s = s * r + 1 / 720
    s = s * r + 1 / 120
    s = s * r + 1 / 24
    s = s * r + 1 / 6
    s = s * r + 0.5
    return s * (r * r)


def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent of a float64, or of each number of a float64 array."""
    # tanh|x| = t / (t + 2) with t = exp(2|x|) - 1. Beyond 20 it is 1 to the last bit.
    y = np.minimum(np.abs(x), 20.0) * 2.0
    k = np.rint(np.fmin(y * _LOG2E, 58.0))  # a NaN must not become an index; it stays in r
    r = (y - k * _LN2_HIGH) - k * _LN2_LOW
    power = _POWERS_OF_TWO[np.int32(k)]
    t = power * (r + _exp_tail(r)) + (power - 1.0)
    return np.copysign(t / (t + 2.0), x)


def exp(x: float) -> float:
    """Return the exponential of a float64."""
    if math.isnan(x):
        return x
    if x > _LARGEST_EXPONENT:
        return math.inf
    y = max(x, -746.0)  # whose exponential is zero
    k = np.rint(y * _LOG2E)
    r_high = y - k * _LN2_HIGH
    r_low = k * _LN2_LOW
    r = r_high - r_low
    lost = (r_high - r) - r_low
    return math.ldexp(1.0 + (r + (_exp_tail(r) + lost)), int(k))


def exp_each(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the exponential of each number, to the bits of `exp`. numpy's own differs between processors.

    >>> exp_each(np.array([0.0, 1.0, -np.inf, np.inf])).tolist() == [1.0, exp(1.0), 0.0, math.inf]
    True
    """
    y = np.clip(values, -746.0, _LARGEST_EXPONENT)
    k = np.rint(y * _LOG2E)
    r_high = y - k * _LN2_HIGH
    r_low = k * _LN2_LOW
    r = r_high - r_low
    lost = (r_high - r) - r_low
    powers = np.where(np.isnan(k), 0.0, k).astype(np.int32)  # a NaN must not become a whole number; it stays in r
    found = np.ldexp(1.0 + (r + (_exp_tail(r) + lost)), powers)
    return np.where(values > _LARGEST_EXPONENT, math.inf, found)


def log_each(values: Iterable[float]) -> NDArray[np.float64]:
    """Return the logarithm of each number, from the C library. numpy's own differs between processors.

    >>> log_each([1.0, 2.0]).tolist() == [0.0, math.log(2.0)]
    True
    """
    return np.array([math.log(value) for value in values])


def _quadrant(x: float) -> tuple[int, float, float]:
    """Return which multiple of π/2 is nearest to x (modulo 4), and x less that multiple as a sum of two numbers.

    Exact enough up to about a million radians. Beyond, the result is that of an angle which differs from x by about one
    unit in its last place.
    """
    k = np.rint(x * _TWO_OVER_PI)
    first = x - k * _HALF_PI_1
    second = k * _HALF_PI_2
    high = first - second
    low = ((first - high) - second) - k * _HALF_PI_3
    total = high + low
    return int(k - 4.0 * np.floor(k * 0.25)), total, (high - total) + low


def _sin_near_zero(r: float, low: float) -> float:
    """Return the sine of ``r + low`` for ``|r| ≤ π/4``."""
    z = r * r
    s = z * (1 / 355687428096000) - 1 / 1307674368000
    s = s * z + 1 / 6227020800
    s = s * z - 1 / 39916800
    s = s * z + 1 / 362880
    s = s * z - 1 / 5040
    s = s * z + 1 / 120
    s = s * z - 1 / 6
    return r + (r * z * s + low * (1.0 - 0.5 * z))


def _cos_near_zero(r: float, low: float) -> float:
    """Return the cosine of ``r + low`` for ``|r| ≤ π/4``."""
    z = r * r
    s = z * (1 / 20922789888000) - 1 / 87178291200
    s = s * z + 1 / 479001600
    s = s * z - 1 / 3628800
    s = s * z + 1 / 40320
    s = s * z - 1 / 720
    s = s * z + 1 / 24
    half = 0.5 * z
    most = 1.0 - half
    return most + (((1.0 - most) - half) + (z * z * s - r * low))


def sin(x: float) -> float:
    """Return the sine of a float64; NaN of an infinity."""
    if not math.isfinite(x):
        return math.nan
    quadrant, r, low = _quadrant(x)
    value = _sin_near_zero(r, low) if quadrant % 2 == 0 else _cos_near_zero(r, low)
    return value if quadrant < 2 else -value


def cos(x: float) -> float:
    """Return the cosine of a float64; NaN of an infinity."""
    if not math.isfinite(x):
        return math.nan
    quadrant, r, low = _quadrant(x)
    value = _cos_near_zero(r, low) if quadrant % 2 == 0 else _sin_near_zero(r, low)
    return value if quadrant in (0, 3) else -value
