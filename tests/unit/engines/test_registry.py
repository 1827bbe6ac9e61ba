"""Which engine a task gets, and the one clear error where there is none; what the registry tells others."""

import importlib.util
from collections.abc import Callable

import gymnasium
import pytest

from clipup.engines import Task, make_engine, registry
from clipup.engines.wrappers import parse_wrappers
from clipup.errors import ClipUpError, EnvironmentFault, InvalidArgument, UnknownEnvironment


@pytest.mark.parametrize(
    ("task", "name", "reason"),
    [
        (Task("CartPole-v1"), "compiled", "honours every option"),
        (Task("LunarLanderContinuous-v3"), "envpool", "honours every option"),
        (Task("CartPole-v1", engine="compiled"), "compiled", "asked for"),
        (Task("CartPole-v1", engine="gymnasium"), "gymnasium", "asked for"),
        (Task("CartPole-v1", engine="envpool"), "envpool", "asked for"),
        (Task("CartPole-v1", {"sutton_barto_reward": True}), "compiled", "honours"),
        (Task("Walker2d-v4", {"post_constraint": True}), "envpool", "has no option 'post_constraint'"),
        (Task("gymnasium:Pendulum-v1"), "gymnasium", "imported from a module"),
        (Task("OnlyInGymnasium-v0"), "gymnasium", "EnvPool has no OnlyInGymnasium-v0"),
        (Task("LunarLanderContinuous-v3", episodes=2, episode_seeds="pair"), "gymnasium", "first episode only"),
        (Task("LunarLanderContinuous-v3", episodes=2, episode_seeds="shared"), "gymnasium", "first episode only"),
        (Task("LunarLanderContinuous-v3", episode_seeds="pair"), "envpool", "honours"),
        (Task("Walker2d-v4", episodes=2, episode_seeds="shared"), "compiled", "honours"),
        (Task("LunarLanderContinuous-v3", {"gravity": -5.0}), "gymnasium", "no option 'gravity'"),
        (Task("Walker2d-v4", {"healthy_reward": 0.0}), "compiled", "honours"),
    ],
)
def test_auto_takes_the_first_engine_that_honours_every_option(task: Task, name: str, reason: str) -> None:
    if task.env == "OnlyInGymnasium-v0":
        gymnasium.register("OnlyInGymnasium-v0", gymnasium.spec("CartPole-v1").entry_point, max_episode_steps=200)
    engine = make_engine(task)
    try:
        assert engine.name == name
        assert reason in engine.reason
    finally:
        engine.close()
        gymnasium.registry.pop("OnlyInGymnasium-v0", None)


def test_a_callable_runs_in_gymnasium(line: Callable[..., object]) -> None:
    engine = make_engine(Task(line, {"length": 5}))
    assert (engine.name, engine.observation_size, engine.actions.size) == ("gymnasium", 2, 1)
    assert "callable" in engine.reason


@pytest.mark.parametrize(
    ("task", "kind", "words"),
    [
        (Task("CartPol-v1"), UnknownEnvironment, "did you mean CartPole-v1"),
        (Task("lunarlandercontinuous-v3"), UnknownEnvironment, "LunarLanderContinuous-v3"),
        (Task("LunarLanderContinuous-v99"), UnknownEnvironment, "LunarLanderContinuous-v3"),
        (Task("Walker2d-v4", {"healthy_reward": "much"}, engine="compiled"), InvalidArgument, "healthy_reward"),
        (Task("Walker2d-v5", {"xml_file": "./nowhere.xml"}, engine="compiled"), InvalidArgument, "nowhere.xml"),
        (Task("Walker2d-v4", reward_terms=(1,), engine="compiled"), InvalidArgument, "terms"),
        (Task("LunarLander-v3", engine="compiled"), UnknownEnvironment, "the compiled engine has no LunarLander-v3"),
        (Task("Nonsense-v0", engine="envpool"), UnknownEnvironment, "'Nonsense-v0'"),
        (Task("qqqq", engine="gymnasium"), UnknownEnvironment, "module:EnvId"),
        (Task("no_such_module:Env-v0"), InvalidArgument, "no_such_module"),
        (Task("CartPole-v1", {"colour": "red"}), InvalidArgument, "colour"),
        (Task("CartPole-v1", {"colour": "red"}, engine="envpool"), InvalidArgument, "it takes none"),
        (Task("Walker2d-v4", {"healthy_reward": "much"}, engine="envpool"), InvalidArgument, "healthy_reward='much'"),
        (Task("CartPole-v1", {"num_envs": 3}, engine="envpool"), InvalidArgument, "set by the task"),
        (Task("Pong-v5", engine="envpool"), InvalidArgument, "images"),
        (Task("Pong-v5"), InvalidArgument, "Gymnasium has no 'Pong-v5'"),
        (Task("Walker2d-v4", {"xml_file": "nowhere.xml"}, engine="envpool"), EnvironmentFault, "nowhere.xml"),
        (Task("CartPole-v1", max_episode_steps=3_000_000_000, engine="envpool"), InvalidArgument, "max_episode_steps"),
        (Task("CartPole-v1", {"max_episode_steps": 5}), InvalidArgument, "setting of the task"),
        (Task("CartPole-v1", reward_terms=(1,), engine="envpool"), InvalidArgument, "terms"),
        (Task("gymnasium:CarRacing-v3"), InvalidArgument, "image"),
        (Task("CartPole-v1", wrappers=parse_wrappers("a:B"), engine="envpool"), InvalidArgument, "cannot wrap"),
        (Task("CartPole-v1", wrappers=parse_wrappers("a:B"), engine="compiled"), InvalidArgument, "cannot wrap"),
        (
            Task("CartPole-v1", engine="gymnasum"),
            InvalidArgument,
            "auto, compiled, envpool, gymnasium, got 'gymnasum'; did you mean",
        ),
        (Task("Pong-v5", engine="gymnasium"), UnknownEnvironment, "EnvPool does (engine 'envpool' or 'auto')"),
        (Task("CartPole", engine="envpool"), UnknownEnvironment, "did you mean CartPole-v"),
    ],
)
def test_a_task_that_cannot_be_run_gives_one_line(task: Task, kind: type[ClipUpError], words: str) -> None:
    with pytest.raises(kind) as caught:
        make_engine(task)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_callable_must_return_an_environment() -> None:
    with pytest.raises(InvalidArgument, match=r"gymnasium\.Env, got dict"):
        make_engine(Task(dict))
    with pytest.raises(InvalidArgument, match="length"):
        make_engine(Task(lambda: None, {"length": 3}))
    with pytest.raises(EnvironmentFault, match="has no len"):
        make_engine(Task(lambda: len(5)))  # type: ignore[arg-type]  # its own fault, not that of the options


