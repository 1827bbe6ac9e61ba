"""What a program reaches for: callbacks, warm starts, stops, evaluation, saving, recording."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clipup
from clipup.cli import main
from clipup.errors import InvalidArgument, InvalidFitness
from clipup.runs.records import read_records
from clipup.training.callbacks import Progress

pytest.importorskip("envpool")
SMALL: dict[str, Any] = {"generations": 4, "population": 8, "evaluate_every": 1, "evaluation_episodes": 2, "seed": 3}


def test_callbacks_are_told_of_each_generation_can_stop_and_add_figures(tmp_path: Path) -> None:
    seen: list[Progress] = []

    class Watcher:
        def __call__(self, progress: Progress) -> bool:
            seen.append(progress)
            return progress.record.generation == 3

    def norm(progress: Progress) -> dict[str, float]:
        return {"norm": float(np.linalg.norm(progress.policy.parameters))}

    result = clipup.train("Pendulum-v1", run=tmp_path / "run", callbacks=[Watcher(), norm], **SMALL)
    assert (result.generation, result.state, result.reason) == (3, "finished", "a callback")
    assert [progress.record.generation for progress in seen] == [1, 2, 3] and seen[0].path == tmp_path / "run"
    assert all(record.figures["norm"] > 0 for record in result.records)
    assert read_records(tmp_path / "run" / "records.jsonl") == list(result.records)
    went_on = clipup.resume(tmp_path / "run")
    plain = clipup.train("Pendulum-v1", **SMALL)
    assert went_on.generation == 4 and went_on.records[-1] == plain.records[-1]
    assert (went_on.policy.parameters == plain.policy.parameters).all()


@pytest.mark.parametrize("answer", [3, "stop", {"a": "b"}, [1]])
def test_a_callback_that_returns_something_else_is_refused(answer: object) -> None:
    with pytest.raises(InvalidArgument, match="callback"):
        clipup.train("Pendulum-v1", callbacks=[lambda progress: answer], **SMALL)  # type: ignore[list-item,return-value]


def test_a_warm_start_begins_at_the_policy_and_names_its_parent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parent = clipup.train("Pendulum-v1", run=tmp_path / "parent", **SMALL)
    parent.save(tmp_path / "policy.safetensors")
    still = {**SMALL, "generations": 0}
    for source in (tmp_path / "parent", tmp_path / "policy.safetensors"):
        child = clipup.train("Pendulum-v1", init=source, max_speed=0.3, **still)
        assert (child.policy.parameters == parent.policy.parameters).all() and child.config.init == str(source)
        assert child.policy.statistics is not None and parent.policy.statistics is not None
        np.testing.assert_allclose(child.policy.statistics.mean, parent.policy.statistics.mean)
        np.testing.assert_allclose(child.policy.statistics.stdev, parent.policy.statistics.stdev, rtol=1e-3)
    words = ["--generations", "3", "--population", "8", "--init", str(tmp_path / "parent"), "--quiet"]
    assert main(["train", "Pendulum-v1", *words, "--run", str(tmp_path / "child")]) == 0
    assert f'init = "{tmp_path / "parent"}"' in (tmp_path / "child" / "config.toml").read_text()
    assert main(["resume", str(tmp_path / "child"), "--generations", "+1", "--quiet"]) == 0
    capsys.readouterr()
    again = ["train", "--config", str(tmp_path / "child" / "config.toml"), "--run", str(tmp_path / "again"), "--quiet"]
    assert main(again) == 2 and "--init" in capsys.readouterr().err and not (tmp_path / "again").exists()
    assert main([*again, "--init", str(tmp_path / "parent")]) == 0
    whole = [(tmp_path / name / "records.jsonl").read_bytes() for name in ("again", "child")]
    assert whole[0] == whole[1]


def test_a_result_reads_its_records_when_they_are_asked_for(tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = clipup.train("Pendulum-v1", run=run, **SMALL)
    unread = clipup.resume(run)
    later = clipup.resume(run, more_generations=2)
    assert len(later.records) == first.generation + 2
    assert [record.generation for record in first.records] == list(range(1, first.generation + 1))
    shutil.rmtree(run)
    assert len(first.records) == first.generation
    with pytest.raises(clipup.ClipUpError, match="are no longer there"):
        _ = unread.records


@pytest.mark.parametrize("settings", [{"policy": "mlp:3"}, {"init": "nowhere"}, {"env": "CartPole-v1"}])
def test_a_policy_that_does_not_fit_is_refused_before_anything_is_written(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    clipup.train("Pendulum-v1", **{**SMALL, "generations": 1}).save(tmp_path / "policy.safetensors")
    given = {**SMALL, "init": tmp_path / "policy.safetensors", **settings}
    env = given.pop("env", "Pendulum-v1")
    with pytest.raises(clipup.ClipUpError):
        clipup.train(env, run=tmp_path / "run", **given)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("engine", ["envpool", "gymnasium"])
def test_solved_stops_at_the_registered_score(engine: str) -> None:
    result = clipup.train(
        "CartPole-v1", preset="none", stop="solved", engine=engine, workers=1, population=24, evaluation_episodes=4,
        evaluate_every=1, generations=60, policy="linear",
    )  # fmt: skip
    assert result.reason == "score 475" and result.score is not None and result.score >= 475


def test_solved_is_refused_where_nothing_is_called_solved(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="--target-score"):
        clipup.train("Pendulum-v1", stop="solved", run=tmp_path / "run", **SMALL)
    assert not (tmp_path / "run").exists()


def test_patience_ends_a_run_that_does_not_get_better(tmp_path: Path) -> None:
    settings = {**SMALL, "generations": 40, "max_speed": 1e-6, "patience": 3}
    result = clipup.train("Pendulum-v1", run=tmp_path / "run", **settings)
    scores = [record.score for record in result.records if record.score is not None]
    assert result.reason == "no better score in 3 evaluations" and scores.index(max(scores)) == len(scores) - 4
    parts = clipup.train("Pendulum-v1", run=tmp_path / "parts", **{**settings, "generations": 2})
    assert clipup.resume(tmp_path / "parts", generations=40).generation == result.generation > parts.generation


def test_policies_are_saved_evaluated_and_recorded(tmp_path: Path) -> None:
    result = clipup.train("CartPole-v1", run=tmp_path / "run", **SMALL)
    result.policy.save(tmp_path / "plain.safetensors")
    result.policy.save(tmp_path / "named.safetensors", env="CartPole-v1")
    expected = clipup.evaluate(result.policy, "CartPole-v1", episodes=4).returns
    for source in (tmp_path / "run", tmp_path / "named.safetensors"):
        assert clipup.evaluate(source, episodes=4).returns == expected
        assert clipup.evaluate(source, "CartPole-v1", episodes=4).returns == expected
    with pytest.raises(InvalidArgument, match="no environment"):
        clipup.evaluate(tmp_path / "plain.safetensors")
    with pytest.raises(clipup.ClipUpError):
        result.policy.save(tmp_path / "missing" / "policy.safetensors")
    pytest.importorskip("imageio")
    video = clipup.record(tmp_path / "run", tmp_path / "film.gif", max_seconds=0.2)
    assert video.path.is_file() and video.frames > 1


@pytest.mark.parametrize("whole", [np.int64(2), np.int32(2), np.uint8(2), "2", "+2"])
def test_whole_numbers_of_any_kind_are_whole_numbers(whole: Any) -> None:
    assert clipup.train("Pendulum-v1", **{**SMALL, "generations": whole}).generation == 2


def test_numpy_floats_and_booleans_are_taken_too() -> None:
    settings = {**SMALL, "generations": 0, "max_speed": np.float32(0.5), "normalize": np.bool_(False)}
    config = clipup.train("Pendulum-v1", **settings).config
    assert config.max_speed == 0.5 and config.normalize is False and type(config.normalize) is bool


def test_no_seed_means_a_new_one_that_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    still = {**SMALL, "generations": 0, "seed": None}
    assert len({clipup.train("Pendulum-v1", **still).config.seed for _ in range(3)}) == 3
    assert (
        main(["train", "Pendulum-v1", "--generations", "0", "--seed", "none", "--run", str(tmp_path / "r"), "--json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["seed"] > 0


def test_more_generations_are_given_in_words_of_the_command_line(tmp_path: Path) -> None:
    clipup.train("Pendulum-v1", run=tmp_path / "run", **SMALL)
    assert clipup.resume(tmp_path / "run", generations="+3").generation == 7


def test_a_search_without_any_finite_fitness_says_so_and_one_can_be_called_off() -> None:
    with pytest.raises(InvalidFitness, match="no fitness of generation 1 is a finite number"):
        clipup.maximize(lambda x: np.full(len(x), np.nan), dimension=2, max_speed=0.1)
    with pytest.raises(InvalidFitness, match="finite"):
        clipup.minimize(lambda x: np.full(len(x), np.inf), dimension=2, max_speed=0.1)
    found = clipup.maximize(
        lambda x: -(x**2).sum(axis=1), dimension=2, max_speed=0.1, callback=lambda summary: summary.generation == 4
    )
    assert found.stopped == "callback" and len(found.history) == 4
