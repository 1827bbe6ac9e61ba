"""`clipup tune` from the command line on a tiny task: its answer, and that it goes on after being stopped."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from clipup.cli.main import main

pytest.importorskip("optuna", reason="tuning needs optuna (in the tune extra)")
pytest.importorskip("envpool", reason="training needs envpool (in the train extra)")

FLAGS = ["--generations", "10", "--population", "8", "--evaluation-episodes", "2", "--points", "4", "--budget", "5",
         "--low", "0.1", "--high", "3", "--seed", "3", "--policy", "mlp:4"]  # fmt: skip
ENV = "CartPole-v1"


def tune(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, object]:
    assert main(["tune", ENV, *FLAGS, *more, "--run", str(folder), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tune") / "whole"
    assert main(["tune", ENV, *FLAGS, "--run", str(folder), "--json"]) == 0
    return folder


def test_the_answer_is_a_command_a_file_and_a_picture(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = tune(finished, capsys)
    assert 0.01 < answer["max_speed"] < 30 and answer["runs_worth"] <= 5
    best = tomllib.loads((finished / "best.toml").read_text())
    assert best["max_speed"] == answer["max_speed"] and best["env"] == ENV and best["generations"] == 10
    assert f"--max-speed {answer['max_speed']:g}" in answer["command"]
    assert (finished / "score-by-max-speed.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (finished / "score-by-max-speed.svg").read_bytes()


@pytest.mark.parametrize("policy", ["gru:4", "own_policies:Leaky"])
def test_a_policy_with_a_memory_and_one_of_one_s_own_are_tuned_like_any_other(
    policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "environments"))
    tune(tmp_path / "run", capsys, "--policy", policy, "--generations", "2", "--points", "3", "--budget", "3")
    trials = sorted((tmp_path / "run/trials").iterdir())
    assert len(trials) >= 3  # after two generations there may be no winner
    for trial in trials:
        assert tomllib.loads((trial / "config.toml").read_text())["policy"] == policy
        assert json.loads((trial / "status.json").read_text())["generation"] > 0


def test_the_journal_is_json_that_optuna_reads_and_holds_no_pickle(finished: Path) -> None:
    import optuna

    lines = (finished / "journal.log").read_text().splitlines()
    assert all(isinstance(json.loads(line), dict) for line in lines)
    backend = optuna.storages.journal.JournalFileBackend(str(finished / "journal.log"))
    study = optuna.load_study(study_name="clipup-tune", storage=optuna.storages.JournalStorage(backend))
    states = {trial.state.name for trial in study.trials}
    assert "COMPLETE" in states and states <= {"COMPLETE", "PRUNED"}
    assert not list(finished.rglob("*.pkl")) and not list(finished.rglob("*snapshot*"))


def test_asking_again_trains_nothing_and_answers_the_same(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.glob("trials/*/records.jsonl")}
    first, second = tune(finished, capsys), tune(finished, capsys)
    assert first == second
    assert {path: path.stat().st_mtime_ns for path in finished.glob("trials/*/records.jsonl")} == before


def test_stopped_in_the_middle_it_goes_on_to_the_same_answer(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "stopped"
    command = [sys.executable, "-m", "clipup", "tune", ENV, *FLAGS, "--run", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "after 50 %" in line:
                process.send_signal(signal.SIGKILL)
                break
    finally:
        process.kill()
        process.communicate()
    assert not (folder / "best.toml").exists()
    answer, whole = tune(folder, capsys), tune(finished, capsys)
    assert answer["standings"] == whole["standings"] and answer["runs_worth"] == whole["runs_worth"]


def test_the_same_command_while_it_runs_is_refused_and_does_it_no_harm(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["tune", ENV, *FLAGS, "--run", str(tmp_path / "twice"), "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "clipup", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            assert "after 50 %" in process.stderr.readline()
            process.send_signal(signal.SIGSTOP)  # so that it cannot end before it is asked again
            assert main(words) == 2
            error = capsys.readouterr().err
            assert f"process {process.pid} is searching here" in error and error.count("\n") == 1
            process.send_signal(signal.SIGCONT)
            output, errors = process.communicate()
        finally:
            process.kill()
    assert process.returncode == 0, errors
    assert json.loads(output)["standings"] == tune(finished, capsys)["standings"]


def test_a_journal_whose_last_line_was_cut_short_is_no_obstacle(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(finished, tmp_path / "torn")
    data = (folder / "journal.log").read_bytes()
    (folder / "journal.log").write_bytes(data[:-25])
    expected = tune(finished, capsys)["standings"]
    assert [tune(folder, capsys)["standings"] for _ in range(3)] == [expected] * 3


def test_other_further_settings_in_the_same_directory_build_on_its_trials(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(finished, tmp_path / "also")
    scanned = {path.name for path in (folder / "trials").iterdir()}
    for name in ("radius_factor", "step_ratio"):
        answer = tune(folder, capsys, "--also", name, "--budget", "9")
        assert answer["runs_worth"] <= 9
        new = {path.name for path in (folder / "trials").iterdir()} - scanned
        assert any(name in trial for trial in new)
    assert tune(folder, capsys, "--also", "step_ratio", "--budget", "9") == answer


def test_a_directory_of_other_settings_is_refused(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", ENV, *FLAGS, "--population", "10", "--run", str(finished)]) == 2
    assert "other settings (population)" in capsys.readouterr().err


def test_further_settings_are_tuned_only_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", ENV, *FLAGS, "--also", "momentum", "--run", str(tmp_path / "no")]) == 2
    assert "only radius_factor and step_ratio can be tuned" in capsys.readouterr().err
    answer = tune(tmp_path / "also", capsys, "--also", "radius_factor", "--budget", "9")
    names = {name for standing in answer["standings"] for name in standing}
    assert "max_speed" in names
    assert any("radius_factor" in path.name for path in (tmp_path / "also" / "trials").iterdir())


def test_the_figure_has_a_dot_for_every_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn: list[object] = []
    monkeypatch.setattr(
        sys.modules["clipup.tuning.tune"], "write_figure", lambda dots, *rest, **more: drawn.extend(dots)
    )
    tune(tmp_path / "also", capsys, "--also", "radius_factor", "--budget", "8")
    assert len(drawn) == len(list((tmp_path / "also" / "trials").iterdir()))


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--low", "0"], "0 < low < high"),
        (["--budget", "1"], "needs a budget of at least"),
        (["--generations", "1"], "generations must be at least 2"),
        (["--generations", "none"], "set generations"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], words: str
) -> None:
    assert main(["tune", ENV, *flags, "--run", str(tmp_path / "x")]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
    assert not (tmp_path / "x").exists()
