"""Rules about the size of updates: they hold for every run, so one that went far enough can be judged."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clipup.reproduction.finding import Finding, Groups, Rule
from clipup.reproduction.results import GroupResult
from clipup.reproduction.targets import Claim

SETTLED_AFTER = 100
"""Generations after which a speed counts as settled: the paper's curves are flat long before."""
SETTLED_FOR = 50
"""Generations beyond that without which nothing is said."""


def first_speed(claim: Claim, groups: Groups) -> Finding:
    """The first update's size equals the published one to four digits, in every run."""
    speeds = [run.speeds[0] for run in groups[claim.groups[0]].runs]
    agrees = bool(np.allclose(speeds, claim.number("published"), rtol=1e-4, atol=0.0))
    return Finding(f"{np.median(speeds):.4g}", _extremes(speeds), agrees)


def settled_speed(claim: Claim, groups: Groups) -> Finding:
    """The middle half of the speeds after the first 100 generations lies in the published range."""
    speeds = _settled(groups[claim.groups[0]])
    low, middle, high = (float(value) for value in np.percentile(speeds, [25, 50, 75]))
    agrees = claim.number("low") <= low and high <= claim.number("high")
    return Finding(f"{middle:.4g}", f"{low:.4g} … {high:.4g} (middle half)", agrees)


def highest_speed(claim: Claim, groups: Groups) -> Finding:
    """The median over runs of the highest speed lies in the given range; too low only counts in finished runs."""
    runs = groups[claim.groups[0]].runs
    peaks = [max(run.speeds) for run in runs]
    middle = float(np.median(peaks))
    agrees = claim.number("low") <= middle <= claim.number("high")
    may_rise = middle < claim.number("low") and not all(run.complete for run in runs)
    return Finding(f"{middle:.4g}", _extremes(peaks), None if may_rise else agrees)


def starts_fast(claim: Claim, groups: Groups) -> Finding:
    """In every run the largest of the first ten updates is more than twice the settled speed."""
    runs = groups[claim.groups[0]].runs
    ratios = [max(run.speeds[:10]) / float(np.median(run.speeds[SETTLED_AFTER:])) for run in runs]
    return Finding(f"{min(ratios):.2f} times the settled speed", _extremes(ratios), min(ratios) > 2.0)


def faster(claim: Claim, groups: Groups) -> Finding:
    """The first group's settled median speed exceeds the second's."""
    first, second = (float(np.median(_settled(groups[name]))) for name in claim.groups)
    return Finding(f"{first:.4g} against {second:.4g}", "", first > second)


SPEED_RULES: Mapping[str, Rule] = {
    "first-speed": first_speed,
    "settled-speed": settled_speed,
    "highest-speed": highest_speed,
    "starts-fast": starts_fast,
    "faster": faster,
}


def generations_needed(rule: str) -> int | None:
    """Generations that a run needs before it counts for a rule about speeds; None for other rules."""
    if rule not in SPEED_RULES:
        return None
    return 1 if rule == "first-speed" else SETTLED_AFTER + SETTLED_FOR


def _settled(group: GroupResult) -> list[float]:
    return [speed for run in group.runs for speed in run.speeds[SETTLED_AFTER:]]


def _extremes(values: list[float]) -> str:
    return f"{min(values):.4g} … {max(values):.4g} (all)"
