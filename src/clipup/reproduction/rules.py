"""How a measurement is held against a claim of the paper: one function a rule, each with its rule in its first line.

A rule gets the runs that may count: for final scores those that made the paper's full number of generations, for
speeds those that went far enough to have settled. It returns what ours is, an interval where there is one, and whether
that agrees with the paper. The rules about speeds are in `clipup.reproduction.speeds`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from clipup.evaluation.intervals import (
    Interval,
    Scores,
    bootstrap_interval,
    difference,
    percent_reduction,
    summarize_group,
)
from clipup.optimizers import ClipUp
from clipup.reproduction.curves import median_curve
from clipup.reproduction.experiments import SCALES
from clipup.reproduction.finding import Finding, Groups, Rule
from clipup.reproduction.results import GroupResult
from clipup.reproduction.speeds import SPEED_RULES
from clipup.reproduction.targets import Claim
from clipup.searches import PGPE

CLOSE_PERCENT = 10.0
"""Means that are closer than that, in percent, count as equal."""


def mean_score(claim: Claim, groups: Groups) -> Finding:
    """The means are within 10 % and two standard errors, if the paper's runs scatter as ours; beyond two they differ.

    Within two standard errors but more than 10 % apart, the runs scatter too much to tell.
    """
    summary = summarize_group(groups[claim.groups[0]].final_scores)
    error = summary.stdev * math.sqrt(1.0 / summary.count + 1.0 / claim.runs)
    published = claim.number("published")
    gap = abs(summary.mean - published)
    close = gap <= abs(published) * CLOSE_PERCENT / 100.0
    agrees = False if gap > 2.0 * error else (close or None)
    return Finding(f"{summary.mean:.2f}{_spread(summary.stdev, '.2f')}", _range(summary.mean_interval, ".2f"), agrees)


def even(claim: Claim, groups: Groups) -> Finding:
    """Every group's mean lies within so many percent of the first one's; the interval is that of the lowest other."""
    members = [groups[name] for name in claim.groups]
    percents = _percents(members)
    found = f"{min(percents):.2f} % to {max(percents):.2f} %"
    agrees = all(abs(percent - 100.0) <= claim.number("percent") for percent in percents)
    return Finding(found, f"lowest: {_range(_worst_interval(members), '.1f')} %", agrees)


def drop(claim: Claim, groups: Groups) -> Finding:
    """The group's mean is below so many percent of the reference's, the interval below 100."""
    (group,), (reference,) = claim.words("group"), claim.words("reference")
    members = [groups[reference], groups[group]]
    percent, interval = _percents(members)[1], _worst_interval(members)
    agrees = percent < claim.number("percent") and (interval.high < 100.0 or None)
    return Finding(f"{percent:.2f} %", f"{_range(interval, '.1f')} %", agrees)


def most_even(claim: Claim, groups: Groups) -> Finding:
    """Of the families, the named one has the highest worst percentage of its ranked mean, the others at most so much.

    So it must be in 95 % of the resamples; in 5 % or fewer the claim is denied. The interval is the named family's.
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
    return Finding(found, f"{_range(_worst_interval(families[named]), '.1f')} %", _mostly(holds, scores))


def similar(claim: Claim, groups: Groups) -> Finding:
    """The 90 % interval of the difference of the means is within 10 % of the larger; denied if beyond, without 0."""
    first, second = (groups[name].final_scores for name in claim.groups)
    estimate, interval = difference(first, second)
    bound = max(abs(float(np.mean(first))), abs(float(np.mean(second)))) * CLOSE_PERCENT / 100.0
    differs = abs(estimate) > bound and not interval.holds(0.0)
    agrees = False if differs else (-bound <= interval.low and interval.high <= bound) or None
    means = f"{np.mean(first):.0f} and {np.mean(second):.0f}"
    return Finding(means, f"difference {_range(interval, '.0f')} (90 %)", agrees)


def not_significant(claim: Claim, groups: Groups) -> Finding:
    """The 90 % interval of the difference of the means holds 0."""
    first, second = (groups[name].final_scores for name in claim.groups)
    interval = difference(first, second)[1]
    means = f"{np.mean(first):.0f} and {np.mean(second):.0f}"
    return Finding(means, f"difference {_range(interval, '.0f')} (90 %)", interval.holds(0.0))


def above(claim: Claim, groups: Groups) -> Finding:
    """The mean final score exceeds the threshold."""
    summary = summarize_group(groups[claim.groups[0]].final_scores)
    agrees = summary.mean > claim.number("threshold")
    return Finding(f"{summary.mean:.0f}{_spread(summary.stdev)}", _range(summary.mean_interval, ".0f"), agrees)


def share_above(claim: Claim, groups: Groups) -> Finding:
    """The share of runs whose final score reaches the threshold lies in the given range."""
    scores = groups[claim.groups[0]].final_scores
    count = sum(score >= claim.number("threshold") for score in scores)
    agrees = claim.number("low") <= count / len(scores) <= claim.number("high")
    return Finding(f"{count} of {len(scores)} reach it", _share_interval(count, len(scores)), agrees)


