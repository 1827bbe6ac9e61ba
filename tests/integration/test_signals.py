"""Signals at any moment, also in storms: each ends with its exit code and without a traceback, and leaves nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clipup.cli.main import main
from clipup.runs.rundir import RunDirectory

SOURCE = str(Path(__file__).parents[2] / "src")
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
WORDS = ["train", "Pendulum-v1", "--engine", "gymnasium", "--workers", "2", "--population", "16", "--generations",
         "100000", "--max-episode-steps", "20", "--checkpoint-seconds", "0", "--quiet"]  # fmt: skip


def start(run: Path, command: list[str] | None = None, more: dict[str, str] | None = None) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": SOURCE, "PYTHONWARNINGS": "ignore", **(more or {})}
    words = [sys.executable, "-m", "clipup", *(command or [*WORDS, "--run", str(run)])]
    # Children inherit what is ignored, as SIGHUP is with nohup.
    before = {number: signal.signal(number, signal.SIG_DFL) for number in CODES}
    try:
        # A group of its own: signals go to all of it, as from a terminal.
        process = subprocess.Popen(
            words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
        )
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
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
    run = RunDirectory(tmp_path / "run")
    run.open()
    run.close()
    assert run.read_status().state in ("interrupted", "killed")


SHORT = ["--population", "16", "--max-episode-steps", "20", "--checkpoint-seconds", "0", "--quiet"]
PLACES = {
    "compiled": ["train", "CartPole-v1", "--engine", "compiled", *SHORT],
    "inline": ["train", "Pendulum-v1", "--engine", "gymnasium", "--workers", "1", *SHORT],
    "processes": ["train", "Pendulum-v1", "--engine", "gymnasium", "--workers", "2", *SHORT],
    "ray": ["train", "Pendulum-v1", "--engine", "gymnasium", "--workers", "2", "--cluster", "ray", *SHORT],
}
MOMENTS = ("start", "training", "exit")
STORMS = {"compiled": 12, "inline": 8, "processes": 8, "ray": 3}


def left(mark: str) -> list[str]:
    """The commands of all processes that inherited a mark, but for those that ended and wait to be counted."""
    found: list[str] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (place / "environ").read_bytes():
                found.append((place / "cmdline").read_text().replace("\0", " ")[:200])
        except OSError:
            continue
    return [command for command in found if command]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("place", PLACES)
def test_storms_of_signals_over_every_executor_end_with_a_code_and_one_line_and_leave_nothing(
    place: str, moment: str, tmp_path: Path
) -> None:
    """At the exit a run may have finished before the first signal. Afterwards the run goes on, or was never begun."""
    for seed in range(STORMS[place]):
        generator = random.Random(f"{place} {moment} {seed}")
        run, mark = tmp_path / f"run-{seed}", f"CLIPUP_STORM={place}-{moment}-{seed}-{os.getpid()}"
        generations = str(generator.randint(1, 4)) if moment == "exit" else "100000"
        words = [*PLACES[place], "--generations", generations, "--run", str(run)]
        process = start(run, words, dict([mark.split("=")]))
        if moment == "start":
            time.sleep(generator.random() * (12 if place == "ray" else 3))
        deadline = time.monotonic() + 90
        while moment != "start" and process.poll() is None and not (run / "policy.safetensors").exists():
            assert time.monotonic() < deadline
            time.sleep(0.005)
        sent: list[signal.Signals] = []
        while len(sent) < 60 and process.poll() is None:
            sent.append(generator.choice(list(CODES)))
            os.killpg(process.pid, sent[-1])
            time.sleep(generator.random() ** 3 * 0.2)
        code, shown = finish(process)
        about = f"seed {seed}, {len(sent)} signals, exit code {code}: {shown}"
        assert code in {CODES[number] for number in sent} or (moment == "exit" and code == 0), about
        assert "Traceback" not in shown and len(shown.splitlines()) <= 2, about
        deadline = time.monotonic() + 20
        while left(mark):
            assert time.monotonic() < deadline, (about, left(mark))
            time.sleep(0.2)
        if (run / "config.toml").exists():
            made = RunDirectory(run).newest_generation()
            words = ["resume", str(run), "--generations", str(made + 1), "--workers", "1", "--quiet"]
            assert main([*words, *(["--cluster", "none"] if place == "ray" else [])]) == 0, about
