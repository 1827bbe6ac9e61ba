"""What a rule says when it speaks: a plain sentence, its evidence, and what to change by how much."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["problem", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("problem", "warning", "note")


def _nothing() -> Mapping[str, float]:
    return {}


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or likely wrong, with a run.

    `evidence` are the measured numbers behind the sentence; `change` are settings of `clipup train` with the values to
    try instead. The suggestion says the same in words.
    """

    rule: str
    severity: Severity
    sentence: str
    suggestion: str
    evidence: Mapping[str, float] = field(default_factory=_nothing)
    change: Mapping[str, float] = field(default_factory=_nothing)

    def as_json(self) -> dict[str, object]:
        """The finding as plain data, for ``clipup diagnose --json`` and the report."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "sentence": self.sentence,
            "suggestion": self.suggestion,
            "evidence": _spelled(self.evidence),
            "change": _spelled(self.change),
        }


def _spelled(values: Mapping[str, float]) -> dict[str, float | None]:
    """Numbers as JSON can spell them: None for those that records of another version, or damaged ones, made nan."""
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def two_digits(value: float) -> float:
    """`value` to two significant digits: a suggestion is never more precise than that.

    >>> two_digits(0.004999), two_digits(1234.0)
    (0.005, 1200.0)
    """
    return float(f"{value:.2g}")


def percent(share: float) -> str:
    """A share in words, never rounded up to all or down to none.

    >>> percent(0.5), percent(0.9996), percent(0.0002)
    ('50 %', '99.9 %', 'less than 0.1 %')
    """
    if 0 < share < 0.001:
        return "less than 0.1 %"
    if 0 < share < 0.01 or 0.99 < share < 1:
        return f"{min(100 * share, 99.9):.1f} %"
    return f"{100 * share:.0f} %"
