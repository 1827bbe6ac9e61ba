"""The few operations that Python has no words for; `intrinsics` has them in machine code.

In plain Python (``NUMBA_DISABLE_JIT=1``) there is one thread, so nothing here needs to be atomic. `address_of`,
`load_int32` and `call_pair` exist in machine code alone.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from clipup.compilation.functions import primitive


@primitive
def take_next(counter: Any) -> int:
    """Return the number in a vector of one int64 and add one to it, in one go for all threads."""
    number = int(counter[0])
    counter[0] = number + 1
    return number


@primitive
def present(number: Any) -> int:
    """Return the number in a vector of one int64 as it is now, whatever it was a moment ago."""
    return int(number[0])


@primitive
def address_of(pointer: Any) -> int:
    """Return a pointer as a number."""
    raise NotImplementedError


@primitive
def load_int32(address: int) -> int:
    """Return the whole number of four bytes at an address."""
    raise NotImplementedError


@primitive
def call_pair(function: int, first: int, second: int) -> None:
    """Call the C function at an address, which takes two pointers and returns nothing."""
    raise NotImplementedError


@primitive
def call_policy(function: int, words: int, row: int, slot: int) -> int:
    """Let the policy of candidate `row` take one step with the memory of `slot`; see `clipup.policies.stepping`."""
    return _policies[function](row, slot, 1)


_policies: dict[int, Callable[[int, int, int], int]] = {}
_numbers = count(1)


def register_policy(run: Callable[[int, int, int], int]) -> int:
    """Return a number that stands for the address of a policy, where there is no machine code."""
    number = next(_numbers)
    _policies[number] = run
    return number


def forget_policy(number: int) -> None:
    """Forget what `register_policy` was told."""
    _policies.pop(number, None)
