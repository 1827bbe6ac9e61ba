"""A short look at a task before it is trained on: does its seed decide where an episode starts, and does one end?

The numbers of these starts also tell whether two machines simulate alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clipup.errors import InvalidArgument

SEEDS = (3, 5, 8)
"""The seeds whose starts are compared; the first is used twice."""
STEPS = 3
"""How many steps are compared after each start."""
LONGEST = 20_000
"""An episode that does not end within this many steps of doing nothing counts as endless."""

Start = Sequence[NDArray[np.generic]]
"""The observations and rewards of the first few steps."""


@dataclass(frozen=True)
class Inspection:
    """What a look at a task found."""

    notes: tuple[str, ...] = ()
    """What is odd about it, one sentence each."""
    digest: str = ""
    """Of the numbers of the first steps: equal on machines that simulate alike. Empty where it says nothing."""


def compared(label: str, starts: Sequence[Start], again: Start) -> Inspection:
    """Return what the starts of an environment tell.

    Parameters
    ----------
    label
        The name of the environment.
    starts
        The start of each of `SEEDS`, with the same actions.
    again
        The start of the first seed, once more.
    """
    if not _same(starts[0], again):
        note = f"{label} ignores its seed: equal seeds start differently, so this run cannot be repeated exactly"
        return Inspection((note,))
    digest = digest_of([array for start in starts for array in start])
    if all(_same(starts[0], other) for other in starts[1:]):
        note = f"{label} starts the same whatever the seed: a policy may learn this one start by heart"
        return Inspection((note,), digest)
    return Inspection((), digest)


def digest_of(arrays: Sequence[NDArray[np.generic]]) -> str:
    """Return a digest of the numbers in some arrays."""
    return hashlib.sha256(b"".join(np.asarray(array, np.float64).tobytes() for array in arrays)).hexdigest()[:16]


def endless(label: str) -> InvalidArgument:
    """Return the error for an environment whose episodes do not end."""
    return InvalidArgument(
        f"{label} has no limit of its own, and an episode did not end within {LONGEST} steps; "
        "set max_episode_steps (--max-episode-steps N)"
    )


def _same(one: Start, other: Start) -> bool:
    return len(one) == len(other) and all(
        np.array_equal(np.asarray(a, np.float64), np.asarray(b, np.float64), equal_nan=True)
        for a, b in zip(one, other, strict=True)
    )
