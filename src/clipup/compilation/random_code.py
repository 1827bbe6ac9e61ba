# pyright: basic
"""The generator of `clipup.compilation.random`, for Numba. Imported only to compile.

PCG64 (O'Neill 2014): a linear congruential generator of 128 bits whose state is folded to 64 by XSL-RR. `SeedSequence`
(O'Neill 2015) spreads a seed over a pool of four words and draws the first state from that.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload_method
from numba.np.random._constants import fi_double, ki_double, wi_double, ziggurat_nor_inv_r, ziggurat_nor_r

_LOW_32 = np.uint64(0xFFFFFFFF)
_MULTIPLIER_HIGH, _MULTIPLIER_LOW = np.uint64(0x2360ED051FC65DA4), np.uint64(0x4385DF649FCCF645)


class Random(NamedTuple):
    """A generator in machine code: a view of its four words."""

    state: np.ndarray


@njit
def _multiply(a, b):
    """Return the product of two words as two words."""
    a_low, a_high = a & _LOW_32, a >> np.uint64(32)
    b_low, b_high = b & _LOW_32, b >> np.uint64(32)
    low = a_low * b_low
    middle = a_high * b_low + (low >> np.uint64(32))
    other = a_low * b_high + (middle & _LOW_32)
    return a_high * b_high + (middle >> np.uint64(32)) + (other >> np.uint64(32)), a * b


@njit
def _add(a_high, a_low, b_high, b_low):
    low = a_low + b_low
    carry = np.uint64(1) if low < a_low else np.uint64(0)
    return a_high + b_high + carry, low


@njit
def _advance(state):
    """Multiply the 128 bits of the state by the multiplier and add the increment."""
    high, low = _multiply(state[1], _MULTIPLIER_LOW)
    high += state[0] * _MULTIPLIER_LOW + state[1] * _MULTIPLIER_HIGH
    state[0], state[1] = _add(high, low, state[2], state[3])


@njit
def _next_word(state):
    _advance(state)
    value, turn = state[0] ^ state[1], state[0] >> np.uint64(58)
    return (value >> turn) | (value << ((np.uint64(64) - turn) & np.uint64(63)))


@njit
def _next_float(state):
    return np.float64(_next_word(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit
def _hash(value, constant):
    """Return `SeedSequence`'s hash of 32 bits, and the constant for the next one (multiplied before it is used)."""
    value = (value ^ constant) & _LOW_32
    constant = (constant * np.uint64(0x931E8875)) & _LOW_32
    value = (value * constant) & _LOW_32
    return value ^ (value >> np.uint64(16)), constant


@njit
def _mix(x, y):
    value = (np.uint64(0xCA01F9DD) * x - np.uint64(0x4973F715) * y) & _LOW_32
    return value ^ (value >> np.uint64(16))


@njit
def seeded_random(state, seed):
    """Return the generator whose four words are in `state`, seeded as numpy seeds it."""
    # Four words of 32 bits: the seed, and zeros.
    constant = np.uint64(0x43B0D7E5)
    p0, constant = _hash(np.uint64(seed), constant)
    p1, constant = _hash(np.uint64(0), constant)
    p2, constant = _hash(np.uint64(0), constant)
    p3, constant = _hash(np.uint64(0), constant)
    # Every word is mixed into every other.
    for source in range(4):
        for target in range(4):
            if source != target:
                x = p0 if source == 0 else p1 if source == 1 else p2 if source == 2 else p3
                hashed, constant = _hash(x, constant)
                if target == 0:
                    p0 = _mix(p0, hashed)
                elif target == 1:
                    p1 = _mix(p1, hashed)
                elif target == 2:
                    p2 = _mix(p2, hashed)
                else:
                    p3 = _mix(p3, hashed)
    # Eight words are drawn from the pool; two make one of 64 bits, the low half first.
    constant = np.uint64(0x8B51F9DD)
    for i in range(8):
        x = p0 if i % 4 == 0 else p1 if i % 4 == 1 else p2 if i % 4 == 2 else p3
        x = (x ^ constant) & _LOW_32
        constant = (constant * np.uint64(0x58F38DED)) & _LOW_32
        x = (x * constant) & _LOW_32
        x = x ^ (x >> np.uint64(16))
        if i % 2 == 0:
            state[i // 2] = x
        else:
            state[i // 2] |= x << np.uint64(32)
    start_high, start_low = state[0], state[1]
    # The increment is odd: twice the sequence's number and one.
    state[2] = (state[2] << np.uint64(1)) | (state[3] >> np.uint64(63))
    state[3] = (state[3] << np.uint64(1)) | np.uint64(1)
    state[0], state[1] = np.uint64(0), np.uint64(0)
    _advance(state)
    state[0], state[1] = _add(state[0], state[1], start_high, start_low)
    _advance(state)
    return Random(state)


@njit
def _standard_normal(state):
    """Return a normal number by numpy's ziggurat of 256 layers (Marsaglia and Tsang 2000)."""
    while True:
        bits = _next_word(state)
        layer = np.int64(bits & np.uint64(0xFF))
        bits >>= np.uint64(8)
        negative = bits & np.uint64(1)
        height = (bits >> np.uint64(1)) & np.uint64(0x000FFFFFFFFFFFFF)
        x = np.float64(height) * wi_double[layer]
        if negative:
            x = -x
        if height < ki_double[layer]:
            return x
        if layer == 0:
            while True:
                along = -ziggurat_nor_inv_r * math.log1p(-_next_float(state))
                under = -math.log1p(-_next_float(state))
                if under + under > along * along:
                    return (
                        -(ziggurat_nor_r + along) if (height >> np.uint64(8)) & np.uint64(1) else ziggurat_nor_r + along
                    )
        elif (fi_double[layer - 1] - fi_double[layer]) * _next_float(state) + fi_double[layer] < math.exp(-0.5 * x * x):
            return x


def _is_random(kind):
    return isinstance(kind, types.NamedUniTuple) and kind.instance_class is Random


@overload_method(types.NamedUniTuple, "random")
def _random(generator):
    if _is_random(generator):
        return lambda generator: _next_float(generator.state)
    return None


@overload_method(types.NamedUniTuple, "uniform")
def _uniform(generator, low=0.0, high=1.0):
    if _is_random(generator):
        return lambda generator, low=0.0, high=1.0: low + (high - low) * _next_float(generator.state)
    return None


@overload_method(types.NamedUniTuple, "standard_normal")
def _normal_of_one(generator):
    if _is_random(generator):
        return lambda generator: _standard_normal(generator.state)
    return None


@overload_method(types.NamedUniTuple, "normal")
def _normal(generator, loc=0.0, scale=1.0):
    if _is_random(generator):
        return lambda generator, loc=0.0, scale=1.0: loc + scale * _standard_normal(generator.state)
    return None
