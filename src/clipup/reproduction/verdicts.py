"""The verdict on each claim.

*agrees* and *differs* need half as many runs as the paper had, and the claim's rule. With fewer runs, or where they
scatter too much for the rule, each run (or each set of runs with one seed, where groups are compared) is asked by
itself. The verdict is then *supported* if more than half of those that can answer say yes, and *doubted* otherwise. It
comes with the numbers and with what would overturn it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from clipup.errors import FileFault
from clipup.reproduction.experiments import SCALES
from clipup.reproduction.results import GroupResult, Results, RunResult
from clipup.reproduction.rules import CLOSE_PERCENT, RULES, Comparison, generations_needed
from clipup.reproduction.targets import Claim, claims_of

AGREES, DIFFERS, SUPPORTED, DOUBTED, NOT_ENOUGH = "agrees", "differs", "supported", "doubted", "not enough runs"
VERDICTS = (AGREES, DIFFERS, SUPPORTED, DOUBTED, NOT_ENOUGH)


@dataclass(frozen=True)
class Verdict:
    """A claim, our value, and whether they agree."""

    claim: str
    where: str
    published: str
    ours: str
    interval: str
    runs: int
    """Runs that count for the rule, in the group that has the fewest."""
    runs_published: int
    verdict: str
    """One of `VERDICTS`."""
    supporting: int = 0
    """Runs that support the claim by themselves, or seeds where groups are compared."""
    asked: int = 0
    """All of those, including the ones that cannot answer yet."""
    unfinished: int = 0
    """Those that cannot answer yet."""
    unit: str = ""
    """What is counted: "run" or "seed"."""
    overturned_by: str = ""
    """What would overturn "supported"."""

    @property
    def text(self) -> str:
        """The verdict for a table."""
        if self.verdict not in (SUPPORTED, DOUBTED):
            return self.verdict
        unfinished = f" ({self.unfinished} unfinished)" if self.unfinished else ""
        runs = f"supported by {self.supporting} of {self.asked} {self.unit}{'' if self.asked == 1 else 's'}{unfinished}"
        return f"{runs}; {self.overturned_by} would overturn this" if self.overturned_by else runs


def verdicts(results: Results) -> tuple[Verdict, ...]:
    """The verdict on every claim about the experiment."""
    return tuple(judge(claim, results) for claim in claims_of(results.experiment))


def judge(claim: Claim, results: Results) -> Verdict:
    """Compare the results with one claim. Only runs with the paper's settings count."""
    if claim.rule not in RULES:
        raise FileFault(f"targets.toml: unknown rule {claim.rule!r}")
    groups = {name: _counting(results.group(name), claim, results) for name in claim.groups}
    count = min((len(group.runs) for group in groups.values()), default=0)
    found = RULES[claim.rule](claim, groups) if count or not claim.needs else Comparison("", "", None)
    published = claim.published if isinstance(claim.published, str) else f"{claim.published:g}"
    interval = found.interval if count > 1 or generations_needed(claim.rule) else ""  # one run has none
    verdict = AGREES if found.agrees else DIFFERS
    judged = Verdict(claim.text, claim.where, published, found.ours, interval, count, claim.runs, verdict)
    if count < claim.needs or found.agrees is None:
        return _ask_single_runs(judged, claim, results)
    return judged


def _counting(group: GroupResult, claim: Claim, results: Results) -> GroupResult:
    """The group with only the runs that count for the claim's rule."""
    if results.changes:
        runs = ()
    elif (needed := generations_needed(claim.rule)) is not None:
        runs = tuple(run for run in _runs(group, results) if len(run.speeds) >= needed)
    else:
        runs = group.finished if results.as_published else ()
    return dataclasses.replace(group, runs=runs)


def _runs(group: GroupResult, results: Results) -> tuple[RunResult, ...]:
    """The runs with the paper's settings. One that is shorter than the paper's is not complete, even if it is done."""
    if results.changes:
        return ()
    shorter = not results.as_published
    return tuple(dataclasses.replace(run, complete=False) if shorter else run for run in group.runs)


RunsOfSeed = Mapping[str, RunResult]
"""By group: the runs of one seed."""
SingleRule = Callable[[Claim, RunsOfSeed], bool | None]
"""Whether the runs of one seed support a claim; None while they are too short to tell."""


def _ask_single_runs(judged: Verdict, claim: Claim, results: Results) -> Verdict:
    if claim.rule not in _SINGLE_RULES or (claim.rule == "share-above" and claim.number("low") < 1.0):
        return dataclasses.replace(judged, verdict=NOT_ENOUGH)
    rule, overturned_by = _SINGLE_RULES[claim.rule]
    groups = {name: {run.seed: run for run in _runs(results.group(name), results)} for name in claim.groups}
    seeds = set[int].intersection(*(set(runs) for runs in groups.values()))
    answers = [rule(claim, {name: runs[seed] for name, runs in groups.items()}) for seed in sorted(seeds)]
    yes, no = answers.count(True), answers.count(False)
    if not yes + no:
        return dataclasses.replace(judged, verdict=NOT_ENOUGH)
    return dataclasses.replace(
        judged,
        verdict=SUPPORTED if yes > no else DOUBTED,
        supporting=yes,
        asked=len(answers),
        unfinished=answers.count(None),
        unit="run" if len(groups) == 1 else "seed",
        overturned_by=overturned_by.format(needs=claim.needs, **claim.arguments) if yes > no else "",
    )


