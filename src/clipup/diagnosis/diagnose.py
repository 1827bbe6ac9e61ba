"""The list of rules, and `diagnose`, which applies them to one run.

A rule is a function of a `Trace` that yields findings. To add one, write it in `signal_rules` or `step_rules`, add it
to `RULES`, and test it on a run with the fault and on the healthy runs of the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from clipup.diagnosis import signal_rules, step_rules
from clipup.diagnosis.finding import SEVERITIES, Finding
from clipup.diagnosis.trace import Trace
from clipup.runs.config import RunConfig
from clipup.runs.records import Record

Rule = Callable[[Trace], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    signal_rules.fitness_nonfinite,
    signal_rules.fitness_tied,
    signal_rules.gradient_noise,
    signal_rules.physics_differ,
    step_rules.stdev_collapsed,
    step_rules.stdev_exploded,
    step_rules.never_clipped,
    step_rules.max_speed_too_large,
    step_rules.max_speed_too_small,
    step_rules.population_bound,
)


def diagnose(records: Sequence[Record], config: RunConfig | None = None, actions: str = "") -> list[Finding]:
    """What is wrong with a run, worst first. Empty if nothing is wrong, or if the run is too short to tell.

    A pure function of the records. `config` and the kind of the actions (``"discrete"``, ``"box"``, …) make the advice
    more exact: no setting is advised that has no effect. Where candidates cannot be ranked, only that
    is reported: speed and standard deviations then mean nothing.
    """
    if not records:
        return []
    trace = Trace(records, config, actions)
    findings: list[Finding] = []
    with np.errstate(all="ignore"):
        for rule in RULES:
            findings += rule(trace)
    if any(finding.rule == "fitness-tied" for finding in findings):
        findings = [finding for finding in findings if finding.rule.startswith("fitness-")]
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
