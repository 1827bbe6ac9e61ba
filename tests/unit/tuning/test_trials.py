"""Trials: how long the rest takes is told from the generations really trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from clipup.cli.tune import progress_line
from clipup.errors import Diverged
from clipup.runs.config import RunConfig
from clipup.runs.records import ClockRecord, Record, encode_line
from clipup.runs.rundir import RunDirectory
from clipup.tracking import Tracker
from clipup.tuning import trials
from clipup.tuning.speed_search import Point
from clipup.tuning.trials import TrialProgress, TrialRuns

SECONDS = 2.0  # of a made-up generation
LINE = Record(
    generation=1, population=2, interactions=1, total_interactions=1, fitness_mean=1.0, fitness_best=1.0, best=1.0,
    score=1.0, score_standard_error=1.0, speed=1.0, max_speed=1.0, clipped=True, stdev_norm=1.0, gradient_norm=1.0,
    gradient_agreement=0.5, nonfinite=0, tied=0.0, population_bound=False,
)  # fmt: skip


class MadeUpTraining:
    """Training whose generations take as long as the clock is told, from where a directory's records end."""

    def __init__(self) -> None:
        self.now = 0.0
        self.fails_at: int | None = None
        self.checkpoint: int | None = None
        """Where a killed run goes on from, when that is before the end of its records."""

    def monotonic(self) -> float:
        return self.now

    def train(self, config: RunConfig, directory: RunDirectory, *, trackers: Sequence[Tracker] = ()) -> None:
        done = len(trials.read_records(directory.records_path)) if self.checkpoint is None else self.checkpoint
        for generation in range(done + 1, (config.generations or 0) + 1):
            if generation == self.fails_at:
                raise Diverged("as asked")
            self.now += SECONDS
            write(directory.path, generation)
            for tracker in trackers:
                line = dataclasses.replace(LINE, generation=generation)
                tracker.generation(line, ClockRecord(generation, self.now, 1.0))


def write(path: Path, generations: int) -> None:
    path.mkdir(parents=True, exist_ok=True)
    lines = [dataclasses.replace(LINE, generation=number) for number in range(1, generations + 1)]
    RunDirectory(path).config_path.touch()
    RunDirectory(path).records_path.write_bytes(b"".join(encode_line(line) for line in lines))


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> MadeUpTraining:
    made = MadeUpTraining()
    monkeypatch.setattr(trials, "advance", made.train)
    monkeypatch.setattr(trials, "time", made)
    return made


@pytest.fixture
def told() -> list[TrialProgress]:
    return []


@pytest.fixture
def runs(tmp_path: Path, training: MadeUpTraining, told: list[TrialProgress]) -> TrialRuns:
    journal: Any = SimpleNamespace(record=lambda *rest, **more: None, fail=lambda *rest: None)
    made = TrialRuns(RunConfig(env="X"), tmp_path, journal, told.append, generations=100)
    made.expect(17.5)
    return made


def test_a_resumed_trial_counts_as_the_generations_that_were_left_of_it(
    runs: TrialRuns, told: list[TrialProgress]
) -> None:
    write(runs.path(Point(0.1), 0), 48)
    runs.value(Point(0.1), 0, 0.5)
    runs.value(Point(0.2), 0, 0.5)
    assert [progress.seconds_per_run for progress in told] == pytest.approx([100 * SECONDS, 100 * SECONDS])
    assert runs.spent() == 1.0
    assert "[ 0.5 of about 18 runs, about 56m40s left]" in progress_line(told[0])


def test_generations_that_a_resumed_trial_makes_again_count_too(
    runs: TrialRuns, told: list[TrialProgress], training: MadeUpTraining
) -> None:
    write(runs.path(Point(0.1), 0), 48)
    training.checkpoint = 20
    runs.value(Point(0.1), 0, 0.5)
    assert told[0].seconds_per_run == pytest.approx(100 * SECONDS)


def test_a_trial_that_failed_soon_counts_as_what_it_did(
    runs: TrialRuns, told: list[TrialProgress], training: MadeUpTraining
) -> None:
    training.fails_at = 4
    runs.value(Point(0.1), 0, 0.5)
    assert told[0].seconds_per_run == pytest.approx(100 * SECONDS)
    assert runs.spent() == 0.5 and "failed" in progress_line(told[0])


def test_how_long_the_rest_takes_is_not_told_before_anything_was_trained(
    runs: TrialRuns, told: list[TrialProgress]
) -> None:
    write(runs.path(Point(0.1), 0), 100)
    runs.value(Point(0.1), 0, 1.0)
    assert progress_line(told[0]).startswith("[ 1.0 of about 18 runs] ")