def earlier(claim: Claim, groups: Groups) -> Finding:
    """The first group's median interactions to the threshold are fewer, in 95 % of the resamples; in 5 % is denied.

    A run that never got there counts as infinite.
    """
    reached = [
        [math.inf if count is None else float(count) for count in _reached(groups[name], claim)]
        for name in claim.groups
    ]
    middles = [float(np.median(counts)) for counts in reached]
    found = " against ".join(f"{value / 1e6:.1f} million" if value < math.inf else "never" for value in middles)

    def fewer(first: Scores, second: Scores) -> NDArray[np.bool_]:
        return np.median(first, axis=-1) < np.median(second, axis=-1)

    return Finding(found, "", _mostly(fewer, reached))


def reduction(claim: Claim, groups: Groups) -> Finding:
    """Half of the runs reach the threshold, with interactions fewer by a 90 % interval above 0 and over the paper's.

    A run that never got there counts with all its interactions, which makes its group look better than it was.
    """
    (before, missed_before), (after, missed_after) = (_interactions(groups[name], claim) for name in claim.groups)
    estimate, interval = percent_reduction(before, after)
    centre, margin = claim.number("percent"), claim.number("margin")
    overlaps = interval.low <= centre + margin and interval.high >= centre - margin
    enough = 2 * missed_before <= len(before) and 2 * missed_after <= len(after)
    missed = missed_before + missed_after
    note = f", {missed} never got there" if missed else ""
    agrees = overlaps and estimate > 0.0 and enough and (interval.low > 0.0 or None)
    return Finding(f"{estimate:.2f} % fewer{note}", f"{_range(interval, '.1f')} (90 %)", agrees)


def better(claim: Claim, groups: Groups) -> Finding:
    """The first group's mean and median final scores exceed the second's, the 90 % interval of the means above 0."""
    first, second = (groups[name].final_scores for name in claim.groups)
    means, medians = (np.mean(first), np.mean(second)), (np.median(first), np.median(second))
    found = f"means {means[0]:.0f} and {means[1]:.0f}, medians {medians[0]:.0f} and {medians[1]:.0f}"
    interval = difference(second, first)[1]
    agrees = bool(interval.low > 0.0 and medians[0] > medians[1])
    return Finding(found, f"difference {_range(interval, '.0f')} (90 %)", agrees)


def median_reaches(claim: Claim, groups: Groups) -> Finding:
    """The median over runs, taken at equal interactions, reaches the threshold within the published number."""
    grid, middle = median_curve(groups[claim.groups[0]])
    reached = grid[middle >= claim.number("threshold")]
    if not reached.size:
        return Finding("not reached by the median", "", False)
    return Finding(f"after {reached[0] / 1e9:.2f}e9", "", bool(reached[0] <= claim.number("interactions")))


def median_stays(claim: Claim, groups: Groups) -> Finding:
    """From so many interactions on, the median over runs is above the threshold more than half of the way."""
    grid, middle = median_curve(groups[claim.groups[0]])
    late = middle[grid >= claim.number("interactions")]
    if not late.size:
        return Finding("the runs did not go so far", "", None)
    share = float(np.mean(late > claim.number("threshold")))
    return Finding(f"{100.0 * share:.0f} % of the way", f"{late.min():.0f} … {late.max():.0f} (all)", share > 0.5)


def defaults(claim: Claim, groups: Groups) -> Finding:
    """A search that is given max_speed alone has the step size, momentum and radius of the paper's scheme."""
    del claim, groups
    search = PGPE(dimension=4, max_speed=1.0)
    radius = float(np.linalg.norm(search.stdev))
    optimizer = search.optimizer
    step, momentum = (optimizer.step_size, optimizer.momentum) if isinstance(optimizer, ClipUp) else (0.0, 0.0)
    return Finding(f"{step:g} v, {momentum:g}, {radius:g} v", "", (step, momentum, radius) == (0.5, 0.9, 15.0))


RULES: Mapping[str, Rule] = {
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
    **SPEED_RULES,
    "median-reaches": median_reaches,
    "median-stays": median_stays,
}


def _percents(groups: list[GroupResult]) -> list[float]:
    means = [float(np.mean(group.final_scores)) for group in groups]
    return [100.0 * value / means[0] for value in means]


def _mostly(holds: Callable[..., NDArray[np.bool_]], scores: Sequence[Sequence[float]]) -> bool | None:
    """Whether something holds in at least 95 % of the resamples (True), in at most 5 % (False), or neither."""
    interval = bootstrap_interval(scores, lambda *drawn: holds(*drawn).astype(np.float64), confidence=0.9)
    return True if interval.low == 1.0 else (False if interval.high == 0.0 else None)


def _worst_interval(groups: list[GroupResult]) -> Interval:
    """The 95 % interval of the lowest percentage, of all groups but the first, of the first one's mean."""
    percents = _percents(groups)[1:]
    lowest = groups[1 + int(np.argmin(percents))]
    loss = percent_reduction(groups[0].final_scores, lowest.final_scores, confidence=0.95)[1]
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
