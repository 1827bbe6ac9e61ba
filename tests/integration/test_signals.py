"""Signals at any moment, also in storms: each ends with its exit code and without a traceback."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SOURCE = str(Path(__file__).parents[2] / "src")
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
WORDS = ["train", "Pendulum-v1", "--engine", "gymnasium", "--workers", "2", "--population", "16", "--generations",
         "100000", "--max-episode-steps", "20", "--checkpoint-seconds", "0", "--quiet"]  # fmt: skip


def start(run: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": SOURCE, "PYTHONWARNINGS": "ignore"}
    words = [sys.executable, "-m", "clipup", *WORDS, "--run", str(run)]
    # A group of its own: signals go to all of it, as from a terminal.
    process = subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    )
    while process.poll() is None and not catches(process.pid, signal.SIGTERM):
        time.sleep(0.002)
    return process


def catches(process: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for a signal; before, the system ends it."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        output, errors = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return process.returncode, output + errors


@pytest.mark.parametrize("seed", range(6))
def test_a_signal_at_any_moment_of_the_start_ends_with_its_code_and_no_traceback(seed: int, tmp_path: Path) -> None:
    generator = random.Random(seed)
    number = list(CODES)[seed % 3]
    process = start(tmp_path / "run")
    time.sleep(generator.random() * 4)
    os.killpg(process.pid, number)
    code, shown = finish(process)
    assert code == CODES[number], shown
    assert "Traceback" not in shown and len(shown.splitlines()) <= 2, shown


def test_with_nohup_a_closed_terminal_changes_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": SOURCE, "PYTHONWARNINGS": "ignore"}
    words = ["nohup", sys.executable, "-m", "clipup", "train", "CartPole-v1", "--population", "8", "--quiet",
             "--generations", "100000", "--checkpoint-seconds", "0", "--run", str(tmp_path / "run")]  # fmt: skip
    process = subprocess.Popen(
        words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=tmp_path, process_group=0,
    )  # fmt: skip
    records = tmp_path / "run" / "records.jsonl"
    deadline = time.monotonic() + 90
    while not records.exists() or not records.stat().st_size:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGHUP)
    size = records.stat().st_size
    while records.stat().st_size < size + 2000:  # it goes on
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGTERM)
    assert finish(process)[0] == 143


@pytest.mark.parametrize("seed", range(3))
def test_a_storm_of_signals_ends_with_the_code_of_one_of_them_and_leaves_a_sound_run(seed: int, tmp_path: Path) -> None:
    generator = random.Random(seed)
    process = start(tmp_path / "run")
    deadline = time.monotonic() + 90
    while not (tmp_path / "run" / "policy.safetensors").exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    for _ in range(40):
        if process.poll() is not None:
            break
        os.killpg(process.pid, generator.choice(list(CODES)))
        time.sleep(generator.random() * 0.05)
    code, shown = finish(process)
    assert code in CODES.values(), shown
    assert "Traceback" not in shown, shown
    from clipup.runs.rundir import RunDirectory

    run = RunDirectory(tmp_path / "run")
    run.open()
    run.close()
    assert run.read_status().state in ("interrupted", "killed")
