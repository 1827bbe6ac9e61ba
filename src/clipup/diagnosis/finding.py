"""What a rule reports: a plain sentence, the numbers behind it, and what to change to which value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

Severity = Literal["problem", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("problem", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or probably wrong, with a run.

    `evidence` holds the measured numbers behind the sentence. `change` holds settings of `clipup train` with the values
    to try instead. The suggestion says the same in words.
    """

    rule: str
    severity: Severity
    sentence: str
    suggestion: str
    evidence: Mapping[str, float] = field(default_factory=dict[str, float])
    change: Mapping[str, float] = field(default_factory=dict[str, float])

    def as_json(self) -> dict[str, object]:
        """The finding as plain data, for ``clipup diagnose --json`` and the report."""
        return {**asdict(self), "evidence": _for_json(self.evidence), "change": _for_json(self.change)}


def _for_json(values: Mapping[str, float]) -> dict[str, float | None]:
    """Numbers for JSON: None for nan and infinity, which damaged or older records can give."""
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def two_digits(value: float) -> float:
    """`value` to two significant digits: no suggestion is more precise than that.

    >>> two_digits(0.004999), two_digits(1234.0)
    (0.005, 1200.0)
    """
    return float(f"{value:.2g}")


def percent(share: float) -> str:
    """A share as text. It is never rounded to 0 % or 100 % unless it is exactly that.

    >>> percent(0.5), percent(0.9996), percent(0.0002)
    ('50 %', '99.9 %', 'less than 0.1 %')
    """
    if 0 < share < 0.001:
        return "less than 0.1 %"
    if 0 < share < 0.01 or 0.99 < share < 1:
        return f"{min(100 * share, 99.9):.1f} %"
    return f"{100 * share:.0f} %"
