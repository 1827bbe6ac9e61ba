"""numpy's random numbers in machine code: PCG64 seeded by `SeedSequence`, bit for bit.

In plain Python `seeded_random` returns numpy's own generator. In machine code it returns an object with the same
methods ``random()``, ``uniform(low, high)``, ``standard_normal()`` and ``normal(mean, stdev)``, and the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clipup.compilation.functions import primitive

STATE_WORDS = 4
"""Words of eight bytes that hold a generator: its state and its increment, the high half of each first."""


@primitive
def seeded_random(state: Any, seed: Any) -> Any:
    """Return ``numpy.random.default_rng(seed)`` for a seed below 2**32; `state` is where machine code keeps it."""
    return np.random.default_rng(int(seed))
