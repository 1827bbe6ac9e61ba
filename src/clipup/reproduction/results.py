"""What runs came to: read from run directories, kept in frozen records, written as JSON result files."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from clipup.decoding import RESULTS, decode_object
from clipup.engines import registry
from clipup.errors import FileFault
from clipup.files import read_named
from clipup.processors import available_threads
from clipup.reproduction.experiments import Experiment, ExperimentGroup, experiment_named
from clipup.reproduction.planned_runs import PlannedRun, check_same_run
from clipup.runs.records import Record, read_clock, read_records
from clipup.runs.rundir import RunDirectory

FORMAT = 1
GRID_POINTS = 200

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class RunResult:
    """One run: how far it went, the scores of its center on the way, the size of each update."""

    seed: int
    generations: int
    interactions: int
    seconds: float
    """Training time. Several runs may have shared the machine."""
    complete: bool
    """Whether it made all generations that were asked for."""
    score: float | None
    """Of the last evaluation."""
    score_standard_error: float | None
    score_interactions: tuple[int, ...] = ()
    """Interactions at each evaluation of the center."""
    scores: tuple[float, ...] = ()
    speeds: tuple[float, ...] = ()
    """Of every generation, if the experiment uses them."""
    speed_peak: float | None = None
    fitness_start: float | None = None
    """Mean fitness of the population over the first tenth of the generations."""
    fitness_end: float | None = None
    """The same over the last tenth."""
    stdev_norm: float | None = None
    """Norm of the search's standard deviation after the last generation."""
    workers: int | None = None
    """Cores that it used, shared or not."""
    engine: str = ""
    """The engine that stepped its environments."""

    def interactions_to(self, threshold: float) -> int | None:
        """Interactions at the first evaluation of at least `threshold`; None if there is none."""
        reached = zip(self.score_interactions, self.scores, strict=True)
        return next((interactions for interactions, score in reached if score >= threshold), None)


@dataclass(frozen=True)
class GroupResult:
    """The runs of one group that have started."""

    name: str
    label: str
    settings: str
    """How its settings differ from the task's preset."""
    run_names: tuple[str, ...]
    runs: tuple[RunResult, ...]

    @property
    def finished(self) -> tuple[RunResult, ...]:
        """The runs that made all their generations and have a final score."""
        return tuple(run for run in self.runs if run.complete and run.score is not None)

    @property
    def final_scores(self) -> list[float]:
        """The final score of each finished run."""
        return [run.score for run in self.finished if run.score is not None]

    def curves(self) -> Curve:
        """A grid of interactions, and each run's score there: nan beyond its end."""
        runs = [run for run in self.runs if run.scores]
        if not runs:
            return np.empty(0), np.empty((0, 0))
        if max(len(run.scores) for run in runs) == 1:  # one point each: put them at their mean place
            place = float(np.mean([run.score_interactions[0] for run in runs]))
            return np.asarray([place]), np.asarray([run.scores for run in runs])
        first = min(run.score_interactions[0] for run in runs)
        last = max(run.score_interactions[-1] for run in runs)
        grid = np.linspace(first, last, GRID_POINTS)
        curves = [np.interp(grid, run.score_interactions, run.scores, left=np.nan, right=np.nan) for run in runs]
        return grid, np.asarray(curves)

    def common_curves(self) -> Curve:
        """`curves`, limited to the part where at least half of the runs have a score."""
        grid, curves = self.curves()
        if not grid.size:
            return grid, curves
        enough = np.count_nonzero(~np.isnan(curves), axis=0) * 2 >= len(curves)
        return grid[enough], curves[:, enough]

    def median_curve(self) -> Curve:
        """Interactions, and the median over runs of the score there: the line in the paper's figures."""
        grid, curves = self.common_curves()
        return grid, np.nanmedian(curves, axis=0) if grid.size else grid


@dataclass(frozen=True)
class Provenance:
    """Where results come from."""

    command: str
    created: str
    commit: str
    versions: Mapping[str, str]
    hardware: Mapping[str, str]


