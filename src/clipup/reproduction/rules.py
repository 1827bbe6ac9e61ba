"""How a measurement is held against a claim of the paper: one function a rule, each with its rule in its first line.

A rule gets the runs that may count: for final scores those that made the paper's full number of generations, for
speeds those that went far enough to have settled. It returns what ours is, an interval where there is one, and whether
that agrees with the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from clipup.evaluation.intervals import Interval, difference, percent_reduction, summarize_group
from clipup.optimizers import ClipUp
from clipup.reproduction.results import GroupResult, RunResult
from clipup.reproduction.targets import SCALES, Claim
from clipup.search import PGPE

SETTLED_AFTER = 100
"""Generations after which a speed counts as settled: the paper's curves are flat long before."""
SETTLED_FOR = 50
"""Generations beyond that without which nothing is said."""
SIMILAR_PERCENT = 10.0


@dataclass(frozen=True)
class Finding:
    """What a rule found."""

    ours: str
    interval: str
    agrees: bool


Groups = dict[str, GroupResult]
Rule = Callable[[Claim, Groups], Finding]


def mean_score(claim: Claim, groups: Groups) -> Finding:
    """The means differ by at most two standard errors, taking the paper's runs to scatter as ours do."""
    summary = summarize_group(groups[claim.groups[0]].final_scores)
    error = summary.stdev * math.sqrt(1.0 / summary.count + 1.0 / claim.runs)
    agrees = abs(summary.mean - claim.number("published")) <= 2.0 * error
    return Finding(f"{summary.mean:.2f}{_spread(summary.stdev, '.2f')}", _range(summary.mean_interval, ".1f"), agrees)


def even(claim: Claim, groups: Groups) -> Finding:
    """Every group's mean lies within so many percent of the first one's; the interval is that of the lowest."""
    percents = _percents([groups[name] for name in claim.groups])
    found = f"{min(percents):.2f} % to {max(percents):.2f} %"
    lowest = groups[claim.groups[int(np.argmin(percents))]].final_scores
    loss = percent_reduction(groups[claim.groups[0]].final_scores, lowest, confidence=0.95)[1]
    interval = f"lowest: {100.0 - loss.high:.1f} … {100.0 - loss.low:.1f} %"
    return Finding(found, interval, all(abs(percent - 100.0) <= claim.number("percent") for percent in percents))


def drop(claim: Claim, groups: Groups) -> Finding:
    """The group's mean is below so many percent of the reference's."""
    (group,), (reference,) = claim.words("group"), claim.words("reference")
    percent = _percents([groups[reference], groups[group]])[1]
    return Finding(f"{percent:.2f} %", "", percent < claim.number("percent"))


def most_even(claim: Claim, groups: Groups) -> Finding:
    """Of the families, the named one has the highest worst percentage of its own ranked mean."""
    families = claim.words("families")
    worst = [min(_percents([groups[f"{family}-{scale}"] for scale in SCALES])) for family in families]
    best = families[int(np.argmax(worst))]
    return Finding(", ".join(f"{value:.2f}" for value in worst) + " %", "", (best,) == claim.words("best"))


def similar(claim: Claim, groups: Groups) -> Finding:
    """The 90 % interval of the difference of the means holds 0, or the difference is below 10 % of the larger mean."""
    first, second = (groups[name].final_scores for name in claim.groups)
    estimate, interval = difference(first, second)
    largest = max(abs(float(np.mean(first))), abs(float(np.mean(second))))
    agrees = interval.holds(0.0) or abs(estimate) <= largest * SIMILAR_PERCENT / 100.0
    means = f"{np.mean(first):.0f} and {np.mean(second):.0f}"
    return Finding(means, f"difference {_range(interval, '.0f')} (90 %)", agrees)


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
    return Finding(f"{count} of {len(scores)} reach it", "", agrees)


def earlier(claim: Claim, groups: Groups) -> Finding:
    """The first group's median interactions to the threshold are fewer than the second's."""
    first, second = (float(np.median(_interactions(groups[name], claim)[0])) for name in claim.groups)
    return Finding(f"{first / 1e6:.1f} against {second / 1e6:.1f} million", "", first < second)


def reduction(claim: Claim, groups: Groups) -> Finding:
    """The 90 % interval of the reduction in mean interactions to the threshold overlaps the paper's.

    A run that never got there counts with all its interactions, which makes its group look better than it was.
    """
    (before, missed_before), (after, missed_after) = (_interactions(groups[name], claim) for name in claim.groups)
    estimate, interval = percent_reduction(before, after)
    centre, margin = claim.number("percent"), claim.number("margin")
    agrees = interval.low <= centre + margin and interval.high >= centre - margin
    missed = missed_before + missed_after
    note = f", {missed} never got there" if missed else ""
    return Finding(f"{estimate:.2f} % fewer{note}", f"{_range(interval, '.1f')} (90 %)", agrees)


def better(claim: Claim, groups: Groups) -> Finding:
    """The first group's mean and median final scores both exceed the second's."""
    first, second = (groups[name].final_scores for name in claim.groups)
    means, medians = (np.mean(first), np.mean(second)), (np.median(first), np.median(second))
    found = f"means {means[0]:.0f} and {means[1]:.0f}, medians {medians[0]:.0f} and {medians[1]:.0f}"
    return Finding(found, "", bool(means[0] > means[1] and medians[0] > medians[1]))


