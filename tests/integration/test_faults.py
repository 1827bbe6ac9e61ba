"""A disk that fails at any operation: the command ends in one line, and resuming leads to the same bytes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FAULTING = Path(__file__).with_name("faulting.py")
SOURCE = str(Path(__file__).parents[2] / "src")
SMALL = [
    *("--population", 8, "--evaluate-every", 2, "--evaluation-episodes", 2, "--checkpoint-seconds", 0, "--quiet"),
    *("--max-episode-steps", 20, "--seed", 4),
]
RUNS = {
    "compiled": ["train", "CartPole-v1", "--engine", "compiled", *SMALL],
    "gymnasium": ["train", "CartPole-v1", "--engine", "gymnasium", "--workers", 1, *SMALL],
    "envpool": ["train", "CartPole-v1", "--engine", "envpool", *SMALL],
    "processes": ["train", "CartPole-v1", "--engine", "gymnasium", "--workers", 2, *SMALL],
    "ray": ["train", "CartPole-v1", "--engine", "gymnasium", "--workers", 2, "--cluster", "ray", *SMALL],
}


def survive(clipup, tmp_path: Path, engine: str, faults: int) -> dict[str, int]:
    for name, generations in (("start", 3), ("whole", 7)):
        done = clipup(*RUNS[engine], "--generations", generations, "--run", name)
        assert done.returncode == 0, done.stderr
    shutil.rmtree(tmp_path / "scratch", ignore_errors=True)
    (tmp_path / "scratch").mkdir()
    places = [tmp_path / name for name in ("start", "whole", "scratch")]
    words = [FAULTING, *places, faults, "--", "resume", "{run}", "--generations", 7, "--quiet"]
    done = subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, check=False, timeout=900,
        env={**os.environ, "PYTHONPATH": SOURCE, "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_disk_that_fails_once_loses_nothing(clipup, tmp_path):
    assert survive(clipup, tmp_path, "compiled", 32)["ended a command"] >= 12


@pytest.mark.slow
@pytest.mark.timeout(1000)
@pytest.mark.parametrize(
    ("engine", "faults"), [("compiled", 300), ("gymnasium", 300), ("envpool", 300), ("processes", 24), ("ray", 8)]
)
def test_a_disk_that_fails_at_any_of_hundreds_of_operations_loses_nothing(clipup, tmp_path, engine, faults):
    survive(clipup, tmp_path, engine, faults)
