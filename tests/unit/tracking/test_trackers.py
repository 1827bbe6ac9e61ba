import contextlib
import io
import math
import os
import sys
import types
from pathlib import Path

import pytest

from clipup.errors import InvalidArgument, MissingDependency
from clipup.runs.config import RunConfig
from clipup.runs.records import ClockRecord, Record
from clipup.runs.rundir import Status
from clipup.tracking import RunInfo, make_trackers
from clipup.tracking.live import LiveDisplay, sparkline
from clipup.tracking.protocol import measurements
from clipup.tracking.terminal import PlainDisplay, WarningDisplay, count, duration, headline, number, remaining


def record(generation: int = 1, score: float | None = None) -> Record:
    return Record(
        generation, 20, 300, 300 * generation, 1.5, 3.0, 4.0, score, None if score is None else 0.5, 0.1, 0.15, True,
        2.0, 0.3, 0.5, 0, 0.0, False,
    )  # fmt: skip


CLOCK = ClockRecord(1, 2.0, 12_345.0)
CONFIG = RunConfig(env="CartPole-v1", generations=10)


def info(path: Path | None = None, generation: int = 0) -> RunInfo:
    return RunInfo(CONFIG, path, generation, "linear-bias", 10, "envpool", "asked for", "2 threads")


def test_plain_lines_show_every_evaluation_and_not_more_than_a_line_every_few_seconds():
    stream = io.StringIO()
    display = PlainDisplay(stream, interval=1000)
    display.begin(info())
    for generation in range(1, 10):
        display.generation(record(generation, 7.0 if generation == 5 else None), CLOCK)
    display.message("look")
    display.end(Status("finished"))
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("CartPole-v1: linear-bias, 10 parameters, max_speed 0.05, seed 0")
    assert [line.split()[1] for line in lines[1:-1]] == ["1/10", "5/10"]
    for words in ("population 20", "score 7.00 ± 0.5", "speed 0.1/0.15", "stdev norm 2", "steps/s 12.3k", "time left"):
        assert words in lines[2]
    assert lines[-1] == "look"


def test_the_first_line_says_if_training_has_other_physics():
    cheap = RunConfig(env="Hopper-v5", physics="integrator=Euler", generations=1)
    assert "compiled (training physics: integrator=Euler)" in headline(
        RunInfo(cheap, None, 0, "linear", 3, "compiled", "asked for", "1 thread")
    )
    assert "physics" not in headline(info())


def test_quiet_leaves_messages_only():
    stream = io.StringIO()
    display = WarningDisplay(stream)
    display.begin(info())
    display.generation(record(), CLOCK)
    display.message("warning: x")
    display.end(Status("finished"))
    assert stream.getvalue() == "warning: x\n"


def test_a_reader_who_has_gone_does_not_end_a_run():
    reading, writing = os.pipe()
    os.close(reading)
    with contextlib.suppress(BrokenPipeError), os.fdopen(writing, "w") as stream:
        display = PlainDisplay(stream)
        display.begin(info())
        display.generation(record(), CLOCK)
    closed = io.StringIO()
    closed.close()
    PlainDisplay(closed).message("lost")


