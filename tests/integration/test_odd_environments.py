"""What is odd about an environment is said before anything is trained on it, on the command line and in Python."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import clipup
from clipup.cli import main
from clipup.engines import Task, make_engine
from clipup.errors import InvalidArgument
from clipup.report.loading import load_run

pytest.importorskip("gymnasium")
SMALL = ["--generations", "2", "--population", "4", "--evaluate-every", "1", "--evaluation-episodes", "2", "--quiet"]


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "environments"))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_given_limit_holds_for_evaluation_where_the_environment_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], workers: str
) -> None:
    run = str(tmp_path / "run")
    words = ["train", "odd_starts:OddStarts-v0", "--max-episode-steps", "20", "--workers", workers]
    assert main([*words, *SMALL, "--run", run, "--json"]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out)["score"] is not None and "warning" not in output.err
    assert main(["evaluate", run, "--import", "odd_starts", "--episodes", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["interactions"] == 60


def test_the_same_holds_for_callables() -> None:
    from odd_starts import OddStarts  # pyright: ignore

    result = clipup.train(
        OddStarts, generations=2, population=4, max_episode_steps=20, evaluation_episodes=2, workers=1
    )
    assert result.score is not None


def test_a_limit_of_the_environment_itself_holds_for_evaluation(tmp_path: Path) -> None:
    for name, steps in (("odd_starts:OddStarts-v1", 9), ("odd_starts:OddStarts-v0", 5)):
        engine = make_engine(Task(name, max_episode_steps=5).for_evaluation())
        assert engine.description.own_limit is (steps == 9)
        outcomes = engine.evaluate(_one(engine))
        assert outcomes.interactions.tolist() == [steps]


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1"])
def test_envpool_keeps_its_own_limit_in_evaluations(env: str) -> None:
    pytest.importorskip("envpool")
    task = Task(env, engine="envpool", max_episode_steps=7).for_evaluation()
    engine = make_engine(task)
    assert engine.description.own_limit and engine.evaluate(_one(engine)).interactions[0] > 7


def _one(engine: clipup.engines.Engine):  # type: ignore[name-defined]
    from clipup.engines import Rollout
    from clipup.policies import Network

    network = Network(engine.observation_size, engine.actions.size)
    return Rollout(network, np.zeros((1, network.parameter_count), np.float32), seed=0, generation=0)


def test_endless_episodes_are_refused_at_the_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "odd_starts:OddStarts-v0", *SMALL, "--workers", "1", "--run", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert "max_episode_steps" in error and error.count("\n") == 1 and not (tmp_path / "run").exists()
    with pytest.raises(InvalidArgument, match="max_episode_steps"):
        clipup.train("odd_starts:OddStarts-v0", generations=2, workers=2)


@pytest.mark.parametrize(
    ("start", "words"), [("same", "starts the same whatever the seed"), ("ignored", "ignores its seed"), ("seeded", "")]
)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_starts_that_do_not_follow_the_seed_are_warned_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], start: str, words: str, workers: str
) -> None:
    flags = ["--env.start", start, "--env.length", "8", "--workers", workers, "--run", str(tmp_path / "run")]
    assert main(["train", "odd_starts:OddStarts-v0", *SMALL, *flags]) == 0
    said = capsys.readouterr().err
    rules = [finding.rule for finding in load_run(tmp_path / "run").diagnose()[0]]
    assert said.count("warning") == said.count("\n") == bool(words) and words in said
    assert ("environment-starts" in rules) is bool(words)


def test_envpools_tasks_that_always_start_the_same_are_known() -> None:
    pytest.importorskip("envpool")
    for env, odd in (("MyoHandAirplaneFixed-v0", True), ("CartPole-v1", False), ("Walker2d-v4", False)):
        try:
            notes = make_engine(Task(env, engine="envpool")).inspect().notes
        except InvalidArgument:
            continue
        assert bool(notes) is odd, env


@pytest.mark.parametrize(
    ("typed", "meant"), [("CartPole", "CartPole-v1"), ("Walker2d", "Walker2d-v5"), ("Pendulum", "Pendulum-v1")]
)
def test_a_name_without_a_version_means_the_newest_one_with_its_preset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], typed: str, meant: str
) -> None:
    pytest.importorskip("envpool")
    assert main(["train", typed, "--dry-run"]) == 0
    short = capsys.readouterr().out
    assert main(["train", meant, "--dry-run"]) == 0
    assert short == capsys.readouterr().out and f'env = "{meant}"' in short
    flags = ["--generations", "0", "--run", str(tmp_path / "run")]
    assert main(["train", typed, *flags]) == 0
    output = capsys.readouterr()
    assert output.out.startswith(f"{typed}: training on {meant}\n{meant}: ")
    # A machine that meets the task for the first time says there that it compiles it, and nothing else.
    assert [line for line in output.err.splitlines() if not line.startswith(("compiling ", "compiled "))] == []


@pytest.mark.parametrize("typed", ["CartPole-v77", "NoSuchThing", "odd_starts:OddStart", "walker"])
def test_a_name_that_means_nothing_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], typed: str
) -> None:
    assert main(["train", typed, *SMALL, "--workers", "1", "--run", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_what_workers_warn_about_is_said_once_by_the_trainer(capfd: pytest.CaptureFixture[str]) -> None:
    task = {"generations": 1, "population": 8, "workers": 2, "evaluation_episodes": 1}
    clipup.train("odd_starts:Warning-v0", **task)  # type: ignore[arg-type]
    lines = [line for line in capfd.readouterr().err.splitlines() if "worn out" in line]
    assert lines == ["warning from a worker: UserWarning: the joint is worn out"]
