"""Environments of parts, wrappers by name, and functions that make environments: trained, evaluated, resumed."""

import json
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import clipup
from clipup.cli.main import main
from clipup.engines import Task, make_engine
from clipup.errors import ClipUpError, InvalidArgument
from clipup.export.safetensors import decode, encode
from clipup.policies import Observations, Policy
from clipup.runs.rundir import RunDirectory

ENVIRONMENTS = str(Path(__file__).parents[1] / "environments")
SMALL = ["--population", "4", "--evaluate-every", "2", "--evaluation-episodes", "2", "--workers", "1", "--quiet"]
KEYWORDS = {"population": 4, "evaluate_every": 2, "evaluation_episodes": 2, "workers": 1}
STACK = "gymnasium.wrappers:FrameStackObservation(stack_size=3)"


def results(run: Path) -> dict[str, bytes]:
    """Everything of a run that may not depend on how it went."""
    names = ("records.jsonl", "policy.safetensors", "best-policy.safetensors")
    return {name: (run / name).read_bytes() for name in names}


@pytest.fixture(autouse=True)
def there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(ENVIRONMENTS)
    monkeypatch.chdir(tmp_path)


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line of an error."""
    shown = capsys.readouterr().err.strip()
    assert "\n" not in shown
    return shown


def test_a_task_of_parts_is_trained_evaluated_recorded_and_resumed() -> None:
    pytest.importorskip("imageio")
    words = ["train", "parts:Parts-v0", "--run", "run", *SMALL]
    assert main([*words, "--generations", "2"]) == 0
    policy = clipup.load_policy("run")
    assert policy.observations is not None
    assert policy.observations.describe() == "more/0 (2), more/1 (5), place (1), side (2)"
    assert [str(path) for path in policy.actions.paths] == ["('push',)", "('way', 0)", "('way', 1)"]
    observation, _ = gymnasium.make("Parts-v0").reset(seed=1)
    assert policy(observation).shape == (3,)
    assert main(["evaluate", "run", "--import", "parts", "--quiet"]) == 0
    assert main(["record", "run", "-o", "video.gif", "--import", "parts", "--quiet"]) == 0
    assert main(["resume", "run", "--generations", "+2", "--import", "parts", "--quiet"]) == 0
    assert main([*words, "--generations", "4", "--run", "whole"]) == 0
    assert results(Path("run")) == results(Path("whole"))


def test_a_task_of_parts_gives_the_same_bits_in_worker_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENTS)
    one = clipup.train("parts:Parts-v0", generations=2, **KEYWORDS)
    two = clipup.train("parts:Parts-v0", generations=2, **{**KEYWORDS, "workers": 2})
    assert one.policy.parameters.tobytes() == two.policy.parameters.tobytes() and one.records == two.records


ENVPOOL_PARTS = {
    "CartpoleBalance-v1": ["position", "velocity"],
    "FetchReach-v1": ["achieved_goal", "desired_goal", "observation"],
    "FrozenLake-v1": ["observation"],
    "MiniGrid-Empty-5x5-v0": ["direction", "image", "mission"],
    "Tetris-v0": ["action_mask", "grid", "step_count", "tetromino"],
}


@pytest.mark.parametrize("env", ENVPOOL_PARTS)
def test_envpool_flattens_in_the_same_order_and_gives_the_same_bits_on_any_threads(env: str) -> None:
    pytest.importorskip("envpool")
    engine = make_engine(Task(env, engine="envpool", max_episode_steps=10), lanes=4, threads=1)
    layout = engine.description.observations
    engine.close()
    assert layout is not None and [part.name for part in layout.parts] == ENVPOOL_PARTS[env]
    settings = {**KEYWORDS, "engine": "envpool", "max_episode_steps": 10, "generations": 2}
    one, two = (clipup.train(env, **{**settings, "workers": workers}) for workers in (1, 2))
    assert one.policy.observations == layout
    assert one.policy.parameters.tobytes() == two.policy.parameters.tobytes() and one.records == two.records
    assert np.isfinite(one.policy.parameters).all()


def test_a_policy_is_not_run_on_observations_of_other_parts(tmp_path: Path) -> None:
    pytest.importorskip("envpool")
    clipup.train("FetchReach-v1", run="run", max_episode_steps=5, generations=1, **KEYWORDS)
    policy = clipup.load_policy("run")
    assert policy.observations is not None
    turned = Observations(policy.observations.parts[::-1])
    other = Policy(policy.network, policy.parameters, policy.statistics, policy.actions, turned)
    with pytest.raises(InvalidArgument, match="trained on observations of observation"):
        clipup.evaluate(other, "FetchReach-v1", episodes=1)


def test_wrappers_are_applied_in_order_recorded_and_applied_again(capsys: pytest.CaptureFixture[str]) -> None:
    wrappers = ["--wrapper", "parts:Double(by=3, note='a; b')", "--wrapper", STACK]
    words = ["train", "parts:Parts-v0", *wrappers, "--run", "run", *SMALL]
    plain = ["train", "Pendulum-v1", "--wrapper", STACK, "--max-episode-steps", "10", "--run", "plain", *SMALL]
    assert main([*words, "--generations", "2"]) == 0
    assert clipup.load_policy("run").network.observation_size == 21  # 6 and 6 of "more", 3 of "place", 6 of "side"
    kept = RunDirectory("run").read_config().wrapper
    assert kept == f"parts:Double(by=3, note='a; b'); {STACK}"
    assert main([*plain, "--generations", "2"]) == 0
    policy = clipup.load_policy("plain")
    assert policy.network.observation_size == 9  # three frames of three
    capsys.readouterr()
    assert main(["evaluate", "plain"]) == 2
    assert "--import gymnasium.wrappers" in said(capsys)
    assert main(["evaluate", "plain", "--import", "gymnasium.wrappers", "--quiet"]) == 0
    assert main(["resume", "plain", "--generations", "+2", "--quiet"]) == 2
    assert "--import gymnasium.wrappers" in said(capsys)
    assert main(["resume", "plain", "--generations", "+2", "--import", "gymnasium.wrappers", "--quiet"]) == 0
    assert main([*plain, "--generations", "4", "--run", "whole"]) == 0
    assert results(Path("plain")) == results(Path("whole"))
    with pytest.raises(InvalidArgument, match=r"imports=\['gymnasium.wrappers'\]"):
        clipup.evaluate("plain", episodes=1)
    clipup.evaluate("plain", episodes=1, imports=["gymnasium.wrappers"])


def test_the_reward_of_a_wrapper_is_what_is_trained_on() -> None:
    settings = {**KEYWORDS, "generations": 1, "normalize": False}
    plain = clipup.train("parts:Parts-v0", **settings)
    tripled = clipup.train("parts:Parts-v0", wrapper="parts:Double(by=3)", **settings)
    assert tripled.records[0].fitness_mean == pytest.approx(3 * plain.records[0].fitness_mean)


@pytest.mark.parametrize(
    ("wrapper", "words"),
    [
        ("nowhere_at_all:Thing", "cannot be imported"),
        ("parts:Nothing", "has no Nothing"),
        ("parts:Double(wrong=1)", "does not take these options"),
        ("parts:not_a_wrapper", "must return a gymnasium.Env"),
        ("parts", "module:Class"),
        ("parts:Double(by)", "key=value"),
        ("parts:Double(by=3", "module:Class"),
        ("parts:Double; ;", "module:Class"),
        ("os:system('x')", "key=value"),
    ],
)
def test_a_wrapper_that_cannot_be_used_is_one_line_and_nothing_is_written(
    wrapper: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "parts:Parts-v0", "--wrapper", wrapper, "--run", "run", *SMALL]) == 2
    assert words in said(capsys) and not Path("run").exists()


def test_a_wrapper_that_only_a_file_names_is_not_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "evil.py").write_text("open('imported', 'w')")
    Path("c.toml").write_text('env = "CartPole-v1"\nwrapper = "evil:Thing"\n')
    assert main(["train", "--config", "c.toml", "--run", "run"]) == 2
    assert "--import evil" in said(capsys)
    clipup.train("CartPole-v1", run="run", generations=1, **KEYWORDS)
    file = decode(Path("run/policy.safetensors").read_bytes(), source="file")
    wrapped = json.dumps(json.loads(file.metadata["task"]) | {"wrapper": "evil:Thing"})
    Path("evil.safetensors").write_bytes(encode(file.tensors, {**file.metadata, "task": wrapped}))
    for words in (["evaluate", "evil.safetensors"], ["evaluate", "evil.safetensors", "--env", "CartPole-v1"]):
        assert main(words) == 2
        assert "--import evil" in said(capsys)
    for task in (None, "CartPole-v1"):
        with pytest.raises(InvalidArgument, match="evil"):
            clipup.evaluate("evil.safetensors", task)
    assert not Path("imported").exists()


def test_a_function_of_a_module_is_named_and_named_again(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("imageio")
    import parts  # type: ignore[import-not-found]

    result = clipup.train(parts.make_parts, run="run", generations=2, **KEYWORDS)
    assert result.config.env == "parts:make_parts"
    assert main(["evaluate", "run", "--quiet"]) == 2
    assert "--import parts" in said(capsys)
    assert main(["evaluate", "run", "--import", "parts", "--quiet"]) == 0
    assert main(["record", "run", "-o", "video.gif", "--import", "parts", "--quiet"]) == 0
    assert main(["resume", "run", "--import", "parts", "--generations", "+2", "--quiet"]) == 0
    assert main(["train", "parts:make_parts", "--run", "typed", "--generations", "4", *SMALL]) == 0
    assert results(Path("run")) == results(Path("typed"))


def test_a_function_without_a_module_is_named_again_and_errors_say_how(capsys: pytest.CaptureFixture[str]) -> None:
    import parts  # type: ignore[import-not-found]

    def make_parts() -> object:
        return parts.make_parts()

    make_parts.__qualname__ = "make_parts"  # as in a script or a notebook
    clipup.train(make_parts, run="run", generations=2, **KEYWORDS)
    for command in ("evaluate", "resume"):
        capsys.readouterr()
        assert main([command, "run", *(["--generations", "+2"] if command == "resume" else [])]) == 2
        assert "module:make_parts" in said(capsys)
    assert main(["evaluate", "run", "--env", "parts:make_parts", "--quiet"]) == 0
    assert main(["resume", "run", "--env", "parts:Parts-v0", "--generations", "+2"]) == 2
    assert "was trained on 'make_parts'" in said(capsys)
    clipup.evaluate("run", make_parts, episodes=1)  # type: ignore[arg-type]
    clipup.resume("run", env=make_parts, generations=3)  # type: ignore[arg-type]
    assert main(["resume", "run", "--env", "parts:make_parts", "--generations", "4", "--quiet"]) == 0
    clipup.train(make_parts, run="whole", generations=4, **KEYWORDS)
    assert results(Path("run")) == results(Path("whole"))


@pytest.mark.parametrize("text", ["x=" + " " * 60000, "(" * 60000, "a:b(" + "c=" * 30000, "a." * 30000])
def test_a_long_text_is_refused_at_once(text: str) -> None:
    from clipup.engines.wrappers import parse_wrappers

    for one in (text, f"a:b({text})"):
        with pytest.raises(ClipUpError):
            parse_wrappers(one)
