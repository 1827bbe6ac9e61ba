"""A task of one's own on the command line: by module and by file, and never because a file says so."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.conftest import SOURCE

TASK = """
import pathlib

import numpy as np

import clipup
from clipup.policies import Actions

pathlib.Path("imported").touch()

def reset(random, state, options):
    state[0] = random.uniform(-1.0, 1.0)

def step(state, action, random, options):
    state[0] += 0.1 * float(action[0])
    return -abs(state[0]), False

def render(state, options):
    return np.full((8, 8, 3), 100, np.uint8)

Drift = clipup.ArrayTask(
    state_size=1, observation_size=1, actions=Actions.box([-1.0], [1.0]), reset=reset, step=step, render=render,
    max_episode_steps=9,
)
"""
SMALL = ("--generations", "2", "--population", "4", "--evaluation-episodes", "2")


@pytest.fixture
def command(tmp_path: Path) -> str:
    """The path of a program that starts clipup as the installed command does: without the current directory."""
    script = tmp_path / "bin" / "clipup"
    script.parent.mkdir()
    script.write_text("from clipup.cli import main\nif __name__ == '__main__':\n    raise SystemExit(main())\n")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "drifting.py").write_text(TASK)
    (tmp_path / "here" / "drifting_too").mkdir()
    (tmp_path / "here" / "drifting_too" / "robot.py").write_text(TASK)
    return str(script)


def run(command: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    place = Path(command).parents[1] / "here"
    environment = {**os.environ, "PYTHONPATH": SOURCE, **variables}
    return subprocess.run([sys.executable, command, *words], cwd=place, env=environment, capture_output=True,
                          text=True, timeout=240, check=False)  # fmt: skip


@pytest.mark.parametrize("name", ["drifting:Drift", "drifting_too/robot.py:Drift"])
def test_the_printed_commands_work_as_printed_and_nothing_is_imported_unasked(command: str, name: str) -> None:
    place = Path(command).parents[1] / "here"
    trained = run(command, "train", name, *SMALL)
    assert trained.returncode == 0, trained.stderr
    printed = re.findall(r"clipup ((?:evaluate|record|resume) [^|\n]+)", trained.stdout + trained.stderr)
    assert len(printed) == 3
    (place / "imported").unlink()
    for words in ("evaluate runs/Drift-1", "record runs/Drift-1 -o a.gif", "resume runs/Drift-1 --generations +1"):
        refused = run(command, *words.split())
        assert refused.returncode == 2 and "if you trust it, say so: --import" in refused.stderr
        assert not (place / "imported").exists() and not (place / "a.gif").exists()
    for words in printed:
        done = run(command, *shlex.split(words.replace("video.mp4", "video.gif")))
        assert done.returncode == 0, done.stderr
    assert (place / "video.gif").stat().st_size > 0
    repeated = re.search(r"Repeat it: clipup (train .*)", (place / "runs/Drift-1/config.toml").read_text())
    assert repeated is not None
    assert run(command, *shlex.split(repeated[1])).returncode == 0


def test_with_a_safe_path_the_current_directory_stays_closed(command: str) -> None:
    refused = run(command, "train", "drifting:Drift", *SMALL, PYTHONSAFEPATH="1")
    assert refused.returncode == 2
    assert "there is no module 'drifting'; a file is named by its path" in refused.stderr
    assert not (Path(command).parents[1] / "here" / "imported").exists()


def test_the_current_directory_stays_closed_for_a_module_that_is_not_in_it(command: str) -> None:
    place = Path(command).parents[1] / "here"
    (place / "tensorboard.py").write_text("import pathlib; pathlib.Path('imported').touch()")
    refused = run(command, "train", "nowhere:Drift", *SMALL, "--tensorboard")
    assert refused.returncode == 2
    assert not (place / "imported").exists()
