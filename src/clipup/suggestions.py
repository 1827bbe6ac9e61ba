"""The known words that look most like a mistyped one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the nearest known word, or nothing when none is near.

    >>> did_you_mean("max_sped", ["max_speed", "momentum"])
    "; did you mean 'max_speed'?"
    >>> did_you_mean("zzz", ["max_speed"])
    ''
    """
    near = nearest(word, known, count=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def nearest(word: str, known: Iterable[str], *, count: int = 3) -> list[str]:
    """Return the known words that look most like `word`, best first; upper and lower case count as the same."""
    by_folded: dict[str, str] = {}
    for name in known:
        by_folded.setdefault(name.casefold(), name)
    matches = difflib.get_close_matches(word.casefold(), by_folded, n=count, cutoff=0.6)
    return [by_folded[match] for match in matches]
