"""One experiment from its name to its tables, figures and result file."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from clipup.errors import FileFault
from clipup.export.policy import read_policy
from clipup.reproduction.collect import collect
from clipup.reproduction.experiments import Experiment, experiment_named
from clipup.reproduction.figures import draw
from clipup.reproduction.requirements import check_requirements
from clipup.reproduction.results import Results, encode, read_results
from clipup.reproduction.runs import RUNS_FOLDER, PlannedRun, plan
from clipup.reproduction.schedule import Outcome, Progress, Schedule
from clipup.reproduction.tables import Table, tables
from clipup.reproduction.verdicts import Verdict, verdicts
from clipup.runs.files import write_atomically
from clipup.runs.records import read_records
from clipup.runs.rundir import RunDirectory

POLICIES_FOLDER = "policies"


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    experiment: str
    runs: int | None = None
    """Of each group; None for as many as in the paper."""
    generations: int | None = None
    """Of each run; None for as many as in the paper."""
    budget: float | None = None
    """Seconds."""
    groups: tuple[str, ...] = ()
    jobs: int | None = None
    cluster: str | None = None
    out: Path = Path("reproduction")
    """Where runs live; a later call with the same directory goes on with them."""
    results: Path | None = None
    """Where the result file, figures and policies go; None for `out` itself."""
    figures: bool = True
    changes: Mapping[str, object] = field(default_factory=dict[str, object])
    """Settings that overrule those of every group, as for a smaller machine; no claim is judged then."""
    collect_only: bool = False
    """Make no run, only tables and figures of what is there."""


@dataclass(frozen=True)
class Reproduction:
    """What came of it."""

    results: Results
    verdicts: tuple[Verdict, ...]
    tables: tuple[Table, ...]
    outcome: Outcome | None
    """None when nothing was run."""
    files: tuple[Path, ...]


def reproduce(
    request: Request, *, watch: Callable[[Progress], None] | None = None, watch_seconds: float = 1.0
) -> Reproduction:
    """Make the runs that are still missing, then the tables, figures and result file of all that are there."""
    experiment = experiment_named(request.experiment)
    most = max(request.runs or 0, experiment.runs)
    known = plan(experiment, runs=most, generations=request.generations, changes=request.changes)
    planned = plan(
        experiment,
        runs=request.runs,
        generations=request.generations,
        only=request.groups,
        cluster=request.cluster,
        changes=request.changes,
    )
    check_requirements(
        experiment, runs=not request.collect_only, figures=request.figures, cluster=request.cluster is not None
    )
    _check_nothing_lost(request, {} if request.collect_only else {run.name: run.wanted for run in planned})
    outcome = None
    if planned and not request.collect_only:
        schedule = Schedule(
            planned, request.out, jobs=request.jobs, budget=request.budget, watch=watch, watch_seconds=watch_seconds
        )
        outcome = schedule.run()
    # What is written up are all runs that are there, also those of groups and seeds not asked for this time.
    return _write_up(request, experiment, known, outcome)


def _write_up(
    request: Request, experiment: Experiment, planned: Sequence[PlannedRun], outcome: Outcome | None
) -> Reproduction:
    folder = _result_path(request).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFault(f"{folder}: cannot be made: {error.strerror or error}") from error
    asked = experiment.runs if request.runs is None else request.runs
    results = collect(experiment, planned, request.out, runs=asked, changes=request.changes)
    found = verdicts(results)
    shown = tables(results, found)
    _check_nothing_lost(request)
    path = _result_path(request)
    policy = keep_policy(experiment, planned, request.out, folder)
    extra: dict[str, object] = {
        "title": experiment.title,
        "where": experiment.where,
        "policy": None if policy is None else policy[1],
        "verdicts": [dataclasses.asdict(verdict) for verdict in found],
    }
    write_atomically(path, encode(results, extra))
    files = [path]
    if policy is not None:
        files.append(policy[0])
    if request.figures:
        files += draw(experiment, results, folder)
    return Reproduction(results, found, shown, outcome, tuple(files))


def _result_path(request: Request) -> Path:
    return (request.out if request.results is None else request.results) / f"{request.experiment}.json"


def _check_nothing_lost(request: Request, to_come: Mapping[str, int] = MappingProxyType({})) -> None:
    """Refuse to replace a result file about runs that are not here, or went farther where that was.

    `to_come` are the generations that the runs of this call will have made.
    """
    path = _result_path(request)
    if not path.is_file():
        return
    for group in read_results(path).groups:
        for name, run in zip(group.run_names, group.runs, strict=True):
            records = read_records(request.out / RUNS_FOLDER / name / "records.jsonl")
            here = max(records[-1].generation if records else 0, to_come.get(name, 0))
            if here < run.generations:
                raise FileFault(
                    f"{path} has {run.generations} generations of {name}, of which {here} are under {request.out}; "
                    "choose another --results, or remove that file"
                )


def keep_policy(
    experiment: Experiment, planned: Sequence[PlannedRun], out: Path, folder: Path
) -> tuple[Path, dict[str, object]] | None:
    """Copy the newest policy of that run of the first group whose last three scores are best; say which it was.

    It is a policy to look at, not a measurement: a fresh evaluation of the best of several tends to come out lower.
    """
    best: tuple[float, PlannedRun] | None = None
    for run in planned:
        if run.group != experiment.groups[0].name or not RunDirectory(run.path(out)).policy_path.is_file():
            continue
        scored = [record for record in read_records(run.path(out) / "records.jsonl") if record.score is not None]
        recent = [record.score for record in scored[-3:] if record.score is not None]
        if recent and (best is None or sum(recent) / len(recent) > best[0]):
            best = (sum(recent) / len(recent), run)
    if best is None:
        return None
    score, run = best
    target = folder / POLICIES_FOLDER / f"{experiment.name}.safetensors"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(RunDirectory(run.path(out)).policy_path, target)
    except OSError as error:
        raise FileFault(f"{target}: cannot be written: {error.strerror or error}") from error
    generation = read_policy(target)[1].generation
    return target, {"group": run.group, "seed": run.seed, "generation": generation, "recent_score": score}
