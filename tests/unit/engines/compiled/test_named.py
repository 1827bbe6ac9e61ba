"""Tasks of one's own are found by name, and only then is their code run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clipup.engines import Task, make_engine, registry
from clipup.engines.compiled import named
from clipup.engines.compiled.task import UNNAMED, ArrayTask
from clipup.errors import BrokenTask, InvalidArgument, UnknownEnvironment
from clipup.importing import names_a_file
from clipup.policies import Actions
from tests.environments.compiled_slider import Options, random_walk, slider

TASK = """
import clipup
from clipup.policies import Actions

def reset(random, state, options):
    state[0] = random.uniform(-1.0, 1.0)

def step(state, action, random, options):
    state[0] += 0.1 * float(action[0])
    return -abs(state[0]), False

Drift = clipup.ArrayTask(
    state_size=1, observation_size=1, actions=Actions.box([-1.0], [1.0]), reset=reset, step=step, max_episode_steps=9,
)
Number = 3
"""


def reset(random: Any, state: Any, options: Any) -> None:
    state[0] = 0.0


def step(state: Any, action: Any, random: Any, options: Any) -> tuple[float, bool]:
    return 1.0, False


HERE = ArrayTask(state_size=1, observation_size=1, actions=Actions.box([-1.0], [1.0]), reset=reset, step=step)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a file that holds a task; modules and import paths are restored afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    known = set(sys.modules)
    (tmp_path / "drifting.py").write_text(TASK)
    yield tmp_path  # type: ignore[misc]
    for name in set(sys.modules) - known:
        if name.startswith("_clipup_") or name in ("drifting", "broken"):
            del sys.modules[name]


def test_a_task_is_found_in_a_file_and_in_a_module(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("drifting.py", "./drifting.py", str(place / "drifting.py")):
        assert named.find(f"{path}:Drift").name == f"{path}:Drift"
    monkeypatch.syspath_prepend(str(place))
    assert isinstance(named.find("drifting:Drift"), ArrayTask)


def test_a_file_may_have_the_name_of_a_module_that_others_need(place: Path) -> None:
    import numpy

    (place / "numpy.py").write_text(TASK)
    named.find("numpy.py:Drift")
    assert sys.modules["numpy"] is numpy
    assert sys.path[0] != str(place)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("x = 1\ny = nothing\n", "broken.py, line 2): NameError"),
        ("x = (\n", "broken.py, line 1): SyntaxError"),
        ("import a_module_that_is_missing\n", "broken.py, line 1): ModuleNotFoundError"),
        ("raise SystemExit(3)\n", "broken.py, line 1): SystemExit"),
        ("import clipup\nclipup.ArrayTask(state_size=0)\n", "line 2): TypeError"),
        (TASK.replace("state_size=1", "state_size=0"), "state_size must be an integer of at least 1, got 0"),
        ("Other = 1\n", "it has no 'Drift'"),
        ("Drift = 1\n", "'Drift' is of type int"),
        (TASK.replace("Drift =", "Draft ="), "did you mean 'Draft'?"),
    ],
)
def test_a_broken_file_is_one_line_with_its_place(place: Path, content: str, expected: str) -> None:
    (place / "broken.py").write_text(content)
    with pytest.raises(BrokenTask) as caught:
        registry.choose(Task("broken.py:Drift"))
    assert expected in str(caught.value) and "\n" not in str(caught.value)


def test_what_is_not_there_is_told_without_asking_gymnasium(place: Path) -> None:
    with pytest.raises(BrokenTask, match=r"there is no file 'nowhere\.py'"):
        registry.choose(Task("nowhere.py:Drift"))
    with pytest.raises(BrokenTask, match="there is no module 'nowhere'; a file is named by its path"):
        registry.choose(Task("nowhere:Drift"))


def test_a_module_of_gymnasium_environments_is_left_to_gymnasium() -> None:
    refusal = registry.entry("compiled").refusal(Task("gymnasium.spaces:Box"))
    assert isinstance(refusal, UnknownEnvironment) and not isinstance(refusal, BrokenTask)
    assert not named.may_name_a_task("pybullet_envs_gymnasium:HumanoidBulletEnv-v0")
    assert registry.entry("gymnasium").refusal(Task(HERE)) is not None
    assert registry.entry("envpool").refusal(Task(HERE)) is not None


MAKERS = """
import gymnasium
import numpy as np

