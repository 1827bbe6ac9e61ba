"""The few operations that Python has no words for, in plain Python; `intrinsics` has them in machine code.

In plain Python (``NUMBA_DISABLE_JIT=1``) there is one thread, so nothing here needs to be atomic.
"""

from __future__ import annotations

from typing import Any

from clipup.compilation.functions import primitive


@primitive
def take_next(counter: Any) -> int:
    """Return the number in a vector of one int64 and add one to it, in one go for all threads."""
    number = int(counter[0])
    counter[0] = number + 1
    return number


@primitive
def is_set(flag: Any) -> bool:
    """Return whether a vector of one int64 is not zero now, whatever it was a moment ago."""
    return bool(flag[0] != 0)
