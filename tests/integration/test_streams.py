"""Every command with its output closed, full, or read by a program that went away; and with bytes that are no text."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from clipup.cli.main import main
from clipup.cli.registry import COMMANDS

SHORT = ["--population", "4", "--generations", "2", "--evaluation-episodes", "1", "--max-episode-steps", "9"]
WORDS = {
    "train": ["train", "CartPole-v1", *SHORT, "--run", "{new}"],
    "resume": ["resume", "{run}", "--generations", "+1"],
    "evaluate": ["evaluate", "{run}", "--episodes", "1"],
    "record": ["record", "{run}", "-o", "{new}.gif", "--max-seconds", "0.05"],
    "export": ["export", "{run}", "-o", "{new}.safetensors"],
    "envs": ["envs", "CartPole-v1"],
    "runs": ["runs", "{run}"],
    "report": ["report", "{run}", "-o", "{new}.html"],
    "watch": ["watch", "{run}", "--no-browser"],
    "diagnose": ["diagnose", "{run}"],
    "tune": ["tune", "CartPole-v1", *SHORT, "--points", "3", "--budget", "4", "--policy", "mlp:2", "--run", "{new}"],
    "bench": ["bench", "CartPole-v1", "--seconds", "0.1", "--repeats", "1", "--population", "4"],
    "reproduce": ["reproduce"],
    "zoo": ["zoo"],
}


def reopened(descriptor: int) -> None:
    """Give Python streams over what the descriptors are now."""
    name = {1: "stdout", 2: "stderr"}[descriptor]
    setattr(sys, name, os.fdopen(descriptor, "w", closefd=False))


def close_output() -> None:
    os.close(1)
    sys.stdout = None  # type: ignore[assignment]  # as Python does when it starts so


def close_everything() -> None:
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    sys.stdin = sys.stdout = sys.stderr = None  # type: ignore[assignment]


def full_output() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, 1)
    reopened(1)


def output_without_reader() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as Python does when it starts
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, 1)
    reopened(1)


STREAMS = (close_output, close_everything, full_output, output_without_reader)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    assert main(["train", "CartPole-v1", *SHORT, "--quiet", "--run", str(path)]) == 0
    return path


def test_every_command_is_tried() -> None:
    assert set(WORDS) == set(COMMANDS)


def interrupt_soon(child: int) -> None:
    time.sleep(1.0)
    os.kill(child, signal.SIGINT)


@pytest.mark.parametrize("command", WORDS)
def test_a_command_whose_output_goes_nowhere_ends_without_a_traceback(
    command: str, forked: Callable[..., int], run: Path, tmp_path: Path
) -> None:
    for streams in STREAMS if command not in ("tune", "envs") else STREAMS[::3]:  # these two take longer
        new = tmp_path / f"{streams.__name__}-new"
        words = [word.format(run=run, new=new) for word in WORDS[command]]
        output = tmp_path / "output"
        meanwhile = interrupt_soon if command == "watch" else None
        code = forked(words, output, streams=streams, meanwhile=meanwhile)
        shown = output.read_text("utf-8", "replace")
        assert code in (0, 2, *((130,) if command == "watch" else ())), (streams.__name__, code, shown)
        assert "Traceback" not in shown and "Exception ignored" not in shown, (streams.__name__, shown)


VALUES = ("a\0b", "\0", "\x1b[2J", "\udcff", "\u202e", "9" * 400, "")


@pytest.mark.parametrize(
    "command",
    [
        "train",
        "resume",
        "evaluate",
        "record",
        "export",
        "report",
        "bench",
        pytest.param("tune", marks=pytest.mark.slow),
    ],
)
def test_a_value_that_no_setting_can_have_is_one_line(
    command: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every place on the command line where a text or a number stands, each with bytes that make trouble."""
    monkeypatch.chdir(tmp_path)
    words = [word.format(run=run, new=tmp_path / "new") for word in WORDS[command]]
    if command in ("train", "tune", "bench"):
        words += ["--policy", "linear", "--engine", "gymnasium"]
    if command in ("train", "tune"):
        words += [
            "--quiet",
            "--seed",
            "1",
            "--workers",
            "1",
            "--schedule",
            "max_speed: cosine 1 to 0.1 over 9 generations",
        ]
    if command == "train":
        words += ["--env.sutton_barto_reward", "true"]
    for place in range(1, len(words)):
        if words[place].startswith("--"):
            continue
        for value in VALUES:
            changed = [*words[:place], value, *words[place + 1 :]]
            code = main(changed)
            error = capsys.readouterr().err
            assert code in (0, 2), (changed, code, error)  # some may be the name of a file, or a number
            shown = error.splitlines()
            assert code == 0 or (len(shown) == 1 and shown[0].startswith("clipup: ")), (changed, error)
            assert not set("\0\x1b\u202e") & set(error), (changed, error)
