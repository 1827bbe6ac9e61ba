"""What a rule is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clipup.reproduction.results import GroupResult
from clipup.reproduction.targets import Claim


@dataclass(frozen=True)
class Finding:
    """What a rule found."""

    ours: str
    interval: str
    agrees: bool | None
    """None while nothing can be said: the runs have to go on, or are too few for how much they scatter."""


Groups = dict[str, GroupResult]
Rule = Callable[[Claim, Groups], Finding]
