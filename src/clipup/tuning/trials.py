"""Trials as runs on disk: each in its own run directory, continued when the search needs more of it."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clipup.errors import ClipUpError, Diverged, EnvironmentFault
from clipup.files import path_below
from clipup.runs.config import RunConfig
from clipup.runs.records import ClockRecord, Record, read_records
from clipup.runs.rundir import RunDirectory
from clipup.tracking import Tracker
from clipup.training.api import advance
from clipup.tuning.journal import Journal
from clipup.tuning.speed_search import WHOLE, Point


@dataclass(frozen=True)
class TrialProgress:
    """What is reported after each step of the search."""

    point: Point
    seed: int
    share: float
    value: float
    spent: float
    """Training done so far, in whole runs."""
    planned: float
    """Expected total, in whole runs."""
    seconds_per_run: float
    """Measured in this call; nan before its first generation."""


class TrialRuns:
    """The search's `TrialEvaluator`: trains runs, and looks up those that an earlier session made."""

    def __init__(
        self,
        config: RunConfig,
        directory: Path,
        journal: Journal,
        report: Callable[[TrialProgress], None],
        generations: int,
    ) -> None:
        """Run variations of `config`, of `generations` each, in directories below `directory`."""
        self._config = config
        self._directory = directory
        self._journal = journal
        self._report = report
        self._generations = generations
        self._shares: dict[tuple[Point, int], float] = {}
        self._planned = math.nan
        self._seconds = 0.0
        self._trained = _Counter()

    def expect(self, planned: float) -> None:
        """Set the expected total cost in whole runs, for the reports."""
        self._planned = planned

    def spent(self) -> float:
        """Training done in whole runs, including earlier sessions."""
        return sum(self._shares.values())

    def cost(self, point: Point, seed: int, share: float) -> float:
        """Training that `value` would add, in whole runs."""
        return max(0.0, share - self._shares.get((point, seed), 0.0))

    def value(self, point: Point, seed: int, share: float) -> float:
        """The run's value after that share of its generations."""
        generation = max(1, round(share * self.generations(point)))
        path = self.path(point, seed)
        before = self._shares.get((point, seed), 0.0)
        records = _known(path)
        if not records or records[-1].generation < generation:
            started = time.monotonic()
            records = self._train(point, seed, generation, path)
            self._seconds += time.monotonic() - started
        self._shares[point, seed] = max(before, share)
        value = run_value(records, generation)
        self._journal.record(point, seed, records, value, complete=share == WHOLE)
        # Counted in generations: a run that an earlier session began, or that failed, trains less than its share.
        done = self._trained.generations / self._generations
        pace = self._seconds / done if done else math.nan
        self._report(TrialProgress(point, seed, share, value, self.spent(), self._planned, pace))
        return value

    def generations(self, point: Point) -> int:
        """The length of a whole run: with another population, the one with as many candidates in all."""
        if point.population is None:
            return self._generations
        return max(2, round(self._generations * self._config.population / point.population))

    def records(self, point: Point, seed: int) -> list[Record]:
        """The records of a trial's run."""
        return _known(self.path(point, seed))

    def path(self, point: Point, seed: int) -> Path:
        """The run directory of a trial."""
        words = [f"{name}-{value:g}" for name, value in point.settings().items()]
        return path_below(self._directory, "-".join([*words, f"seed-{seed}"]))

    def _train(self, point: Point, seed: int, generation: int, path: Path) -> list[Record]:
        config = dataclasses.replace(
            self._config,
            **point.settings(),  # pyright: ignore[reportArgumentType]  (settings of float type)
            seed=self._config.seed + seed,
            generations=generation,
        )
        try:
            advance(config, RunDirectory(path), trackers=[self._trained])
        except (Diverged, EnvironmentFault) as error:
            self._journal.fail(point, seed, str(error))
        return _known(path)


class _Counter(Tracker):
    """Counts trained generations, including those that a resumed run repeats."""

    generations = 0
    _last = 0

    def generation(self, record: Record, clock: ClockRecord) -> None:
        """One more, unless it is told of the last one again with its final evaluation."""
        self.generations += record.generation != self._last
        self._last = record.generation


def run_value(records: list[Record], generation: int) -> float:
    """The mean score over the last tenth of the generations, and over at least the last two evaluations.

    A single evaluation says more about its sixteen episodes than about the run.
    """
    scored = [
        (record.generation, record.score)
        for record in records
        if record.score is not None and record.generation <= generation
    ]
    if not scored or records[-1].generation < generation:
        return -math.inf
    late = [score for number, score in scored if number > 0.9 * generation]
    late = late if len(late) >= 2 else [score for _, score in scored[-2:]]
    value = sum(late) / len(late)
    return value if math.isfinite(value) else -math.inf


def _known(path: Path) -> list[Record]:
    try:
        return read_records(RunDirectory(path).records_path)
    except ClipUpError:
        return []
