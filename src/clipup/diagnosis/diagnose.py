"""All rules over one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from clipup.diagnosis import distribution, fitness, gradient, speed
from clipup.diagnosis.finding import SEVERITIES, Finding
from clipup.diagnosis.trace import Trace
from clipup.runs.config import RunConfig
from clipup.runs.records import Record

Rule = Callable[[Trace], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    fitness.nonfinite,
    fitness.tied,
    gradient.noise,
    distribution.stdev_collapsed,
    distribution.stdev_exploded,
    speed.never_clipped,
    speed.too_large,
    speed.too_small,
    distribution.population_bound,
)


def diagnose(records: Sequence[Record], config: RunConfig | None = None) -> list[Finding]:
    """What is wrong with a run, worst first; empty when nothing is, or when it is too short to say.

    A pure function of the records; `config` makes the advice more exact. Where fitnesses cannot be ranked, or the
    gradient is noise, what follows from that (its speed, its width) is not reported as a fault of its own.
    """
    if not records:
        return []
    trace = Trace(records, config)
    findings: list[Finding] = []
    with np.errstate(all="ignore"):
        for rule in RULES:
            findings += rule(trace)
    rules = {finding.rule for finding in findings}
    if "fitness-tied" in rules:
        findings = [finding for finding in findings if finding.rule.startswith("fitness-")]
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
