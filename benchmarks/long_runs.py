"""Make the long runs of the plan in docs/reproduction.md, and save them in the repository while they go.

    python benchmarks/long_runs.py [TEXT ...] [--jobs N] [--minutes N] [--work DIR] [--save-minutes N] [--commit]

PLAN has the runs of all groups that are not done, in their order. With TEXT, only those whose experiment, group or name
contains one of the texts. A run begins where its directory under results/unfinished ends, and goes to its end: all
generations, or what its Stop says. One that is there already is left as it is. End this at any time: everything is
saved, and the same command goes on. `clipup reproduce NAME --collect --out DIR --results results` makes the tables:
every saved run is put in DIR, because it wants all runs of the result file. Once a group is done, take its runs out of
PLAN and out of results/unfinished.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from clipup.reproduction.experiments import experiment_named
from clipup.reproduction.planned_runs import RUNS_DIRECTORY, PlannedRun, plan
from clipup.runs.records import Record, read_last, read_records
from clipup.runs.rundir import RunDirectory
from clipup.training.side_by_side import ScheduleProgress, SideBySide, SideRun

ROOT = Path(__file__).parents[1]
SAVED = ROOT / "results" / "unfinished"


@dataclass(frozen=True)
class Stop:
    """When a run may end before its last generation: it is solved twice in a row, or has had its chance."""

    score: float
    interactions: int

    def reached(self, run: RunDirectory) -> bool:
        """Whether the run may end."""
        last = read_last(run.records_path, Record)
        if last is None:
            return False
        if last.total_interactions >= self.interactions:
            return True
        scores = [record.score for record in read_records(run.records_path) if record.score is not None]
        return len(scores) > 1 and min(scores[-2:]) >= self.score


SOLVED = Stop(6000.0, 40_000_000)
SIX_HOURS = Stop(math.inf, 150_000_000)
"""What Bullet's Humanoid makes in six hours of two processors, at 7,000 a second."""
SCALED: dict[str, object] = {"population": 800, "population_max": 6400, "interactions": 120_000}
"""Bullet's Humanoid on this machine: the paper's numbers of candidates and T, divided by 12.5."""
PLAN: tuple[tuple[str, str, Sequence[int], Stop | None, dict[str, object]], ...] = (
    ("small-population", "clipup-small", (2, 3, 4, 5), SOLVED, {}),
    ("small-population", "noclip-small", (1, 2, 3), SOLVED, {}),
    ("small-population", "clipup-small", (1,), None, {}),
    ("humanoid-bullet", "clipup", (1,), SIX_HOURS, SCALED),
    ("step-size", "clipup-fast", (1,), None, {}),
)
"""Experiment, group, seeds, when they may stop, and settings that differ from the paper's."""


def planned() -> list[tuple[str, PlannedRun, Stop | None]]:
    """List the runs in their order, each with the name of its experiment."""
    return [
        (name, run, stop)
        for name, group, seeds, stop, changes in PLAN
        for run in plan(experiment_named(name), runs=max(seeds), only=[group], changes=changes)
        if run.seed in seeds
    ]


def finished(run: PlannedRun, stop: Stop | None, work: Path) -> bool:
    """Whether nothing is left to do for the run."""
    return run.is_finished(work) or (stop is not None and stop.reached(run.directory(work)))


def restore(work: Path) -> None:
    """Put the saved runs where they go on, unless they are there."""
    for saved in SAVED.glob("*-seed-*[0-9]"):
        run = work / RUNS_DIRECTORY / saved.name
        if not run.exists():
            run.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(saved, run)


def save(run: RunDirectory) -> None:
    """Copy the run with its newest checkpoint alone. It may be at work: one killed now could also go on."""
    target, new = SAVED / run.path.name, SAVED / f"{run.path.name}.new"
    checkpoints = sorted(run.path.glob("checkpoints/generation-*.safetensors"))
    if not checkpoints:
        return
    shutil.rmtree(new, ignore_errors=True)
    (new / "checkpoints").mkdir(parents=True)
    # The checkpoint first: records may be ahead of it, but never behind.
    shutil.copy(checkpoints[-1], new / "checkpoints")
    for pattern in ("*.toml", "*.jsonl", "*.json", "*.safetensors"):
        for path in run.path.glob(pattern):
            shutil.copy(path, new)
    config = new / run.config_path.name  # its comment names the run's place: not that on this machine
    config.write_text(config.read_text("utf-8").replace(str(run.path), f"reproduction/runs/{run.path.name}"), "utf-8")
    shutil.rmtree(target, ignore_errors=True)
    new.rename(target)


class Keeper:
    """Looks at the runs while they go: saves them now and then, and ends those that may stop."""

    def __init__(
        self, runs: Sequence[tuple[PlannedRun, Stop | None]], work: Path, seconds: float, commit: bool
    ) -> None:
        self._runs, self._work, self._seconds, self._commit = runs, work, seconds, commit
        self._saved_at = time.monotonic()

    def watch(self, progress: ScheduleProgress) -> None:
        """Do what is due."""
        for run, stop in self._runs:
            directory = run.directory(self._work)
            if stop is not None and directory.is_busy() and stop.reached(directory):
                os.kill(int(directory.lock_path.read_text()), signal.SIGTERM)
        if time.monotonic() - self._saved_at >= self._seconds:
            print(", ".join(progress.running), f"{progress.finished} of {progress.total} finished", flush=True)
            self.save()

    def save(self) -> None:
        """Save every run that has begun."""
        self._saved_at = time.monotonic()
        for run, _ in self._runs:
            save(run.directory(self._work))
        if self._commit:
            # Git may be busy, or nothing new: then the next time will do.
            git = ["git", "-C", str(ROOT)]
            subprocess.run([*git, "add", str(SAVED)], check=False)
            subprocess.run([*git, "commit", "-q", "-m", "Long runs, as far as they are", "--", str(SAVED)], check=False)


def main() -> None:
    """Make the runs that are not finished."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", metavar="TEXT")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default: 2)")
    parser.add_argument("--minutes", type=float, help="stop after this time (default: when all are finished)")
    parser.add_argument("--work", type=Path, default=Path("reproduction"), help="default: reproduction")
    parser.add_argument("--save-minutes", type=float, default=20.0, help="how often runs are saved (default: 20)")
    parser.add_argument("--commit", action="store_true", help="commit what is saved")
    arguments = parser.parse_args()
    work: Path = arguments.work
    restore(work)
    chosen: list[tuple[PlannedRun, Stop | None]] = []
    sides: list[SideRun] = []
    for name, run, stop in planned():
        if arguments.only and not any(text in f"{name} {run.group} {run.name}" for text in arguments.only):
            continue
        chosen.append((run, stop))
        label = f"{name} {run.group} {run.seed}"
        config = replace(run.config, workers=1 if arguments.jobs > 1 else None)
        sides.append(SideRun(label, run.directory(work), config, partial(finished, run, stop, work)))
    keeper = Keeper(chosen, work, 60 * arguments.save_minutes, arguments.commit)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    budget: Any = None if arguments.minutes is None else 60 * arguments.minutes
    try:
        end = SideBySide(sides, jobs=arguments.jobs, budget=budget, watch=keeper.watch, watch_seconds=10).run()
    finally:
        keeper.save()
    print(f"{end.reason}: {end.finished} of {end.total} finished", *end.failures, sep="\n")


if __name__ == "__main__":
    main()
