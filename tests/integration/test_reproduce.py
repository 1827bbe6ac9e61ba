"""``clipup reproduce`` from the command line to the result file, with real runs in processes of their own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from clipup.cli.main import main
from clipup.reproduction.experiments import EXPERIMENTS, experiment_named
from clipup.reproduction.planned_runs import plan
from clipup.reproduction.results import read_results
from clipup.training.side_by_side import SideBySide

pytest.importorskip("envpool")
SHORT = ["--runs", "2", "--generations", "5"]
SMALL = ["--set", "population=20", "--set", "population_max=40", "--set", "interactions=2000"]


def reproduce(*words: str) -> int:
    return main(["reproduce", *words, "--quiet"])


def records(out: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in sorted(out.glob("runs/*/records.jsonl"))}


def test_lunar_lander_comes_out_beside_the_published_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    groups = ["--group", "clipup-ranks", "--group", "adam-0.15-over-1000"]
    assert reproduce("fitness-scale", *SHORT, *groups, "--out", str(tmp_path)) == 0
    shown = capsys.readouterr().out
    assert "269.95" in shown and "200.34" in shown and "not enough runs" in shown
    results = read_results(tmp_path / "fitness-scale.json")
    assert [len(group.finished) for group in results.groups if group.runs] == [2, 2]
    assert (tmp_path / "fitness-scale-scores.png").is_file() and (tmp_path / "fitness-scale-scores.svg").is_file()
    assert (tmp_path / "policies" / "fitness-scale.safetensors").is_file()

    # Again: nothing is repeated, and the result is the same but for the time of day.
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/*")}
    assert reproduce("fitness-scale", *SHORT, *groups, "--out", str(tmp_path)) == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/*")} == before
    assert read_results(tmp_path / "fitness-scale.json").groups == results.groups


def test_more_generations_go_on_with_the_same_runs_to_the_same_bytes(tmp_path: Path) -> None:
    words = ["fitness-scale", "--runs", "1", "--group", "clipup-raw", "--no-figures", "--set", "population=20"]
    reproduce(*words, "--generations", "3", "--out", str(tmp_path / "a"))
    reproduce(*words, "--generations", "7", "--out", str(tmp_path / "a"))
    reproduce(*words, "--generations", "7", "--out", str(tmp_path / "b"), "--jobs", "1")
    assert records(tmp_path / "a") == records(tmp_path / "b")
    assert len(records(tmp_path / "a")) == 1


def test_a_spent_budget_stops_and_the_next_call_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["fitness-scale", "--runs", "1", "--group", "clipup-raw", "--no-figures", "--set", "population=4"]
    out = ["--out", str(tmp_path)]
    assert reproduce(*words, *out, "--generations", "100000", "--budget", "0.05") == 0
    assert "stopped (budget)" in capsys.readouterr().err
    assert reproduce(*words, *out, "--generations", "5") == 0
    (run,) = read_results(tmp_path / "fitness-scale.json").group("clipup-raw").runs
    assert (run.generations, run.complete) == (5, True)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_however_it_is_stopped_no_worker_stays_and_the_next_call_goes_on(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    words = ["fitness-scale", "--runs", "1", "--group", "clipup-raw", "--no-figures", "--set", "population=20"]
    command = [sys.executable, "-m", "clipup", "reproduce", *words, "--generations", "40", "--out", str(tmp_path / "a")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    wait_for(lambda: any(records(tmp_path / "a").values()))
    process.send_signal(number)
    assert process.wait(timeout=60) == code
    wait_for(lambda: not is_alive(process.pid))  # nobody of its session is left
    (begun,) = records(tmp_path / "a").values()
    assert 0 < begun.count(b"\n") < 40
    reproduce(*words, "--generations", "40", "--out", str(tmp_path / "a"))
    reproduce(*words, "--generations", "40", "--out", str(tmp_path / "b"))
    assert records(tmp_path / "a") == records(tmp_path / "b")


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_run_that_fails_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    runs = plan(
        experiment_named("fitness-scale"), runs=2, generations=1, only=["clipup-raw"], changes={"population": 4}
    )
    blocked = runs[0].directory(tmp_path).path
    blocked.mkdir(parents=True)
    (blocked / "something.txt").write_text("not a run")
    outcome = SideBySide([run.placed(tmp_path) for run in runs]).run()
    assert (outcome.finished, outcome.reason, len(outcome.failures)) == (1, "failed", 1)
    assert "seed 1" in outcome.failures[0] and "not a run's" in outcome.failures[0]


def test_a_run_that_another_process_makes_is_left_to_it_and_is_no_failure(tmp_path: Path) -> None:
    runs = plan(
        experiment_named("fitness-scale"), runs=4, generations=1, only=["clipup-raw"], changes={"population": 4}
    )
    held = [run.directory(tmp_path) for run in runs[:3]]
    try:
        for directory, run in zip(held, runs, strict=False):
            directory.create(run.config)
        outcome = SideBySide([run.placed(tmp_path) for run in runs]).run()
        assert (outcome.finished, outcome.reason, outcome.failures) == (1, "busy", ())
    finally:
        for directory in held:
            directory.close()
    assert SideBySide([run.placed(tmp_path) for run in runs]).run().reason == "complete"


def test_a_budget_that_ends_before_a_run_has_begun_is_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce("fitness-scale", "--runs", "1", "--no-figures", "--budget", "0.005", "--out", str(tmp_path)) == 0
    assert "failed" not in capsys.readouterr().err


def test_a_score_of_an_earlier_generation_is_not_taken_for_the_last(tmp_path: Path) -> None:
    words = ["fitness-scale", "--runs", "1", "--group", "clipup-raw", "--no-figures", "--set", "population=4"]
    for generations in ("7", "10", "7"):
        assert reproduce(*words, "--generations", generations, "--out", str(tmp_path)) == 0
    (run,) = read_results(tmp_path / "fitness-scale.json").group("clipup-raw").runs
    assert (run.generations, run.complete) == (7, False)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs_short_and_small(name: str, tmp_path: Path) -> None:
    if name == "humanoid-bullet":
        pytest.importorskip("pybullet")
    # LunarLander with its own population; the others smaller, since a generation of Bullet's takes ten minutes.
    changes = [] if name in ("fitness-scale", "defaults-figure") else SMALL
    assert reproduce(name, *SHORT, *changes, "--out", str(tmp_path)) == 0
    results = read_results(tmp_path / f"{name}.json")
    assert all(len(group.finished) == 2 for group in results.groups)
    kept = json.loads((tmp_path / f"{name}.json").read_bytes())
    assert all(verdict["verdict"] == "not enough runs" for verdict in kept["verdicts"]) or name == "defaults-figure"
    assert list(tmp_path.glob(f"{name}-*.svg"))


@pytest.mark.slow
def test_the_committed_scores_come_out_again(tmp_path: Path) -> None:
    """On another kind of processor the simulator may round differently; then this may fail and nothing is wrong."""
    committed = read_results(Path(__file__).parents[2] / "results" / "fitness-scale.json")
    groups = ["clipup-ranks", "clipup-times-1000"]
    words = ["--runs", "1", "--generations", "10", "--no-figures", *(f"--group={group}" for group in groups)]
    assert reproduce("fitness-scale", *words, "--out", str(tmp_path)) == 0
    again = read_results(tmp_path / "fitness-scale.json")
    for group in groups:
        assert again.group(group).runs[0].scores == committed.group(group).runs[0].scores[:2]
        assert again.group(group).runs[0].score_interactions == committed.group(group).runs[0].score_interactions[:2]
