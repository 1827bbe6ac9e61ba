"""An environment in a file of the current directory works as typed, and so do the commands that are printed then."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("imageio")
SOURCE = str(Path(__file__).parents[2] / "src")
MODULE = """
import gymnasium
import numpy as np

class Point(gymnasium.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-1, 1, 1).astype(np.float32)
        return self.place, {}

    def step(self, action):
        self.place = (self.place + 0.1 * np.asarray(action)).astype(np.float32)
        return self.place, -float(abs(self.place[0])), False, False, {}

    def render(self):
        return np.zeros((16, 16, 3), np.uint8)

gymnasium.register("Point-v0", entry_point="myenvs:Point", max_episode_steps=10)
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command as the installed script runs it: the current directory is not on the path."""
    code = "import sys; from clipup.cli import main\nif __name__ == '__main__': sys.exit(main())"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    script = folder.parent / "bin" / "clipup.py"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"import sys; sys.path.insert(0, {SOURCE!r})\n{code}\n")
    return subprocess.run(
        [sys.executable, str(script), *words], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=200, check=False,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    here = tmp_path / "here"
    here.mkdir()
    (here / "myenvs.py").write_text(MODULE)
    return here


def test_what_is_typed_and_what_is_printed_works(folder: Path) -> None:
    small = ["--generations", "2", "--population", "4", "--evaluation-episodes", "2", "--workers", "1"]
    trained = run(folder, "train", "myenvs:Point-v0", *small)
    assert trained.returncode == 0, trained.stderr
    commands = trained.stdout.partition("next:\n")[2].splitlines()
    assert len(commands) == 3 and all("--import myenvs" in command for command in commands)
    for command in commands:
        words = shlex.split(command.replace("video.mp4", "video.gif"))
        done = run(folder, *words[1:])
        assert done.returncode == 0, done.stderr
    done = run(folder, "report", "runs", "--video", "--import", "myenvs")
    assert done.returncode == 0 and "no video" not in done.stderr


def test_a_file_alone_still_imports_nothing(folder: Path) -> None:
    (folder / "config.toml").write_text('env = "myenvs:Point-v0"\n')
    (folder / "myenvs.py").write_text("open('imported', 'w')")
    for words in (["train", "--config", "config.toml"], ["train", "CartPole-v1", "--generations", "0"]):
        run(folder, *words)
        assert not (folder / "imported").exists()


def test_a_file_in_the_current_directory_replaces_nothing_that_is_installed(folder: Path) -> None:
    (folder / "tensorboard.py").write_text("open('imported', 'w')")
    (folder / "mujoco.py").write_text("open('imported', 'w')")
    small = ["--generations", "1", "--population", "4", "--evaluation-episodes", "1", "--workers", "1"]
    assert run(folder, "train", "myenvs:Point-v0", *small).returncode == 0
    assert not (folder / "imported").exists()


def test_several_seeds_find_it_in_their_processes_too(folder: Path) -> None:
    small = ["--generations", "1", "--population", "4", "--evaluation-episodes", "1", "--quiet"]
    trained = run(folder, "train", "myenvs:Point-v0", "--seeds", "2", *small)
    assert trained.returncode == 0 and "of 2 runs" in trained.stdout, trained.stderr
    refused = run(folder, "resume", "runs/Point-v0-1")
    assert refused.returncode == 2 and "--import myenvs" in refused.stderr
