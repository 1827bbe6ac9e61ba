"""How a measurement is compared with a claim of the paper: one function per rule.

The first line of each docstring is the rule; the reproduction page prints it. A rule gets the runs that count: for
final scores, those that made the paper's full number of generations; for speeds, those that ran long enough to settle.
It returns our value, an interval where there is one, and whether they agree with the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clipup.evaluation import intervals
from clipup.evaluation.intervals import Interval, Scores
from clipup.optimizers import OPTIMIZERS, OptimizerSettings, make_optimizer
from clipup.reproduction.experiments import SCALES
from clipup.reproduction.results import GroupResult
from clipup.reproduction.targets import Claim
from clipup.runs.config import RunConfig
from clipup.training.setup import make_search

CLOSE_PERCENT = 10.0
"""Means that differ by less than this many percent count as equal."""
SETTLED_AFTER = 100
"""Generations after which a speed counts as settled. The paper's curves are flat long before."""
SETTLED_FOR = 50
"""Generations that a run must make beyond that before its settled speed is judged."""


@dataclass(frozen=True)
class Comparison:
    """Our side of a claim."""

    ours: str
    interval: str
    agrees: bool | None
    """None while undecided: the runs must continue, or scatter too much for their number."""


Groups = Mapping[str, GroupResult]
ClaimRule = Callable[[Claim, Groups], Comparison]


def mean_score(claim: Claim, groups: Groups) -> Comparison:
    """Agrees: the means differ by at most 10 % and at most two standard errors. Differs: by more than two.

    The paper gives no standard error; its runs are assumed to scatter as ours do. Means within two standard errors but
    more than 10 % apart leave the claim undecided: the runs scatter too much.
    """
    summary = intervals.summarize_group(groups[claim.groups[0]].final_scores)
    error = summary.stdev * math.sqrt(1.0 / summary.count + 1.0 / claim.runs)
    published = claim.number("published")
    gap = abs(summary.mean - published)
    close = gap <= abs(published) * CLOSE_PERCENT / 100.0
    agrees = False if gap > 2.0 * error else (close or None)
    ours = f"{summary.mean:.2f}{_spread(summary.stdev, '.2f')}"
    return Comparison(ours, _range(summary.mean_interval, ".2f"), agrees)


def even(claim: Claim, groups: Groups) -> Comparison:
    """Agrees: every group's mean is within the given percentage of the first group's. The interval is the lowest's."""
    members = [groups[name] for name in claim.groups]
    percents = _percents(members)
    found = f"{min(percents):.2f} % to {max(percents):.2f} %"
    agrees = all(abs(percent - 100.0) <= claim.number("percent") for percent in percents)
    return Comparison(found, f"lowest: {_range(_worst_interval(members), '.1f')} %", agrees)


def drop(claim: Claim, groups: Groups) -> Comparison:
    """Agrees: the group's mean is below the given percentage of the reference's, its whole interval below 100 %."""
    (group,), (reference,) = claim.words("group"), claim.words("reference")
    members = [groups[reference], groups[group]]
    percent, interval = _percents(members)[1], _worst_interval(members)
    agrees = percent < claim.number("percent") and (interval.high < 100.0 or None)
    return Comparison(f"{percent:.2f} %", f"{_range(interval, '.1f')} %", agrees)


def most_even(claim: Claim, groups: Groups) -> Comparison:
    """Agrees: the named family's worst scale loses the least, and all others are at most at the given percentage.

    Percentages are of the family's own mean with ranks. The statement must hold in at least 95 % of the resamples. If
    it holds in at most 5 %, the claim differs. The interval is the named family's.
    """
    (named,), names = claim.words("best"), claim.words("families")
    families = {family: [groups[f"{family}-{scale}"] for scale in SCALES] for family in names}
    place, limit = names.index(named), claim.number("others_at_most")

    def holds(*scores: Scores) -> NDArray[np.bool_]:
        means = np.stack([drawn.mean(axis=-1) for drawn in scores]).reshape(len(names), len(SCALES), -1)
        worst = (100.0 * means / means[:, :1]).min(axis=1)
        others = np.delete(worst, place, axis=0).max(axis=0)
        return (worst[place] > others) & (others <= limit)

    found = ", ".join(f"{min(_percents(members)):.2f}" for members in families.values()) + " %"
    scores = [group.final_scores for members in families.values() for group in members]
    return Comparison(found, f"{_range(_worst_interval(families[named]), '.1f')} %", _mostly(holds, scores))


