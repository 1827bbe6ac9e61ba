"""At a narrow terminal, lines break between words, and commands stay whole."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

import clipup
from clipup.cli import main
from clipup.runs.config import RunConfig
from clipup.runs.rundir import RunDirectory
from clipup.tuning.directory import claimed

SOURCE = str(Path(__file__).parents[3] / "src")


def at_terminal(columns: int, *words: str, cwd: Path) -> list[str]:
    """What a command leaves at a terminal of that width, line by line. What it wrote over (progress) is gone."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "PYTHONPATH": SOURCE, "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-m", "clipup", *words], stdout=theirs, stderr=theirs, stdin=theirs, cwd=cwd, env=environment
    )
    os.close(theirs)
    data = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        data += piece
    process.wait()
    os.close(ours)
    text = re.sub(r"[^\r\n]*\r(?!\n)(\x1b\[K)?", "", data.decode().replace("\r\r", "\r"))
    return text.replace("\r", "").splitlines()


def make_runs(root: Path) -> None:
    for name in ("a-run-with-a-rather-long-name", "another-run-of-a-long-name"):
        directory = RunDirectory(root / "runs" / name)
        directory.create(RunConfig(env="LunarLanderContinuous-v3"))
        directory.close()


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_runs_and_errors_fit_the_terminal_without_breaking_words(tmp_path: Path, columns: int) -> None:
    make_runs(tmp_path)
    listed = at_terminal(columns, "runs", cwd=tmp_path)
    assert any(line.split()[0] == "runs/a-run-with-a-rather-long-name" for line in listed if line.strip())
    assert all(len(line) <= columns for line in listed), listed
    error = at_terminal(columns, "train", "LunarLanderContinuos-v3", cwd=tmp_path)
    joined = " ".join(line.strip() for line in error)
    assert len(error) > 1 and "did you mean LunarLanderContinuous-v3" in joined
    assert all(len(line) <= columns or " " not in line.strip() for line in error), error


@pytest.mark.parametrize("columns", [60])
def test_findings_and_tables_fit_the_terminal_too(tmp_path: Path, columns: int) -> None:
    pytest.importorskip("numba", reason="the compiled engine needs numba")
    clipup.train(
        "MountainCar-v0", policy="mlp:4", max_speed=1e-4, generations=16, population=4, seed=1, workers=1,
        run=tmp_path / "run", progress=False,
    )  # fmt: skip
    for words in (["diagnose", "run"], ["zoo"], ["envs", "Humanoid*-v5"], ["reproduce"]):
        lines = at_terminal(columns, *words, cwd=tmp_path)
        assert len(lines) > 2
        assert all(len(line) <= columns or " " not in line.strip() for line in lines), lines


def test_the_next_commands_stand_on_lines_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("envpool")
    run = tmp_path / "a run"
    words = ["train", "Pendulum-v1", "--generations", "1", "--population", "4", "--evaluation-episodes", "1"]
    assert main([*words, "--run", str(run)]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("next:")
    assert [line.split()[:2] for line in lines[at + 1 :]] == [
        ["clipup", name] for name in ("evaluate", "record", "resume")
    ]
    assert f"'{run}'" in lines[-1]


def test_trials_of_a_search_do_not_flood_the_list_of_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_runs(tmp_path)
    with claimed(Path("runs/tune-X"), RunConfig(env="X", generations=4)):
        for number in range(5):
            directory = RunDirectory(Path("runs/tune-X/trials") / f"trial-{number}")
            directory.create(RunConfig(env="X"))
            directory.close()
    for words, count in ((["runs"], 2), (["runs", "--all"], 7), (["runs", "runs/tune-X/trials"], 5)):
        assert main(words) == 0
        output = capsys.readouterr().out
        assert sum("runs/" in line for line in output.splitlines()) == count
        assert ("5 trials of clipup tune" in output) is (count == 2)


def test_results_print_as_one_short_line() -> None:
    found = clipup.maximize(lambda x: -(x**2).sum(axis=1), dimension=50, max_speed=0.1, generations=30, seed=1)
    assert len(repr(found)) < 200 and "\n" not in repr(found)
    pytest.importorskip("envpool")
    result = clipup.train("Pendulum-v1", generations=2, population=4, evaluation_episodes=1)
    assert len(repr(result)) < 200 and "\n" not in str(result) and "Pendulum-v1" in str(result)
    assert len(repr(clipup.evaluate(result.policy, "Pendulum-v1", episodes=100))) < 200