def _final(rule: Callable[[Claim, Mapping[str, float]], bool]) -> SingleRule:
    """A rule about final scores: runs that are not finished cannot answer."""

    def single(claim: Claim, runs: RunsOfSeed) -> bool | None:
        scores = {name: run.score for name, run in runs.items() if run.complete and run.score is not None}
        return rule(claim, scores) if len(scores) == len(runs) else None

    return single


def _even(claim: Claim, scores: Mapping[str, float]) -> bool:
    first = scores[claim.groups[0]]
    return all(abs(score - first) <= abs(first) * claim.number("percent") / 100.0 for score in scores.values())


def _drops(claim: Claim, scores: Mapping[str, float]) -> bool:
    (group,), (reference,) = claim.words("group"), claim.words("reference")
    return scores[group] < scores[reference] * claim.number("percent") / 100.0


def _most_even(claim: Claim, scores: Mapping[str, float]) -> bool:
    ranks = next(iter(SCALES))
    worst = {
        family: min(100.0 * scores[f"{family}-{scale}"] / scores[f"{family}-{ranks}"] for scale in SCALES)
        for family in claim.words("families")
    }
    named = worst.pop(claim.words("best")[0])
    return named > max(worst.values()) and max(worst.values()) <= claim.number("others_at_most")


def _similar(claim: Claim, scores: Mapping[str, float]) -> bool:
    first, second = (scores[name] for name in claim.groups)
    return abs(first - second) <= max(abs(first), abs(second)) * CLOSE_PERCENT / 100.0


def _above(claim: Claim, runs: RunsOfSeed) -> bool | None:
    """The final score, or two evaluations in a row at the end of an unfinished run, reach the threshold."""
    (run,) = runs.values()
    threshold = claim.number("threshold")
    if run.complete and run.score is not None:
        return run.score >= threshold
    return True if len(run.scores) > 1 and min(run.scores[-2:]) >= threshold else None


def _earlier(claim: Claim, runs: RunsOfSeed) -> bool | None:
    """The sooner run reaches the threshold with fewer interactions; the other may not have reached it at all."""
    first, second = (runs[name] for name in claim.groups)
    sooner, later = (second, first) if claim.rule == "reduction" else (first, second)
    one, other = (run.interactions_to(claim.number("threshold")) for run in (sooner, later))
    if one is not None and other is not None:
        return one < other
    if one is not None and (later.complete or later.interactions >= one):
        return True
    if other is not None and (sooner.complete or sooner.interactions >= other):
        return False
    return False if sooner.complete and later.complete else None


def _better(claim: Claim, runs: RunsOfSeed) -> bool | None:
    """The higher final score; where a run was stopped and the claim has a threshold, the sooner one to reach it."""
    first, second = (runs[name] for name in claim.groups)
    if first.complete and second.complete and first.score is not None and second.score is not None:
        return first.score > second.score
    return _earlier(claim, runs) if "threshold" in claim.arguments else None


def _reaches(claim: Claim, runs: RunsOfSeed) -> bool | None:
    (run,) = runs.values()
    reached, limit = run.interactions_to(claim.number("threshold")), claim.number("interactions")
    if reached is not None:
        return reached <= limit
    return False if run.complete or run.interactions >= limit else None


def _stays(claim: Claim, runs: RunsOfSeed) -> bool | None:
    (run,) = runs.values()
    evaluated = zip(run.score_interactions, run.scores, strict=True)
    late = [score for interactions, score in evaluated if interactions >= claim.number("interactions")]
    if not run.complete or not late:
        return None
    return 2 * sum(score > claim.number("threshold") for score in late) > len(late)


_SINGLE_RULES: Mapping[str, tuple[SingleRule, str]] = {
    "even": (_final(_even), "{needs} runs per group with a mean more than {percent:g} % away"),
    "drop": (_final(_drops), "{needs} runs per group with a mean of {percent:g} % or more of the reference"),
    "most-even": (_final(_most_even), "{needs} runs per group where this fails in 95 % of the resamples"),
    "similar": (_final(_similar), f"{{needs}} runs per group with means clearly more than {CLOSE_PERCENT:g} % apart"),
    "better": (_better, "{needs} runs per group without a clear lead of the first"),
    "above": (_above, "{needs} finished runs with a mean of {threshold:g} or less"),
    "share-above": (_above, "one run below {threshold:g} among {needs} finished ones"),
    "earlier": (_earlier, "{needs} runs per group where the first is not earlier in 95 % of the resamples"),
    "reduction": (_earlier, "{needs} runs per group without a saving near {percent:g} ± {margin:g} %"),
    "median-reaches": (_reaches, "{needs} runs whose median is below {threshold:g} for {interactions:g} interactions"),
    "median-stays": (
        _stays,
        "{needs} runs whose median is mostly below {threshold:g} after {interactions:g} interactions",
    ),
}
"""By rule: what it asks of single runs, and what would overturn it, with the claim's `needs` and arguments."""