def similar(claim: Claim, groups: Groups) -> Comparison:
    """Agrees: the 90 % interval of the difference of the means is within 10 % of the larger one.

    It differs if the difference is more than 10 % and its interval does not contain 0.
    """
    first, second = (groups[name].final_scores for name in claim.groups)
    estimate, interval = intervals.difference(first, second)
    bound = max(abs(float(np.mean(first))), abs(float(np.mean(second)))) * CLOSE_PERCENT / 100.0
    differs = abs(estimate) > bound and not interval.holds(0.0)
    agrees = False if differs else (-bound <= interval.low and interval.high <= bound) or None
    means = f"{np.mean(first):.0f} and {np.mean(second):.0f}"
    return Comparison(means, f"difference {_range(interval, '.0f')} (90 %)", agrees)


def not_significant(claim: Claim, groups: Groups) -> Comparison:
    """Agrees: the 90 % interval of the difference of the means contains 0."""
    first, second = (groups[name].final_scores for name in claim.groups)
    interval = intervals.difference(first, second)[1]
    means = f"{np.mean(first):.0f} and {np.mean(second):.0f}"
    return Comparison(means, f"difference {_range(interval, '.0f')} (90 %)", interval.holds(0.0))


def above(claim: Claim, groups: Groups) -> Comparison:
    """Agrees: the mean final score is above the threshold."""
    summary = intervals.summarize_group(groups[claim.groups[0]].final_scores)
    agrees = summary.mean > claim.number("threshold")
    return Comparison(f"{summary.mean:.0f}{_spread(summary.stdev)}", _range(summary.mean_interval, ".0f"), agrees)


def share_above(claim: Claim, groups: Groups) -> Comparison:
    """Agrees: the share of runs whose final score reaches the threshold is in the given range."""
    scores = groups[claim.groups[0]].final_scores
    count = sum(score >= claim.number("threshold") for score in scores)
    agrees = claim.number("low") <= count / len(scores) <= claim.number("high")
    return Comparison(f"{count} of {len(scores)} reach it", _share_interval(count, len(scores)), agrees)


def earlier(claim: Claim, groups: Groups) -> Comparison:
    """Agrees: the first group needs fewer interactions to the threshold (median) in at least 95 % of the resamples.

    In at most 5 %, the claim differs. A run that never reaches the threshold counts as infinitely late.
    """
    reached = [
        [math.inf if count is None else float(count) for count in _reached(groups[name], claim)]
        for name in claim.groups
    ]
    middles = [float(np.median(counts)) for counts in reached]
    found = " against ".join(f"{value / 1e6:.1f} million" if value < math.inf else "never" for value in middles)

    def fewer(first: Scores, second: Scores) -> NDArray[np.bool_]:
        return np.median(first, axis=-1) < np.median(second, axis=-1)

    return Comparison(found, "", _mostly(fewer, reached))


def reduction(claim: Claim, groups: Groups) -> Comparison:
    """Agrees: half of each group reaches the threshold, with fewer interactions (90 %), overlapping the paper's range.

    A run that never reaches the threshold counts with all its interactions, which makes its group look better than it
    is.
    """
    (before, missed_before), (after, missed_after) = (_interactions(groups[name], claim) for name in claim.groups)
    estimate, interval = intervals.percent_reduction(before, after)
    centre, margin = claim.number("percent"), claim.number("margin")
    overlaps = interval.low <= centre + margin and interval.high >= centre - margin
    enough = 2 * missed_before <= len(before) and 2 * missed_after <= len(after)
    missed = missed_before + missed_after
    never = f", {missed} never reach it" if missed else ""
    agrees = overlaps and estimate > 0.0 and enough and (interval.low > 0.0 or None)
    return Comparison(f"{estimate:.2f} % fewer{never}", f"{_range(interval, '.1f')} (90 %)", agrees)


