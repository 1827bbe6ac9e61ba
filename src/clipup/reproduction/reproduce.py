"""Reproduce one experiment: make its runs, then its tables, figures, policy and result file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType

from clipup.errors import FileFault
from clipup.export.policy import decode_policy
from clipup.export.safetensors import SIZE_LIMIT
from clipup.files import is_file_below, make_directories, path_below, read_below, write_output
from clipup.reproduction.experiments import Experiment, experiment_named
from clipup.reproduction.figures import draw
from clipup.reproduction.page import Table, tables
from clipup.reproduction.planned_runs import RUNS_DIRECTORY, PlannedRun, check_requirements, plan
from clipup.reproduction.results import Results, collect, encode, read_results
from clipup.reproduction.verdicts import Verdict, verdicts
from clipup.runs.records import Record, read_last, read_records
from clipup.runs.rundir import RunDirectory
from clipup.training.side_by_side import ScheduleEnd, ScheduleProgress, SideBySide

POLICIES_DIRECTORY = "policies"


@dataclass(frozen=True)
class ReproductionRequest:
    """What to reproduce, and how."""

    experiment: str
    runs: int | None = None
    """Runs of each group; None: as many as in the paper."""
    generations: int | None = None
    """Generations of each run; None: as many as in the paper."""
    budget: float | None = None
    """In seconds."""
    groups: tuple[str, ...] = ()
    jobs: int | None = None
    cluster: str | None = None
    out: Path = Path("reproduction")
    """Directory of the runs. A later call with the same directory continues them."""
    results: Path | None = None
    """Directory of the result file, figures and policies; None: `out`."""
    figures: bool = True
    changes: Mapping[str, object] = field(default_factory=dict[str, object])
    """Settings that override those of every group, as for a smaller machine. No claim is judged then."""
    collect_only: bool = False
    """Make no run, only the tables and figures of the runs that exist."""


@dataclass(frozen=True)
class Reproduction:
    """What `reproduce` made."""

    results: Results
    verdicts: tuple[Verdict, ...]
    tables: tuple[Table, ...]
    end: ScheduleEnd | None
    """None if no run was made."""
    files: tuple[Path, ...]


def reproduce(
    request: ReproductionRequest, *, watch: Callable[[ScheduleProgress], None] | None = None, watch_seconds: float = 1.0
) -> Reproduction:
    """Make the missing runs, then the tables, figures and result file of all runs that exist."""
    experiment = experiment_named(request.experiment)
    plan_runs = partial(plan, experiment, generations=request.generations, changes=request.changes)
    known = plan_runs(runs=max(request.runs or 0, experiment.runs))
    planned = plan_runs(runs=request.runs, only=request.groups, cluster=request.cluster)
    on_cluster = request.cluster is not None
    check_requirements(experiment, runs=not request.collect_only, figures=request.figures, cluster=on_cluster)
    _check_nothing_lost(request, {} if request.collect_only else {run.name: run.wanted for run in planned})
    end = None
    if planned and not request.collect_only:
        runs = [run.placed(request.out) for run in planned]
        end = SideBySide(runs, jobs=request.jobs, budget=request.budget, watch=watch, watch_seconds=watch_seconds).run()
    # The results contain all runs that exist, also those of groups and seeds that were not asked for this time.
    return _write_up(request, experiment, known, end)


def _write_up(
    request: ReproductionRequest, experiment: Experiment, planned: Sequence[PlannedRun], end: ScheduleEnd | None
) -> Reproduction:
    path = _result_path(request)
    directory = path.parent
    make_directories(directory)
    asked = experiment.runs if request.runs is None else request.runs
    results = collect(experiment, planned, request.out, runs=asked, changes=request.changes)
    found = verdicts(results)
    shown = tables(results, found)
    _check_nothing_lost(request)
    policy = keep_policy(experiment, planned, request.out, directory)
    extra: dict[str, object] = {
        "title": experiment.title,
        "where": experiment.where,
        "policy": None if policy is None else policy[1],
        "verdicts": [dataclasses.asdict(verdict) for verdict in found],
    }
    write_output(path, encode(results, extra))
    files = [path]
    if policy is not None:
        files.append(policy[0])
    if request.figures:
        files += draw(experiment, results, directory)
    return Reproduction(results, found, shown, end, tuple(files))


def _result_path(request: ReproductionRequest) -> Path:
    return (request.out if request.results is None else request.results) / f"{request.experiment}.json"


def _check_nothing_lost(request: ReproductionRequest, to_come: Mapping[str, int] = MappingProxyType({})) -> None:
    """Refuse to replace a result file whose runs are missing here, or were longer.

    `to_come` are the generations that this call will make of each run.
    """
    path = _result_path(request)
    if not path.is_file():
        return
    for group in read_results(path).groups:
        for name, run in zip(group.run_names, group.runs, strict=True):
            last = read_last(RunDirectory(path_below(request.out, RUNS_DIRECTORY, name)).records_path, Record)
            here = max(last.generation if last is not None else 0, to_come.get(name, 0))
            if here < run.generations:
                raise FileFault(
                    f"{path} has {run.generations} generations of {name}, but {request.out} has only {here}; "
                    "choose another --results, or remove that file"
                )


def keep_policy(
    experiment: Experiment, planned: Sequence[PlannedRun], out: Path, directory: Path
) -> tuple[Path, dict[str, object]] | None:
    """Copy the newest policy of the best run of the first group, by its last three scores; return which it was.

    It is a policy to look at, not a measurement: a fresh evaluation of the best of several tends to be lower.
    """
    best: tuple[float, PlannedRun] | None = None
    for run in planned:
        found = run.directory(out)
        if run.group != experiment.groups[0].name or not is_file_below(found.path, found.policy_path.name):
            continue
        recent = [record.score for record in read_records(found.records_path) if record.score is not None][-3:]
        if recent and (best is None or sum(recent) / len(recent) > best[0]):
            best = (sum(recent) / len(recent), run)
    if best is None:
        return None
    score, run = best
    target = path_below(directory, POLICIES_DIRECTORY) / f"{experiment.name}.safetensors"
    make_directories(target.parent)
    source = run.directory(out).policy_path
    data = read_below(source.parent, source.name, SIZE_LIMIT, "a policy")
    generation = decode_policy(data, str(source))[1].generation
    write_output(target, data)
    return target, {"group": run.group, "seed": run.seed, "generation": generation, "recent_score": score}
