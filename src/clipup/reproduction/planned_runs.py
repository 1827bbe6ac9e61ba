"""The runs that an experiment consists of: their order, names and progress, and the libraries they need.

A run's name contains the task, the optimizer, a digest of every setting that can change results, and the seed. Limits
such as the number of generations are left out, because a longer run contains the shorter one: a reproduction with more
generations continues the runs of one with fewer. Equal settings in two experiments give the same name, so both use one
run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from clipup.engines import Task, registry
from clipup.errors import FileFault, InvalidArgument, MissingDependency
from clipup.files import path_below
from clipup.reproduction.experiments import Experiment, ExperimentGroup
from clipup.runs.config import CHANGEABLE, RunConfig, differences, identity
from clipup.runs.records import Record, read_last
from clipup.runs.resolve import resolve
from clipup.runs.rundir import RunDirectory
from clipup.suggestions import did_you_mean
from clipup.training.side_by_side import SideRun

RUNS_DIRECTORY = "runs"


@dataclass(frozen=True)
class PlannedRun:
    """One run of an experiment, started or not."""

    group: str
    seed: int
    name: str
    config: RunConfig

    @property
    def wanted(self) -> int:
        """Generations that the experiment needs."""
        return self.config.generations or 0

    def directory(self, out: Path) -> RunDirectory:
        """The run's directory inside `out`, the directory of the reproduction."""
        return RunDirectory(path_below(out, RUNS_DIRECTORY, self.name))

    def generations_done(self, out: Path) -> int:
        """Complete generations on disk, at most `wanted`."""
        last = read_last(self.directory(out).records_path, Record)
        return min(last.generation, self.wanted) if last is not None else 0

    def is_finished(self, out: Path) -> bool:
        """Whether all generations are made and the last one was evaluated."""
        if self.generations_done(out) < self.wanted:
            return False
        every = self.config.evaluate_every
        return (every > 0 and self.wanted % every == 0) or self.directory(out).read_status().state == "finished"

    def placed(self, out: Path) -> SideRun:
        """The run as one that is made side by side with others, inside `out`."""
        return SideRun(
            f"{self.group} seed {self.seed}", self.directory(out), self.config, partial(self.is_finished, out)
        )


def plan(
    experiment: Experiment,
    *,
    runs: int | None = None,
    generations: int | None = None,
    only: Collection[str] = (),
    cluster: str | None = None,
    changes: Mapping[str, object] | None = None,
) -> tuple[PlannedRun, ...]:
    """List the runs of an experiment in the order to make them. `changes` override settings of all groups.

    Within a turn, every group makes one run before any makes its second. A reproduction that is cut short then has
    groups of similar size to compare.
    """
    known = [group.name for group in experiment.groups]
    for name in only:
        if name not in known:
            raise InvalidArgument(
                f"{experiment.name} has no group {name!r}; its groups are: {', '.join(known)}"
                f"{did_you_mean(name, known)}"
            )
    count = experiment.runs if runs is None else runs
    wanted = experiment.generations if generations is None else generations
    if count < 1 and known:
        raise InvalidArgument(f"runs must be at least 1, got {count}")
    if wanted < 1 and known:
        raise InvalidArgument(f"generations must be at least 1, got {wanted}")
    chosen = [group for group in experiment.groups if not only or group.name in only]
    seeds = range(1, count + 1)
    ordered = sorted((group.turn, seed, place) for place, group in enumerate(chosen) for seed in seeds)
    settings: dict[str, object] = {**_checked(changes or {}), "generations": wanted}
    if cluster is not None:
        settings["cluster"] = cluster
    planned = tuple(_planned(chosen[place], settings | {"seed": seed}) for _, seed, place in ordered)
    _check_distinct(planned, changes or {})
    return planned


def run_name(config: RunConfig) -> str:
    """The name of the run of a configuration."""
    task = re.sub(r"[^A-Za-z0-9.-]+", "-", config.env.rpartition(":")[2])
    settings = {name: value for name, value in identity(config).items() if name != "seed"}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode("utf-8")).hexdigest()[:10]
    return f"{task}-{config.optimizer}-{digest}-seed-{config.seed}"


def check_same_run(directory: RunDirectory, config: RunConfig) -> None:
    """Refuse a directory whose run has other settings than `config`."""
    if names := differences(directory.read_config(), config):
        raise FileFault(f"{directory.path}: its run differs in {', '.join(names)}; remove it or choose another --out")


def check_requirements(experiment: Experiment, *, runs: bool, figures: bool, cluster: bool) -> None:
    """Raise `MissingDependency` for the first library that is missing, before any run starts."""
    for library, extra in requirements(experiment, runs=runs, figures=figures, cluster=cluster):
        if importlib.util.find_spec(library) is None:
            raise MissingDependency.of(library, extra=extra)


def requirements(experiment: Experiment, *, runs: bool, figures: bool, cluster: bool) -> tuple[tuple[str, str], ...]:
    """The libraries that the experiment's runs and figures import, each with the extra that installs it."""
    found: dict[str, str] = {}
    for group in experiment.groups if runs else ():
        options = cast("Mapping[str, object]", group.settings.get("env_options", {}))
        engine = str(group.settings.get("engine", registry.AUTO))
        found |= registry.libraries(Task(group.env, options, engine=engine))
    if runs and cluster and experiment.groups:
        found["ray"] = "ray"
    if figures and experiment.figures:
        found["matplotlib"] = "plot"
    return tuple(found.items())


def _planned(group: ExperimentGroup, settings: Mapping[str, object]) -> PlannedRun:
    config, _ = resolve({**group.settings, **settings, "env": group.env}, preset=group.preset)
    return PlannedRun(group.name, config.seed, run_name(config), config)


def _checked(changes: Mapping[str, object]) -> Mapping[str, object]:
    for name in changes:
        if name in CHANGEABLE or name in ("env", "seed"):
            raise InvalidArgument(
                f"--set cannot change {name}: it is only for settings that change results, other than env and seed; "
                "use --runs, --generations, --budget, --jobs or --cluster"
            )
    return changes


def _check_distinct(planned: Sequence[PlannedRun], changes: Mapping[str, object]) -> None:
    groups: dict[str, str] = {}
    for run in planned:
        other = groups.setdefault(run.name, run.group)
        if other != run.group:
            raise InvalidArgument(
                f"--set {', '.join(sorted(changes))} makes the groups {other} and {run.group} the same; "
                "do not set what they differ in"
            )