@dataclass(frozen=True)
class Results:
    """Everything measured for one experiment."""

    experiment: str
    runs: int
    """Runs of each group that were asked for."""
    generations: int
    provenance: Provenance
    groups: tuple[GroupResult, ...]
    changes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Settings that differ from the paper's. If there are any, no claim is judged."""

    @property
    def as_published(self) -> bool:
        """Whether settings and number of generations are the paper's."""
        return not self.changes and self.generations == experiment_named(self.experiment).generations

    def group(self, name: str) -> GroupResult:
        """The group of that name; an empty one if it has no runs yet."""
        empty = GroupResult(name, name, "", (), ())
        return next((group for group in self.groups if group.name == name), empty)


def collect(
    experiment: Experiment, planned: Sequence[PlannedRun], out: Path, *, runs: int, changes: Mapping[str, object]
) -> Results:
    """Read the runs under `out` as far as they have come. `runs` is the number asked for in each group.

    Numbers are rounded as in the result file.
    """
    groups: list[GroupResult] = []
    for group in experiment.groups:
        mine = sorted((run for run in planned if run.group == group.name), key=lambda run: run.seed)
        begun = [(run.name, result) for run in mine if (result := read_run(run, out, experiment)) is not None]
        names, found = tuple(name for name, _ in begun), tuple(result for _, result in begun)
        groups.append(GroupResult(group.name, group.label, describe(group), names, found))
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


def read_run(run: PlannedRun, out: Path, experiment: Experiment) -> RunResult | None:
    """One run, up to the generations that the experiment needs; None before its first generation."""
    directory = run.directory(out)
    records = [record for record in read_records(directory.records_path) if record.generation <= run.wanted]
    if not records:
        return None
    check_same_run(directory, run.config)
    evaluated = [(record, record.score) for record in records if record.score is not None]
    last = records[-1]
    clock = [entry.seconds for entry in read_clock(directory.clock_path) if entry.generation <= last.generation]
    score, error = _final_score(directory, last)
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


def command(
    experiment: Experiment, groups: Sequence[GroupResult], generations: int, changes: Mapping[str, object]
) -> str:
    """The command that makes these results on any machine: without directories, time limits and workers."""
    words = ["clipup reproduce", experiment.name]
    begun = [group for group in groups if group.runs]
    runs = max((run.seed for group in begun for run in group.runs), default=experiment.runs)
    words += [f"--runs {runs}"] if runs != experiment.runs else []
    words += [f"--generations {generations}"] if generations != experiment.generations else []
    words += [f"--group {group.name}" for group in begun] if len(begun) < len(groups) else []
    return " ".join([*words, *(f"--set {name}={value}" for name, value in changes.items())])


def describe(group: ExperimentGroup) -> str:
    """How a group's settings differ from its task's preset, as flags of ``clipup train``."""
    words = [group.env, *([] if group.preset == "auto" else [f"--preset {group.preset}"])]
    for name, value in group.settings.items():
        if isinstance(value, Mapping):
            words += [f"--env.{key} {str(option).lower()}" for key, option in value.items()]
        else:
            words.append(f"--{name.replace('_', '-')} {value}")
    return " ".join(words)


def provenance(command: str) -> Provenance:
    """The command, versions, commit and machine of results that are made now."""
    versions = {"python": platform.python_version()}
    for library in ("clipup", "numpy", *registry.distributions()):
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    created = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Provenance(command, created, _commit(), versions, _hardware())


def _final_score(directory: RunDirectory, last: Record) -> tuple[float | None, float | None]:
    """The score after the last generation: from its record, or from the status if the run ended there."""
    if last.score is not None:
        return last.score, last.score_standard_error
    status = directory.read_status()
    if status.state == "finished" and status.generation == last.generation:
        return status.score, status.score_standard_error
    return None, None


