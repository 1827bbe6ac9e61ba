"""From run directories to the results of an experiment."""

from __future__ import annotations

import datetime
import platform
import subprocess
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

import numpy as np

from clipup.engines import registry
from clipup.reproduction.experiments import Experiment, Group
from clipup.reproduction.results import GroupResult, Provenance, Results, RunResult, decode, encode
from clipup.reproduction.runs import PlannedRun, check_same_run
from clipup.runs.records import Record, read_clock, read_records
from clipup.runs.rundir import RunDirectory

LIBRARIES = ("clipup", "numpy", *registry.distributions())


def collect(
    experiment: Experiment,
    planned: Sequence[PlannedRun],
    out: Path,
    *,
    runs: int,
    changes: Mapping[str, object],
) -> Results:
    """What the runs under `out` have come to so far, of `runs` asked for in each group.

    Numbers are rounded as the result file rounds them.
    """
    groups: list[GroupResult] = []
    for group in experiment.groups:
        mine = sorted((run for run in planned if run.group == group.name), key=lambda run: run.seed)
        begun = [(run.name, result) for run in mine if (result := read_run(run, out, experiment)) is not None]
        groups.append(
            GroupResult(
                group.name,
                group.label,
                describe(group),
                tuple(name for name, _ in begun),
                tuple(result for _, result in begun),
            )
        )
    generations = max((run.wanted for run in planned), default=0)
    results = Results(
        experiment.name,
        max([runs, *(run.seed for group in groups for run in group.runs)]),
        generations,
        provenance(command(experiment, groups, generations, changes)),
        tuple(groups),
        {name: str(value) for name, value in changes.items()},
    )
    return decode(encode(results))


def command(
    experiment: Experiment, groups: Sequence[GroupResult], generations: int, changes: Mapping[str, object]
) -> str:
    """The command that makes these results anywhere: without directories, time limits and ways of running."""
    words = ["clipup reproduce", experiment.name]
    begun = [group for group in groups if group.runs]
    runs = max((run.seed for group in begun for run in group.runs), default=experiment.runs)
    words += [f"--runs {runs}"] if runs != experiment.runs else []
    words += [f"--generations {generations}"] if generations != experiment.generations else []
    words += [f"--group {group.name}" for group in begun] if len(begun) < len(groups) else []
    return " ".join([*words, *(f"--set {name}={value}" for name, value in changes.items())])


def read_run(run: PlannedRun, out: Path, experiment: Experiment) -> RunResult | None:
    """One run up to the generations that are wanted of it; None when it has not made its first."""
    path = run.path(out)
    directory = RunDirectory(path)
    records = [record for record in read_records(path / "records.jsonl") if record.generation <= run.wanted]
    if not records:
        return None
    check_same_run(directory, run.config)
    evaluated = [(record, record.score) for record in records if record.score is not None]
    last = records[-1]
    clock = [entry.seconds for entry in read_clock(path / "clock.jsonl") if entry.generation <= last.generation]
    score, error = _final_score(run, out, last)
    fitness = [record.fitness_mean for record in records if record.fitness_mean is not None]
    tenth = max(1, len(fitness) // 10)
    return RunResult(
        seed=run.seed,
        generations=last.generation,
        interactions=last.total_interactions,
        seconds=clock[-1] if clock else 0.0,
        complete=run.is_finished(out) and score is not None,
        score=score if score is not None or not evaluated else evaluated[-1][1],
        score_standard_error=error if score is not None or not evaluated else evaluated[-1][0].score_standard_error,
        score_interactions=tuple(record.total_interactions for record, _ in evaluated),
        scores=tuple(value for _, value in evaluated),
        speeds=tuple(record.speed for record in records) if "speeds" in experiment.figures else (),
        speed_peak=max(record.speed for record in records),
        fitness_start=float(np.mean(fitness[:tenth])) if fitness else None,
        fitness_end=float(np.mean(fitness[-tenth:])) if fitness else None,
        stdev_norm=last.stdev_norm,
        workers=directory.read_config().workers,
        engine=directory.read_status().engine,
    )


def describe(group: Group) -> str:
    """The settings by which a group differs from its task's preset, as flags of ``clipup train``."""
    words = [group.env]
    for name, value in group.settings.items():
        if isinstance(value, Mapping):
            words += [f"--env.{key} {str(option).lower()}" for key, option in value.items()]
        else:
            words.append(f"--{name.replace('_', '-')} {value}")
    return " ".join(words)


def provenance(command: str) -> Provenance:
    """What produced results made now: the command, versions, commit and machine."""
    versions = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    created = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Provenance(command, created, _commit(), versions, _hardware())


def _final_score(run: PlannedRun, out: Path, last: Record) -> tuple[float | None, float | None]:
    """The score after the last generation: in its record, or in the status of a run that ended right there."""
    if last.score is not None:
        return last.score, last.score_standard_error
    status = RunDirectory(run.path(out)).read_status()
    if status.state == "finished" and status.generation == last.generation:
        return status.score, status.score_standard_error
    return None, None


def _commit() -> str:
    """The commit of the sources where they are a checkout, else nothing."""
    folder = Path(__file__).parent
    try:
        found = subprocess.run(
            ["git", "-C", str(folder), "rev-parse", "--short=12", "HEAD"],
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""


def _hardware() -> dict[str, str]:
    import os

    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass
    return {
        "cpu": model,
        "cores": str(len(os.sched_getaffinity(0))),
        "system": f"{platform.system()} {platform.machine()}",
    }