class Point(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-1, 1, 1).astype(np.float32)
        return self.place, {}

    def step(self, action):
        self.place = (self.place + 0.1 * np.asarray(action)).astype(np.float32)
        return self.place, -float(abs(self.place[0])), False, False, {}

def make():
    return Point()

lazy = lambda: Point()
gymnasium.register("Pointed-v0", entry_point=Point, max_episode_steps=7)
gymnasium.register("Bare", entry_point=Point, max_episode_steps=7)
"""


@pytest.mark.parametrize("beside", ["", TASK], ids=["alone", "beside a task"])
@pytest.mark.parametrize("where", ["drifting", "drifting.py", "./drifting.py"])
@pytest.mark.parametrize("name", ["Point", "make", "lazy", "Pointed-v0", "Bare"])
def test_what_makes_an_environment_is_found_whatever_stands_beside_it(
    place: Path, monkeypatch: pytest.MonkeyPatch, beside: str, where: str, name: str
) -> None:
    import gymnasium

    monkeypatch.setattr(gymnasium.envs.registration, "registry", known := dict(gymnasium.registry))
    monkeypatch.setattr(gymnasium, "registry", known)
    monkeypatch.syspath_prepend(str(place))
    (place / "drifting.py").write_text(beside + MAKERS)
    engine = make_engine(Task(f"{where}:{name}", max_episode_steps=5))
    try:
        assert engine.description.name == "gymnasium" and engine.observation_size == 1
    finally:
        engine.close()
    if beside:
        assert registry.choose(Task(f"{where}:Drift"))[0].name == "compiled"
        with pytest.raises(BrokenTask, match=r"it has no 'Drit'.*did you mean 'Drift'"):
            registry.choose(Task(f"{where}:Drit"))


def test_the_libraries_of_a_named_task_are_asked_for_without_an_import(place: Path) -> None:
    (place / "broken.py").write_text("raise SystemExit")
    assert registry.entry("compiled").libraries(Task("broken.py:Drift")) is None
    assert registry.entry("compiled").libraries(Task(HERE)) == {"numba": "train"}
    assert registry.entry("compiled").libraries(Task(slider())) == {"numba": "train", "mujoco": "train"}


def test_an_object_is_called_as_it_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert HERE.name == UNNAMED
    assert named.name_of(HERE) == f"{__name__}:HERE"
    assert named.name_of(random_walk()) == "walk"
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "Mine", mine := random_walk(), raising=False)
    assert named.name_of(mine).endswith("Mine")


def test_options_of_a_task_are_changed_by_name_and_checked() -> None:
    changed = named.with_options(slider(), {"weight": 2, "counts_mass": False, "bonus": [3.0, 4.0]})
    assert changed.options == Options(weight=2.0, counts_mass=False, bonus=(3.0, 4.0))
    for wrong, expected in (
        ({"wieght": 1.0}, "did you mean 'weight'"),
        ({"weight": "much"}, "must be a number"),
        ({"weight": True}, "must be float, got True"),
        ({"power": 1.5}, "must be int, got 1.5"),
        ({"bonus": (1.0,)}, r"must be a tuple of 2 numbers \(float\)"),
    ):
        with pytest.raises(InvalidArgument, match=expected):
            named.with_options(slider(), wrong)
    with pytest.raises(InvalidArgument, match="it has no options"):
        named.with_options(HERE, {"weight": 1.0})


def test_the_path_of_a_file_is_absolute_for_workers(place: Path) -> None:
    assert Task("drifting.py:Drift").for_workers().env == f"{place / 'drifting.py'}:Drift"
    assert Task("drifting:Drift").for_workers().env == "drifting:Drift"
    assert names_a_file("a/b.py:C") and not names_a_file("b:C")


def test_an_object_and_its_name_give_the_same_engine(place: Path) -> None:
    task = named.find("drifting.py:Drift")
    one, other = make_engine(Task(task), threads=1), make_engine(Task("drifting.py:Drift"), threads=1)
    assert one.observation_size == other.observation_size == 1
    assert np.array_equal(one.actions.low, other.actions.low)