def _commit() -> str:
    """The commit of the source code, or nothing if it is not a git checkout."""
    words = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    try:
        found = subprocess.run(words, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""


def _hardware() -> dict[str, str]:
    model = platform.processor() or platform.machine()
    try:
        lines = read_named("/proc/cpuinfo", 1024**2, "text").decode("utf-8", "replace").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    except FileFault:
        pass
    cores = str(available_threads())
    return {"cpu": model, "cores": cores, "system": f"{platform.system()} {platform.machine()}"}


def encode(results: Results, extra: Mapping[str, object] | None = None) -> bytes:
    """`results` as JSON, followed by `extra` (the verdicts, for people)."""
    values = {"format": FORMAT, **dataclasses.asdict(results), **(extra or {})}
    text = json.dumps(_rounded(values), indent=1, ensure_ascii=False, allow_nan=False)
    return (_short_lists(text) + "\n").encode("utf-8")


def decode(data: bytes, source: str = "results") -> Results:
    """The results that `encode` wrote, or FileFault in one line."""
    try:
        values = cast("dict[str, Any]", decode_object(data, source, RESULTS))
        if values["format"] != FORMAT:
            raise FileFault(f"{source}: format {values['format']}, this version reads {FORMAT}; update clipup")
        return Results(
            experiment=str(values["experiment"]),
            runs=int(values["runs"]),
            generations=int(values["generations"]),
            provenance=Provenance(**values["provenance"]),
            groups=tuple(_group(entry) for entry in values["groups"]),
            changes={str(name): str(value) for name, value in values["changes"].items()},
        )
    except FileFault:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise FileFault(f"{source}: not a result file of clipup reproduce ({type(error).__name__}: {error})") from error


def read_results(path: Path) -> Results:
    """The results in a file."""
    return decode(read_named(path, RESULTS.size, "a result file"), str(path))


def _group(entry: Mapping[str, object]) -> GroupResult:
    runs = cast("list[dict[str, object]]", entry["runs"])
    names = tuple(str(name) for name in cast("list[object]", entry["run_names"]))
    name, label, settings = (str(entry[field]) for field in ("name", "label", "settings"))
    return GroupResult(name, label, settings, names, tuple(_run(run) for run in runs))


def _run(entry: Mapping[str, object]) -> RunResult:
    known = {name: entry[name] for name in RunResult.__dataclass_fields__ if name in entry}
    values = {name: tuple(cast("list[float]", v)) if isinstance(v, list) else v for name, v in known.items()}
    for part in dataclasses.fields(RunResult):
        if part.name in values and not _fits(values[part.name], str(part.type)):
            raise ValueError(f"{part.name} of a run must be {part.type} and finite")
    run = RunResult(**cast("dict[str, int]", values))  # pyright: ignore[reportArgumentType]
    if len(run.scores) != len(run.score_interactions):
        raise ValueError("a run needs as many scores as score_interactions")
    return run


def _fits(value: object, kind: str) -> bool:
    """Whether a value is what the type of a field says, and finite."""
    if kind.endswith(" | None"):
        return value is None or _fits(value, kind.removesuffix(" | None"))
    if kind.startswith("tuple["):
        inner = kind.removeprefix("tuple[").partition(",")[0]
        return isinstance(value, tuple) and all(_fits(entry, inner) for entry in cast("tuple[object, ...]", value))
    if kind == "float":
        return type(value) is int or (isinstance(value, float) and math.isfinite(value))
    return type(value) is {"int": int, "bool": bool, "str": str}[kind]


def _rounded(value: object) -> object:
    """Six significant digits: more than the measurements are worth, and the files stay small."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _rounded(entry) for name, entry in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_rounded(entry) for entry in cast("list[object]", value)]
    return value


def _short_lists(text: str) -> str:
    """Put every list of numbers on one line, so that people can read a file with a thousand speeds."""
    return re.sub(r"\[[\s\d.,e+-]+\]", lambda match: " ".join(match[0].split()), text)