def first_speed(claim: Claim, groups: Groups) -> Finding:
    """The first update's size equals the published one to four digits, in every run."""
    speeds = [run.speeds[0] for run in groups[claim.groups[0]].runs]
    agrees = bool(np.allclose(speeds, claim.number("published"), rtol=1e-4, atol=0.0))
    return Finding(f"{np.median(speeds):.4g}", _extremes(speeds), agrees)


def settled_speed(claim: Claim, groups: Groups) -> Finding:
    """The median speed after the first 100 generations lies in the published range."""
    speeds = _settled(groups[claim.groups[0]])
    middle = float(np.median(speeds))
    return Finding(f"{middle:.4g}", _extremes(speeds), claim.number("low") <= middle <= claim.number("high"))


def highest_speed(claim: Claim, groups: Groups) -> Finding:
    """The median over runs of the highest speed lies in the given range."""
    peaks = [max(run.speeds) for run in groups[claim.groups[0]].runs]
    middle = float(np.median(peaks))
    return Finding(f"{middle:.4g}", _extremes(peaks), claim.number("low") <= middle <= claim.number("high"))


def starts_fast(claim: Claim, groups: Groups) -> Finding:
    """In every run the largest of the first ten updates is more than twice the settled speed."""
    runs = groups[claim.groups[0]].runs
    ratios = [max(run.speeds[:10]) / float(np.median(run.speeds[SETTLED_AFTER:])) for run in runs]
    return Finding(f"{min(ratios):.2f} times the settled speed", "", min(ratios) > 2.0)


def faster(claim: Claim, groups: Groups) -> Finding:
    """The first group's settled median speed exceeds the second's."""
    first, second = (float(np.median(_settled(groups[name]))) for name in claim.groups)
    return Finding(f"{first:.4g} against {second:.4g}", "", first > second)


def median_reaches(claim: Claim, groups: Groups) -> Finding:
    """The median over runs of the interactions to the threshold is within the published number."""
    reached = [run.interactions_to(claim.number("threshold")) for run in groups[claim.groups[0]].runs]
    middle = float(np.median([math.inf if count is None else count for count in reached]))
    found = f"after {middle / 1e9:.2f}e9" if math.isfinite(middle) else "not reached by the median run"
    return Finding(found, "", middle <= claim.number("interactions"))


def median_stays(claim: Claim, groups: Groups) -> Finding:
    """After so many interactions, more than half of the runs' scores are above the threshold."""
    late = [
        score
        for run in groups[claim.groups[0]].runs
        for interactions, score in zip(run.score_interactions, run.scores, strict=True)
        if interactions >= claim.number("interactions")
    ]
    middle = float(np.median(late)) if late else math.nan
    return Finding(f"median {middle:.0f}" if late else "no run went so far", "", middle > claim.number("threshold"))


def defaults(claim: Claim, groups: Groups) -> Finding:
    """A search that is given max_speed alone has the step size, momentum and radius of the paper's scheme."""
    del claim, groups
    search = PGPE(dimension=4, max_speed=1.0)
    radius = float(np.linalg.norm(search.stdev))
    optimizer = search.optimizer
    step, momentum = (optimizer.step_size, optimizer.momentum) if isinstance(optimizer, ClipUp) else (0.0, 0.0)
    return Finding(f"{step:g} v, {momentum:g}, {radius:g} v", "", (step, momentum, radius) == (0.5, 0.9, 15.0))


RULES: dict[str, Rule] = {
    "defaults": defaults,
    "mean": mean_score,
    "even": even,
    "drop": drop,
    "most-even": most_even,
    "similar": similar,
    "above": above,
    "share-above": share_above,
    "earlier": earlier,
    "reduction": reduction,
    "better": better,
    "first-speed": first_speed,
    "settled-speed": settled_speed,
    "highest-speed": highest_speed,
    "starts-fast": starts_fast,
    "faster": faster,
    "median-reaches": median_reaches,
    "median-stays": median_stays,
}
SPEED_RULES = {"first-speed": 1} | dict.fromkeys(
    ("settled-speed", "highest-speed", "starts-fast", "faster"), SETTLED_AFTER + SETTLED_FOR
)
"""Rules about speeds, and the generations that a run needs before it counts for them."""


def _percents(groups: list[GroupResult]) -> list[float]:
    means = [float(np.mean(group.final_scores)) for group in groups]
    return [100.0 * value / means[0] for value in means]


def _interactions(group: GroupResult, claim: Claim) -> tuple[list[float], int]:
    def of(run: RunResult) -> int | None:
        return run.interactions_to(claim.number("threshold"))

    counts = [float(found) if (found := of(run)) is not None else float(run.interactions) for run in group.finished]
    return counts, sum(of(run) is None for run in group.finished)


def _settled(group: GroupResult) -> list[float]:
    return [speed for run in group.runs for speed in run.speeds[SETTLED_AFTER:]]


def _range(interval: Interval, form: str) -> str:
    return f"{interval.low:{form}} … {interval.high:{form}}"


def _extremes(values: list[float]) -> str:
    return f"{min(values):.4g} … {max(values):.4g} (all)"


def _spread(stdev: float, form: str = ".0f") -> str:
    return "" if math.isnan(stdev) else f" ± {stdev:{form}}"