def better(claim: Claim, groups: Groups) -> Comparison:
    """Agrees: the first group's median is higher, and its mean is higher by a 90 % interval above 0."""
    first, second = (groups[name].final_scores for name in claim.groups)
    means, medians = (np.mean(first), np.mean(second)), (np.median(first), np.median(second))
    found = f"means {means[0]:.0f} and {means[1]:.0f}, medians {medians[0]:.0f} and {medians[1]:.0f}"
    interval = intervals.difference(second, first)[1]
    agrees = bool(interval.low > 0.0 and medians[0] > medians[1])
    return Comparison(found, f"difference {_range(interval, '.0f')} (90 %)", agrees)


def median_reaches(claim: Claim, groups: Groups) -> Comparison:
    """Agrees: the median over runs, at equal interactions, reaches the threshold within the published interactions."""
    grid, middle = groups[claim.groups[0]].median_curve()
    reached = grid[middle >= claim.number("threshold")]
    if not reached.size:
        return Comparison("not reached by the median", "", False)
    return Comparison(f"after {reached[0] / 1e9:.2f}e9", "", bool(reached[0] <= claim.number("interactions")))


def median_stays(claim: Claim, groups: Groups) -> Comparison:
    """Agrees: after the given interactions, the median over runs is above the threshold more than half of the time."""
    grid, middle = groups[claim.groups[0]].median_curve()
    late = middle[grid >= claim.number("interactions")]
    if not late.size:
        return Comparison("the runs are too short", "", None)
    share = float(np.mean(late > claim.number("threshold")))
    return Comparison(f"{100.0 * share:.0f} % of the time", f"{late.min():.0f} … {late.max():.0f} (all)", share > 0.5)


def defaults(claim: Claim, groups: Groups) -> Comparison:
    """Agrees: a search that is given only max_speed has the step size, momentum and radius of the paper."""
    del groups
    optimizer = make_optimizer(OPTIMIZERS[0], OptimizerSettings(max_speed=1.0), 4)
    step, momentum = (float(getattr(optimizer, name, 0.0)) for name in ("step_size", "momentum"))
    found = (step, momentum, make_search(RunConfig(env="any", max_speed=1.0), 4).figures().stdev_norm)
    published = tuple(claim.number(name) for name in ("step_ratio", "momentum", "radius_factor"))
    return Comparison(f"{found[0]:g} v, {found[1]:g}, {found[2]:g} v", "", found == published)


def first_speed(claim: Claim, groups: Groups) -> Comparison:
    """Agrees: in every run, the size of the first update equals the published one to four digits."""
    speeds = [run.speeds[0] for run in groups[claim.groups[0]].runs]
    agrees = bool(np.allclose(speeds, claim.number("published"), rtol=1e-4, atol=0.0))
    return Comparison(f"{np.median(speeds):.4g}", _extremes(speeds), agrees)


def settled_speed(claim: Claim, groups: Groups) -> Comparison:
    """Agrees: after 100 generations, the middle half of the speeds is in the published range."""
    speeds = _settled(groups[claim.groups[0]])
    low, middle, high = (float(value) for value in np.percentile(speeds, [25, 50, 75]))
    agrees = claim.number("low") <= low and high <= claim.number("high")
    return Comparison(f"{middle:.4g}", f"{low:.4g} … {high:.4g} (middle half)", agrees)


def highest_speed(claim: Claim, groups: Groups) -> Comparison:
    """Agrees: the highest speed (median over runs) is in the given range. Unfinished runs cannot be too low."""
    runs = groups[claim.groups[0]].runs
    peaks = [max(run.speeds) for run in runs]
    middle = float(np.median(peaks))
    agrees = claim.number("low") <= middle <= claim.number("high")
    may_rise = middle < claim.number("low") and not all(run.complete for run in runs)
    return Comparison(f"{middle:.4g}", _extremes(peaks), None if may_rise else agrees)


