"""How a run ends: its last evaluation is a record like any other, and a run that is killed early has got ahead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import clipup
from clipup.cli import main
from clipup.export.policy import policy_file, read_policy
from clipup.runs.records import read_records

pytest.importorskip("envpool")
SMALL = ["--population", "8", "--evaluation-episodes", "2", "--quiet", "--seed", "3"]
SOURCE = str(Path(__file__).parents[2] / "src")


def train(run: Path, generations: int, every: int, *more: str) -> None:
    words = ["train", "Pendulum-v1", *SMALL, "--generations", str(generations), "--evaluate-every", str(every), *more]
    assert main([*words, "--run", str(run)]) == 0


@pytest.mark.parametrize("every", [0, 2, 3, 7])
def test_the_final_evaluation_is_in_the_records_and_in_the_best_policy(tmp_path: Path, every: int) -> None:
    train(tmp_path / "run", 5, every)
    records = read_records(tmp_path / "run" / "records.jsonl")
    assert [record.generation for record in records] == [1, 2, 3, 4, 5] and records[-1].score is not None
    best = max(record.score for record in records if record.score is not None)
    assert read_policy(policy_file(tmp_path / "run", best=True))[1].score == best
    in_memory = clipup.train(
        "Pendulum-v1", generations=5, population=8, evaluation_episodes=2, seed=3, evaluate_every=every
    )
    assert in_memory.records == tuple(records)


@pytest.mark.parametrize("every", [0, 2, 3])
def test_a_finished_run_that_is_given_more_generations_has_the_records_of_one_that_never_stopped(
    tmp_path: Path, every: int
) -> None:
    train(tmp_path / "whole", 5, every)
    train(tmp_path / "parts", 2, every)
    for more in ("+2", "+0", "+1"):
        assert main(["resume", str(tmp_path / "parts"), "--generations", more, "--quiet"]) == 0
    for name in ("records.jsonl", "policy.safetensors"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_the_cart_pole_stops_when_it_is_solved() -> None:
    result = clipup.train("CartPole-v1", workers=2)
    assert result.score == 500 and result.generation < 100 and result.reason == "score 500"


def newest_generation(run: Path) -> int:
    found = run.glob("checkpoints/generation-*.safetensors")
    return max((int(path.stem.partition("-")[2]) for path in found), default=0)


def test_a_run_that_is_killed_after_each_first_generation_gets_ahead(tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = ["train", "Pendulum-v1", *SMALL, "--generations", "6", "--checkpoint-seconds", "3600", "--run", str(run)]
    for start in range(1, 4):
        words = first if start == 1 else ["resume", str(run), "--quiet"]
        environment = {**os.environ, "PYTHONPATH": SOURCE}
        process = subprocess.Popen([sys.executable, "-m", "clipup", *words], env=environment)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None:
            if newest_generation(run) >= start:
                break
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert newest_generation(run) >= start
