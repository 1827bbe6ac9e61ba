"""What runs came to: the content of a result file, as frozen records and as JSON."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from clipup.errors import FileFault
from clipup.reproduction.experiments import experiment_named

FORMAT = 1
_SIZE_LIMIT = 64 * 1024 * 1024


@dataclass(frozen=True)
class RunResult:
    """One run: how far it went, the scores of its center on the way, the size of each update."""

    seed: int
    generations: int
    interactions: int
    seconds: float
    """Training time; several runs may have shared the machine."""
    complete: bool
    """Whether it made all the generations that were asked for."""
    score: float | None
    """Of the last evaluation."""
    score_standard_error: float | None
    score_interactions: tuple[int, ...] = ()
    """Interactions at each evaluation of the center."""
    scores: tuple[float, ...] = ()
    speeds: tuple[float, ...] = ()
    """Of every generation, where the experiment looks at them."""
    speed_peak: float | None = None
    fitness_start: float | None = None
    """Mean fitness of the population over the first tenth of the generations."""
    fitness_end: float | None = None
    """The same over the last tenth."""
    stdev_norm: float | None = None
    """Norm of the search's standard deviation after the last generation."""
    workers: int | None = None
    """Cores that it had to itself, or shared with whatever else the machine did."""
    engine: str = ""
    """What stepped its environments."""

    def interactions_to(self, threshold: float) -> int | None:
        """Interactions at the first evaluation of at least `threshold`; None when there was none."""
        reached = zip(self.score_interactions, self.scores, strict=True)
        return next((interactions for interactions, score in reached if score >= threshold), None)


@dataclass(frozen=True)
class GroupResult:
    """The runs of one group that have begun."""

    name: str
    label: str
    settings: str
    """The settings by which it differs from the task's preset."""
    run_names: tuple[str, ...]
    runs: tuple[RunResult, ...]

    @property
    def finished(self) -> tuple[RunResult, ...]:
        """The runs that made all their generations, and have a final score."""
        return tuple(run for run in self.runs if run.complete and run.score is not None)

    @property
    def final_scores(self) -> list[float]:
        """The final score of each finished run."""
        return [run.score for run in self.finished if run.score is not None]


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
    """Settings that are not the paper's; with any, nothing is said about its claims."""

    @property
    def as_published(self) -> bool:
        """Whether settings and number of generations are the paper's."""
        return not self.changes and self.generations == experiment_named(self.experiment).generations

    def group(self, name: str) -> GroupResult:
        """The group of that name; one that has no runs yet is empty."""
        empty = GroupResult(name, name, "", (), ())
        return next((group for group in self.groups if group.name == name), empty)


def encode(results: Results, extra: Mapping[str, object] | None = None) -> bytes:
    """`results` as JSON, with `extra` (tables and verdicts, for people) after them."""
    values = {"format": FORMAT, **dataclasses.asdict(results), **(extra or {})}
    text = json.dumps(_rounded(values), indent=1, ensure_ascii=False, allow_nan=False)
    return (_short_lists(text) + "\n").encode("utf-8")


def decode(data: bytes, source: str = "results") -> Results:
    """The results that `encode` wrote, or FileFault in one line."""
    try:
        values = json.loads(data)
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
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileFault(f"{source}: not a result file of clipup reproduce ({type(error).__name__}: {error})") from error


def read_results(path: Path) -> Results:
    """The results in a file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileFault(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(data) > _SIZE_LIMIT:
        raise FileFault(f"{path}: larger than {_SIZE_LIMIT} bytes; this is no result file")
    return decode(data, str(path))


def _group(entry: Mapping[str, object]) -> GroupResult:
    runs = cast("list[dict[str, object]]", entry["runs"])
    return GroupResult(
        name=str(entry["name"]),
        label=str(entry["label"]),
        settings=str(entry["settings"]),
        run_names=tuple(str(name) for name in cast("list[object]", entry["run_names"])),
        runs=tuple(_run(run) for run in runs),
    )


def _run(entry: Mapping[str, object]) -> RunResult:
    known = {name: entry[name] for name in RunResult.__dataclass_fields__ if name in entry}
    values = {name: tuple(cast("list[float]", v)) if isinstance(v, list) else v for name, v in known.items()}
    return RunResult(**cast("dict[str, int]", values))  # pyright: ignore[reportArgumentType]


def _rounded(value: object) -> object:
    """Six significant digits are more than any of this is worth, and keep the files small."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _rounded(entry) for name, entry in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_rounded(entry) for entry in cast("list[object]", value)]
    return value


def _short_lists(text: str) -> str:
    """Put every list of numbers on one line: a file with a thousand speeds is to be read by people too."""
    return re.sub(r"\[[\s\d.,e+-]+\]", lambda match: " ".join(match[0].split()), text)