@pytest.mark.parametrize("columns", [50, 60, 80, 120])
def test_the_live_display_draws_everything_that_it_should(columns: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = io.StringIO()
    display = LiveDisplay(stream)
    display.begin(info(generation=3))
    display.generation(record(4, 2.0), CLOCK)
    for generation in range(5, 70):
        display.generation(record(generation, generation % 2), CLOCK)
    display.generation(record(5, 9.0), CLOCK)
    display.message("[not markup]")
    display.end(Status("finished"))
    text = " ".join(stream.getvalue().split())
    assert "…" not in text  # nothing is cut off
    for words in (
        *("generation", "5 / 10", "population", "interactions", "9.00 ± 0.5 (generation 5)", "best fitness"),
        *("mean fitness", "0.1 / 0.15 (clipped)", "stdev norm", "steps/s", "training time", "time left", "▂▁▂█"),
        *("going on from generation 3", "[not markup]"),
    ):
        assert words in text


def test_numbers_are_short():
    assert [count(value) for value in (5, 1234, 5_600_000, 7e9)] == ["5", "1.23k", "5.6M", "7G"]
    assert [duration(value) for value in (0, 59, 61, 3600, 90_000)] == ["0s", "59s", "1m01s", "1h00m", "25h00m"]
    assert [number(value) for value in (None, 0.0123, 1234.5)] == ["-", "0.0123", "1,234.50"]
    assert sparkline([1.0, 1.0]) == "▁▁"


def test_the_remaining_time_follows_the_nearest_limit():
    clock = ClockRecord(5, 50.0, 1.0)
    assert remaining(RunConfig(env="A", generations=10), record(5), clock) == "50s"
    assert remaining(RunConfig(env="A", generations=10, time_limit=60), record(5), clock) == "10s"
    assert remaining(RunConfig(env="A", generations=None, total_interactions=3000), record(5), clock) == "50s"


def test_tensorboard_reads_what_was_written_and_a_resumed_run_goes_on_in_the_same_plot(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for start, generations in ((0, (1, 2, 3)), (2, (3, 4))):
        (tracker,) = make_trackers(RunConfig(env="A", tensorboard=True), tmp_path)
        tracker.begin(info(tmp_path, start))
        for generation in generations:
            tracker.generation(record(generation, float(generation)), CLOCK)
        tracker.message("ignored")
        tracker.end(Status("finished"))
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    scores = events.Scalars("clipup/score")
    assert [(event.step, event.value) for event in scores] == [(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)]
    assert "clipup/steps_per_second" in events.Tags()["scalars"]


def test_tensorboard_needs_a_place_to_write():
    with pytest.raises(InvalidArgument, match="run directory"):
        make_trackers(RunConfig(env="A", tensorboard=True), None)


class FakeRun:
    def __init__(self) -> None:
        self.logged: list[tuple[int, dict[str, float]]] = []
        self.exit_code: int | None = None

    def log(self, values: dict[str, float], step: int) -> None:
        self.logged.append((step, values))

    def finish(self, exit_code: int) -> None:
        self.exit_code = exit_code


def test_wandb_gets_the_configuration_and_every_number(monkeypatch, tmp_path):
    run, calls = FakeRun(), []
    library = types.ModuleType("wandb")
    library.init = lambda **options: calls.append(options) or run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", library)
    (tracker,) = make_trackers(RunConfig(env="A", wandb="project"), tmp_path)
    tracker.begin(info(tmp_path))
    tracker.generation(record(3, 1.0), CLOCK)
    tracker.end(Status("finished"))
    assert calls[0]["project"] == "project" and calls[0]["config"]["env"] == "CartPole-v1"
    assert calls[0]["resume"] == "allow" and len(calls[0]["id"]) == 16
    assert run.logged == [(3, measurements(record(3, 1.0), CLOCK))] and run.exit_code == 0


def test_mlflow_gets_the_configuration_and_every_number(monkeypatch):
    calls: list[tuple[str, object]] = []
    library = types.ModuleType("mlflow")
    for name in ("set_experiment", "start_run", "log_params", "log_metrics", "end_run"):
        setattr(library, name, lambda *values, _name=name, **options: calls.append((_name, values or options)))
    monkeypatch.setitem(sys.modules, "mlflow", library)
    (tracker,) = make_trackers(RunConfig(env="A", mlflow="experiment"), None)
    tracker.begin(info())
    tracker.generation(record(3), CLOCK)
    tracker.end(Status("interrupted"))
    assert [name for name, _ in calls] == ["set_experiment", "start_run", "log_params", "log_metrics", "end_run"]
    assert calls[-1][1] == {"status": "KILLED"}


@pytest.mark.parametrize(("setting", "library"), [("wandb", "wandb"), ("mlflow", "mlflow")])
def test_a_missing_library_is_told_with_its_install_command(monkeypatch, setting, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingDependency, match=rf"pip install 'clipup\[{library}\]'"):
        make_trackers(RunConfig(env="A", **{setting: "x"}), None)


def test_what_is_not_known_is_left_out_of_the_measurements():
    values = measurements(record(), CLOCK)
    assert "score" not in values and values["clipped"] == 1.0 and values["seconds"] == 2.0


def test_a_score_that_is_no_number_does_not_stop_the_drawing():
    display = LiveDisplay(io.StringIO())
    display.begin(info())
    for generation, score in enumerate((1.0, math.nan, math.inf, 2.0), start=1):
        display.generation(record(generation, score), CLOCK)
    display._render()
    display.end(Status("finished"))
