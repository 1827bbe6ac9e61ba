"""The `clipup` command as a user's shell would start it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCE = str(Path(__file__).parents[2] / "src")

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": SOURCE, "PYTHONWARNINGS": "ignore"}


@pytest.fixture
def clipup(tmp_path: Path) -> Command:
    """Run `clipup WORD…` in an empty directory; extra keywords go to `subprocess.run`."""

    def run(*words: object, **options: object) -> "subprocess.CompletedProcess[str]":
        settings: dict[str, object] = {"cwd": tmp_path, "env": environment(), "timeout": 240, **options}
        command = [sys.executable, "-m", "clipup", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False, **settings)  # type: ignore[call-overload]

    return run


@pytest.fixture
def start_clipup(tmp_path: Path) -> Callable[..., "subprocess.Popen[str]"]:
    """Start `clipup WORD…` and leave it running; whatever still runs afterwards is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: object) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "clipup", *map(str, words)],
            cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield start  # type: ignore[misc]
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