@pytest.mark.parametrize("arguments", [{"lanes": 0}, {"threads": 0}, {"lanes": 2.5}])
def test_lanes_and_threads_must_be_positive(arguments: dict[str, int]) -> None:
    with pytest.raises(InvalidArgument, match="at least 1"):
        make_engine(Task("CartPole-v1"), **arguments)  # type: ignore[arg-type]


def test_pairs_need_an_even_number_of_lanes() -> None:
    with pytest.raises(InvalidArgument, match="even"):
        make_engine(Task("LunarLanderContinuous-v3", episode_seeds="pair"), lanes=5)


def test_an_engine_that_lacks_an_environment_names_the_one_that_has_it() -> None:
    gymnasium.register("OnlyInGymnasium-v0", gymnasium.spec("CartPole-v1").entry_point)
    try:
        with pytest.raises(
            UnknownEnvironment, match=r"EnvPool has no .*; Gymnasium does \(engine 'gymnasium' or 'auto'\)"
        ):
            make_engine(Task("OnlyInGymnasium-v0", engine="envpool"))
    finally:
        gymnasium.registry.pop("OnlyInGymnasium-v0")


def test_names_begin_with_auto_and_follow_the_order_of_the_entries() -> None:
    assert registry.names() == ("auto", *(entry.name for entry in registry.ENTRIES))
    assert [registry.entry(name).name for name in registry.names()[1:]] == list(registry.names()[1:])


@pytest.mark.parametrize(
    ("task", "hidden", "needed"),
    [
        (Task("CartPole-v1"), (), {"numba"}),
        (Task("CartPole-v1"), ("numba",), {"gymnasium", "envpool"}),
        (Task("LunarLanderContinuous-v3"), (), {"gymnasium", "envpool"}),
        (Task("LunarLanderContinuous-v3"), ("envpool",), {"gymnasium", "Box2D"}),
        (Task("Walker2d-v4"), ("envpool",), {"gymnasium", "numba", "mujoco"}),
        (Task("Walker2d-v4"), ("envpool", "numba"), {"gymnasium", "mujoco"}),
        (Task("Walker2d-v4"), ("envpool", "mujoco"), {"gymnasium", "numba", "mujoco"}),
        (Task("Walker2d-v4", {"post_constraint": True}), ("envpool",), {"gymnasium", "envpool"}),
        (Task("Walker2d-v4", engine="gymnasium"), (), {"gymnasium", "mujoco"}),
        (
            Task("pybullet_envs_gymnasium:HopperBulletEnv-v0"),
            (),
            {"gymnasium", "pybullet", "pybullet_envs_gymnasium"},
        ),
        (Task("my_module:Env-v0"), (), {"gymnasium"}),
    ],
)
def test_the_libraries_of_a_task_are_those_of_the_engine_that_would_run_it(
    task: Task, hidden: tuple[str, ...], needed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in hidden else find(name))
    assert set(registry.libraries(task)) == needed
