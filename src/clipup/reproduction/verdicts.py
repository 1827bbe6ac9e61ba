"""What is said about each claim: agrees, differs, or not enough runs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from clipup.errors import FileFault
from clipup.reproduction.finding import Finding
from clipup.reproduction.results import GroupResult, Results
from clipup.reproduction.rules import RULES
from clipup.reproduction.speeds import generations_needed
from clipup.reproduction.targets import Claim, claims_of

AGREES, DIFFERS, NOT_ENOUGH = "agrees", "differs", "not enough runs"


@dataclass(frozen=True)
class Verdict:
    """A claim, what ours came to, and whether they agree."""

    claim: str
    where: str
    published: str
    ours: str
    interval: str
    runs: int
    """Runs that count, of the group that has the fewest."""
    runs_published: int
    verdict: str


def verdicts(results: Results) -> tuple[Verdict, ...]:
    """The verdict on every claim about the experiment."""
    return tuple(judge(claim, results) for claim in claims_of(results.experiment))


def judge(claim: Claim, results: Results) -> Verdict:
    """Hold the results against one claim.

    Runs with other settings than the paper's do not count, nor do those that stopped short of its generations; with
    fewer than `claim.needs` that do, or where they scatter too much for the rule to tell, the verdict is "not enough
    runs".
    """
    if claim.rule not in RULES:
        raise FileFault(f"targets.toml: unknown rule {claim.rule!r}")
    groups = {name: _counting(results.group(name), claim, results) for name in claim.groups}
    count = min((len(group.runs) for group in groups.values()), default=0)
    finding = RULES[claim.rule](claim, groups) if count or not claim.needs else Finding("", "", None)
    undecided = count < claim.needs or finding.agrees is None
    verdict = NOT_ENOUGH if undecided else (AGREES if finding.agrees else DIFFERS)
    published = claim.published if isinstance(claim.published, str) else f"{claim.published:g}"
    interval = finding.interval if count > 1 or generations_needed(claim.rule) else ""  # one run has none
    return Verdict(claim.text, claim.where, published, finding.ours, interval, count, claim.runs, verdict)


def _counting(group: GroupResult, claim: Claim, results: Results) -> GroupResult:
    if results.changes:
        runs = ()
    elif (needed := generations_needed(claim.rule)) is not None:
        runs = tuple(run for run in group.runs if len(run.speeds) >= needed)
        if not results.as_published:  # done with what was asked for, but not with what the paper did
            runs = tuple(dataclasses.replace(run, complete=False) for run in runs)
    else:
        runs = group.finished if results.as_published else ()
    return dataclasses.replace(group, runs=runs)
