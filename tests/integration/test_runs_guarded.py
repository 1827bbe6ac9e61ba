"""What somebody may do to a run, or a file may ask for, that must not pass unnoticed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clipup.cli.main import main
from clipup.runs import rundir

TRAIN = ["train", "CartPole-v1", "--population", "8", "--evaluation-episodes", "2", "--quiet", "--workers", "1"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    assert main([*TRAIN, "--generations", "3", "--run", str(path)]) == 0
    return path


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def content(run: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file() and path.name != "lock"}


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_a_run_that_lost_its_checkpoints_is_not_begun_again(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(copy / "checkpoints")
    before = content(copy)
    assert "no checkpoint" in refused(["resume", str(copy), "--generations", "4"], capsys)
    after = content(copy)
    assert {name: after[name] for name in before if "config" not in name} == {
        name: data for name, data in before.items() if "config" not in name
    }


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [("max_speed = 0.05", "max_speed = 0.4", "max_speed"), ("seed = 0", "seed = 7", "seed"),
     ("normalize = true", "normalize = false", "normalize"), ("population = 8", "population = 12", "population")],
)  # fmt: skip
def test_an_edited_configuration_is_not_gone_on_with(
    old: str, new: str, name: str, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = (copy / "config.toml").read_text()
    assert old in config
    (copy / "config.toml").write_text(config.replace(old, new))
    assert f"({name})" in refused(["resume", str(copy), "--generations", "4"], capsys)


def test_a_file_never_causes_a_connection(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = (copy / "config.toml").read_text()
    lines = [line for line in config.splitlines() if "cluster" not in line]
    (copy / "config.toml").write_text("\n".join(['cluster = "ray://127.0.0.1:1"', *lines]))
    words = ["resume", str(copy), "--generations", "4"]
    assert "--cluster ray://127.0.0.1:1" in refused(words, capsys)
    (copy / "other.toml").write_text('env = "CartPole-v1"\ncluster = "ray://127.0.0.1:1"\n')
    words = ["train", "--config", str(copy / "other.toml"), "--run", str(copy / "new")]
    assert "--cluster ray://127.0.0.1:1" in refused(words, capsys)
    assert not (copy / "new").exists()


def test_more_generations_are_more_than_were_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    limits = ["--generations", "none", "--total-interactions", "300"]
    words = [word for word in TRAIN if word != "--quiet"]
    assert main([*words, *limits, "--run", str(run)]) == 0
    assert "resume" in (shown := capsys.readouterr().out) and "--total-interactions" in shown.splitlines()[-1]
    made = rundir.RunDirectory(run).read_status().generation
    assert main(["resume", str(run), "--generations", "+2", "--total-interactions", "none", "--quiet"]) == 0
    assert rundir.RunDirectory(run).read_status().generation == made + 2
    assert "already made" in refused(["resume", str(run), "--generations", "1"], capsys)
    assert f"generations = {made + 2}" in (run / "config.toml").read_text()


def test_a_name_that_was_taken_meanwhile_is_left_to_the_other(
    tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = iter([finished, tmp_path / "free"])
    monkeypatch.setattr(rundir, "next_free", lambda *_: next(names))
    before = content(finished)
    assert main([*TRAIN, "--generations", "1"]) == 0
    assert (tmp_path / "free" / "policy.safetensors").is_file()
    assert content(finished) == before


def test_the_final_evaluation_counts_for_the_best_policy(copy: Path) -> None:
    assert main(["evaluate", str(copy), "--best", "--episodes", "1"]) == 0


def test_a_terminal_without_unicode_still_shows_the_result(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    words = [sys.executable, "-m", "clipup", *TRAIN, "--generations", "1", "--run", str(tmp_path / "run")]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0 and "finished (1 generations): score" in done.stdout


def test_too_much_memory_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "CartPole-v1", "--policy", "mlp:1048576,1048576", "--run", str(tmp_path / "run"), "--quiet"]
    assert main(words) == 1
    assert capsys.readouterr().err.startswith("clipup: not enough memory")
    assert not (tmp_path / "run").exists()


def test_no_name_is_no_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert "run needs the name" in refused([*TRAIN, "--run", ""], capsys)
