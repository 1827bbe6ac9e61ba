"""Which runs an experiment is made of, what each is called, and how far it is.

A run's name says the task, the optimizer, a digest of every setting that can change its results, and the seed. Limits
such as the number of generations are no part of it: a longer run contains the shorter one, so a reproduction of more
generations goes on with the runs of fewer. Equal settings in two experiments give the same name, hence one run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clipup.errors import FileFault, InvalidArgument
from clipup.reproduction.experiments import Experiment, Group
from clipup.runs.config import CHANGEABLE, RunConfig, identity
from clipup.runs.records import read_records
from clipup.runs.resolve import resolve
from clipup.runs.rundir import RunDirectory
from clipup.suggestions import did_you_mean

RUNS_FOLDER = "runs"


@dataclass(frozen=True)
class PlannedRun:
    """One run of an experiment, begun or not."""

    group: str
    seed: int
    name: str
    config: RunConfig

    def path(self, out: Path) -> Path:
        """Where the run lives within the reproduction's directory."""
        return out / RUNS_FOLDER / self.name

    def generations_done(self, out: Path) -> int:
        """Whole generations on disk, at most those that are wanted."""
        records = read_records(self.path(out) / "records.jsonl")
        return min(records[-1].generation, self.wanted) if records else 0

    def is_finished(self, out: Path) -> bool:
        """Whether nothing is left to do: its generations are made, and the last of them was evaluated."""
        if self.generations_done(out) < self.wanted:
            return False
        every = self.config.evaluate_every
        return (every > 0 and self.wanted % every == 0) or RunDirectory(
            self.path(out)
        ).read_status().state == "finished"

    @property
    def wanted(self) -> int:
        """Generations that the experiment needs of it."""
        return self.config.generations or 0


def plan(
    experiment: Experiment,
    *,
    runs: int | None = None,
    generations: int | None = None,
    only: Collection[str] = (),
    cluster: str | None = None,
    changes: Mapping[str, object] | None = None,
) -> tuple[PlannedRun, ...]:
    """The runs of an experiment, in the order in which they are best made; `changes` overrule settings of all groups.

    Within a turn one run of each group comes before the second of any, so that a reproduction cut short has groups of
    about equal size to compare.
    """
    known = [group.name for group in experiment.groups]
    for name in only:
        if name not in known:
            raise InvalidArgument(
                f"{experiment.name} has no group {name!r}; it has: {', '.join(known)}{did_you_mean(name, known)}"
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
    runs_planned = tuple(_planned(chosen[place], settings | {"seed": seed}) for _, seed, place in ordered)
    _check_distinct(runs_planned, settings)
    return runs_planned


def _checked(changes: Mapping[str, object]) -> Mapping[str, object]:
    for name in changes:
        if name in CHANGEABLE or name in ("env", "seed"):
            raise InvalidArgument(
                f"--set changes what a run computes, and {name} does not or is not to be changed; there are --runs, "
                "--generations, --budget, --jobs and --cluster"
            )
    return changes


def _check_distinct(planned: Sequence[PlannedRun], settings: Mapping[str, object]) -> None:
    groups: dict[str, str] = {}
    for run in planned:
        other = groups.setdefault(run.name, run.group)
        if other != run.group:
            raise InvalidArgument(
                f"with these --set ({', '.join(sorted(settings.keys() - {'generations', 'cluster'}))}) the groups "
                f"{other} and {run.group} are the same; leave out what they differ in"
            )


def check_same_run(directory: RunDirectory, config: RunConfig) -> None:
    """Refuse a directory whose run has other settings than its name says."""
    there, wanted = identity(directory.read_config()), identity(config)
    if there != wanted:
        different = sorted(name for name in {*there, *wanted} if there.get(name) != wanted.get(name))
        raise FileFault(
            f"{directory.path}: its run differs in {', '.join(different)}; remove it or choose another --out"
        )


def _planned(group: Group, settings: Mapping[str, object]) -> PlannedRun:
    config, _ = resolve({**group.settings, **settings, "env": group.env})
    return PlannedRun(group.name, config.seed, run_name(config), config)


def run_name(config: RunConfig) -> str:
    """The name of the run of a configuration."""
    task = re.sub(r"[^A-Za-z0-9.-]+", "-", config.env.rpartition(":")[2])
    settings = {name: value for name, value in identity(config).items() if name != "seed"}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode("utf-8")).hexdigest()[:10]
    return f"{task}-{config.optimizer}-{digest}-seed-{config.seed}"
