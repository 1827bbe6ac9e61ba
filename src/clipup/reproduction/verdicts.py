"""The verdict on each claim: agrees, differs, or not enough runs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from clipup.errors import FileFault
from clipup.reproduction.results import GroupResult, Results
from clipup.reproduction.rules import RULES, Comparison, generations_needed
from clipup.reproduction.targets import Claim, claims_of

AGREES, DIFFERS, NOT_ENOUGH = "agrees", "differs", "not enough runs"


@dataclass(frozen=True)
class Verdict:
    """A claim, our value, and whether they agree."""

    claim: str
    where: str
    published: str
    ours: str
    interval: str
    runs: int
    """Runs that count, in the group that has the fewest."""
    runs_published: int
    verdict: str


def verdicts(results: Results) -> tuple[Verdict, ...]:
    """The verdict on every claim about the experiment."""
    return tuple(judge(claim, results) for claim in claims_of(results.experiment))


def judge(claim: Claim, results: Results) -> Verdict:
    """Compare the results with one claim.

    A run counts if it has the paper's settings and made the paper's number of generations. With fewer such runs than
    `claim.needs`, or where they scatter too much for the rule, the verdict is "not enough runs".
    """
    if claim.rule not in RULES:
        raise FileFault(f"targets.toml: unknown rule {claim.rule!r}")
    groups = {name: _counting(results.group(name), claim, results) for name in claim.groups}
    count = min((len(group.runs) for group in groups.values()), default=0)
    found = RULES[claim.rule](claim, groups) if count or not claim.needs else Comparison("", "", None)
    undecided = count < claim.needs or found.agrees is None
    verdict = NOT_ENOUGH if undecided else (AGREES if found.agrees else DIFFERS)
    published = claim.published if isinstance(claim.published, str) else f"{claim.published:g}"
    interval = found.interval if count > 1 or generations_needed(claim.rule) else ""  # one run has none
    return Verdict(claim.text, claim.where, published, found.ours, interval, count, claim.runs, verdict)


def _counting(group: GroupResult, claim: Claim, results: Results) -> GroupResult:
    """The group with only the runs that count for the claim."""
    if results.changes:
        runs = ()
    elif (needed := generations_needed(claim.rule)) is not None:
        runs = tuple(run for run in group.runs if len(run.speeds) >= needed)
        if not results.as_published:  # finished as asked, but shorter than the paper's: the speed may still change
            runs = tuple(dataclasses.replace(run, complete=False) for run in runs)
    else:
        runs = group.finished if results.as_published else ()
    return dataclasses.replace(group, runs=runs)