def starts_fast(claim: Claim, groups: Groups) -> Comparison:
    """Agrees: in every run, the largest of the first ten updates is more than twice the settled speed."""
    runs = groups[claim.groups[0]].runs
    ratios = [max(run.speeds[:10]) / float(np.median(run.speeds[SETTLED_AFTER:])) for run in runs]
    return Comparison(f"{min(ratios):.2f} times the settled speed", _extremes(ratios), min(ratios) > 2.0)


def faster(claim: Claim, groups: Groups) -> Comparison:
    """Agrees: the first group's settled speed (median) is higher than the second's."""
    first, second = (float(np.median(_settled(groups[name]))) for name in claim.groups)
    return Comparison(f"{first:.4g} against {second:.4g}", "", first > second)


_SPEED_RULES: Mapping[str, ClaimRule] = {
    "first-speed": first_speed,
    "settled-speed": settled_speed,
    "highest-speed": highest_speed,
    "starts-fast": starts_fast,
    "faster": faster,
}


RULES: Mapping[str, ClaimRule] = {
    "defaults": defaults,
    "mean": mean_score,
    "even": even,
    "drop": drop,
    "most-even": most_even,
    "similar": similar,
    "not-significant": not_significant,
    "above": above,
    "share-above": share_above,
    "earlier": earlier,
    "reduction": reduction,
    "better": better,
    **_SPEED_RULES,
    "median-reaches": median_reaches,
    "median-stays": median_stays,
}


def generations_needed(rule: str) -> int | None:
    """Generations after which a run counts for a rule about speeds; None for rules about scores."""
    if rule not in _SPEED_RULES:
        return None
    return 1 if rule == "first-speed" else SETTLED_AFTER + SETTLED_FOR


def _percents(groups: list[GroupResult]) -> list[float]:
    means = [float(np.mean(group.final_scores)) for group in groups]
    return [100.0 * value / means[0] for value in means]


def _mostly(holds: Callable[..., NDArray[np.bool_]], scores: Sequence[Sequence[float]]) -> bool | None:
    """True: holds in at least 95 % of the resamples. False: in at most 5 %. None: in between."""
    interval = intervals.bootstrap_interval(scores, lambda *drawn: holds(*drawn).astype(np.float64), confidence=0.9)
    return True if interval.low == 1.0 else (False if interval.high == 0.0 else None)


def _worst_interval(groups: list[GroupResult]) -> Interval:
    """The 95 % interval of the lowest mean, as a percentage of the first group's mean."""
    percents = _percents(groups)[1:]
    lowest = groups[1 + int(np.argmin(percents))]
    loss = intervals.percent_reduction(groups[0].final_scores, lowest.final_scores, confidence=0.95)[1]
    return Interval(100.0 - loss.high, 100.0 - loss.low, loss.confidence)


def _share_interval(count: int, total: int) -> str:
    """Wilson's 95 % interval of a share."""
    z = 1.96
    middle = (count + z * z / 2.0) / (total + z * z)
    margin = z / (total + z * z) * math.sqrt(count * (total - count) / total + z * z / 4.0)
    return f"{100.0 * max(0.0, middle - margin):.0f} … {100.0 * min(1.0, middle + margin):.0f} %"


def _reached(group: GroupResult, claim: Claim) -> list[int | None]:
    return [run.interactions_to(claim.number("threshold")) for run in group.finished]


def _interactions(group: GroupResult, claim: Claim) -> tuple[list[float], int]:
    reached = _reached(group, claim)
    totals = [run.interactions for run in group.finished]
    counts = [float(total if count is None else count) for count, total in zip(reached, totals, strict=True)]
    return counts, reached.count(None)


def _range(interval: Interval, form: str) -> str:
    return f"{interval.low:{form}} … {interval.high:{form}}"


def _spread(stdev: float, form: str = ".0f") -> str:
    return "" if math.isnan(stdev) else f" ± {stdev:{form}}"


def _settled(group: GroupResult) -> list[float]:
    return [speed for run in group.runs for speed in run.speeds[SETTLED_AFTER:]]


def _extremes(values: list[float]) -> str:
    return f"{min(values):.4g} … {max(values):.4g} (all)"
