"""Mistakes in a task are told in one line, with the function and its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clipup.engines.compiled.engine import CompiledEngine
from clipup.engines.compiled.task import MujocoTask
from clipup.engines.task import Task
from clipup.errors import InvalidArgument
from clipup.policies.actions import Actions
from tests.environments.compiled_slider import MODEL, Options, observe, random_walk, reward, slider


def message_of(task: Any) -> str:
    with pytest.raises(InvalidArgument) as caught:
        CompiledEngine(Task("own"), task, threads=1, reason="asked for")
    message = str(caught.value)
    assert "\n" not in message
    return message


def misspelled(model: Any, data: Any, options: Any, observation: Any) -> None:
    observation[0] = data.qpso[0]  # here


def too_long(model: Any, data: Any, options: Any, observation: Any) -> None:
    for i in range(3):
        observation[i] = data.qpos[0]  # beyond


def too_short(model: Any, data: Any, options: Any, observation: Any) -> None:
    observation[0] = data.qpos[0]


def _helper(data: Any) -> float:
    return {0: 1.0}.get(0, [1, "two"][int(data.qpos[0] * 0)])  # not for Numba


def unsupported(model: Any, data: Any, options: Any, memory: Any, action: Any) -> float:
    return _helper(data)


def line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {text}"))


def test_a_model_that_does_not_load() -> None:
    assert "there is no model file 'nowhere.xml'" in message_of(slider(model="nowhere.xml"))
    assert "model of slider does not load" in message_of(slider(model="<mujoco><oops/></mujoco>"))
    assert "must give a mujoco.MjModel, got int" in message_of(slider(model=lambda: 3))


def test_a_model_may_be_a_file_a_text_or_made_by_a_function(tmp_path: Path) -> None:
    import mujoco

    path = tmp_path / "slider.xml"
    path.write_text(MODEL)
    for model in (path, str(path), MODEL, lambda: mujoco.MjModel.from_xml_string(MODEL),
                  lambda: mujoco.MjSpec.from_string(MODEL)):  # fmt: skip
        assert CompiledEngine(Task("own"), slider(model=model), threads=1, reason="").actions.size == 1


def test_a_function_that_fails_is_named_with_its_line() -> None:
    message = message_of(slider(observe=misspelled))
    assert f"misspelled (test_errors.py, line {line_of('here')})" in message and "qpso" in message
    message = message_of(slider(observe=too_long))
    assert f"too_long (test_errors.py, line {line_of('beyond')})" in message and "IndexError" in message


def test_an_observation_with_a_gap_is_refused() -> None:
    message = message_of(slider(observe=too_short))
    assert "observe of slider, too_short (test_errors.py, line " in message
    assert "must fill all 2 numbers, but observation[1] is not a number" in message


def test_a_function_that_numba_cannot_compile_is_named_with_its_line() -> None:
    message = message_of(slider(reward=unsupported))
    assert f"Numba cannot compile _helper (test_errors.py, line {line_of('not for Numba')})" in message


def text_of_a_number(model: Any, data: Any, options: Any, memory: Any, action: Any) -> float:
    return float(f"{data.qpos[0]}")


def generator_expression(model: Any, data: Any, options: Any, memory: Any, action: Any) -> float:
    return sum(value for value in data.qpos)


def two_types(model: Any, data: Any, options: Any, memory: Any, action: Any) -> Any:
    if data.qpos[0] > 1e9:
        return "far"
    return 1.0


def imports_inside(model: Any, data: Any, options: Any, memory: Any, action: Any) -> float:
    import math

    return math.sin(data.qpos[0])


def norm(model: Any, data: Any, options: Any, memory: Any, action: Any) -> float:
    return float(np.linalg.norm(data.qpos))


@pytest.mark.parametrize("function", [text_of_a_number, generator_expression, two_types, imports_inside, norm])
def test_whatever_cannot_be_compiled_the_users_function_is_named(function: Any) -> None:
    message = message_of(slider(reward=function))
    assert f"{function.__name__} (test_errors.py, line " in message


def forgets_to_return(*arguments: Any) -> Any:
    pass


def returns_a_vector(*arguments: Any) -> Any:
    return np.zeros(2)


def returns_one_value(*arguments: Any) -> Any:
    return 1.0


def returns_no_truth(*arguments: Any) -> Any:
    return 1.0, None


@pytest.mark.parametrize(
    ("name", "function", "expected"),
    [
        ("reward", forgets_to_return, "must return a number, got None"),
        ("reward", returns_a_vector, "must return a number, got array"),
        ("terminated", forgets_to_return, "must return True or False, got None"),
        ("start", returns_one_value, "must return 1 positions and 1 velocities, got 1.0"),
        ("step", returns_one_value, "must return two values, a number and True or False, got 1.0"),
        ("step", returns_no_truth, "must return two values, a number and True or False, got (1.0, None)"),
        ("reward", lambda model, data, options, memory: 1.0, "must take (model, data, options, memory, action)"),
        ("randomize", lambda model: None, "must take (random, model, options), got (model)"),
        ("step", lambda state, action: (1.0, True), "must take (state, action, random, options)"),
    ],
)
def test_a_wrong_return_and_wrong_arguments_are_told_with_function_and_line(
    name: str, function: Any, expected: str
) -> None:
    message = message_of((random_walk if name == "step" else slider)(**{name: function}))
    assert f"{name} of " in message and expected in message
    assert f"{function.__name__} (test_errors.py, line {function.__code__.co_firstlineno})" in message


def breaks_the_model(random: Any, model: Any, options: Any) -> None:
    model.body_mass[1] = -1.0
    model.body_inertia[1, 0] = np.nan
    model.jnt_type[0] = 99


def test_a_model_that_randomize_breaks_is_told_with_the_function() -> None:
    assert "breaks_the_model (test_errors.py, line " in message_of(slider(randomize=breaks_the_model))


def test_a_start_of_the_wrong_size_is_refused() -> None:
    message = message_of(slider(start=lambda generator, model, options: (np.zeros(3), np.zeros(1))))
    assert "must return 1 positions and 1 velocities, got 4 numbers" in message


def test_actions_that_do_not_fit_the_model_are_refused() -> None:
    two = Actions.box(np.zeros(2, np.float32), np.ones(2, np.float32))
    assert "has 2 actions, but its model has 1 controls" in message_of(slider(actions=two, control=None))


def test_a_task_is_checked_when_it_is_made() -> None:
    with pytest.raises(InvalidArgument, match="observation_size must be an integer of at least 1, got 0"):
        slider(observation_size=0)
    with pytest.raises(InvalidArgument, match="observe must be a function, got 3"):
        slider(observe=3)
    with pytest.raises(InvalidArgument, match="options must be a NamedTuple, got dict"):
        slider(options={"weight": 1.0})
    with pytest.raises(InvalidArgument, match="option 'weight' must be a number"):
        slider(options=Options(weight="heavy"))  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="memory_size must be at least 1"):
        slider(memory_size=0)
    with pytest.raises(InvalidArgument, match="discrete actions need a function control"):
        slider(actions=Actions.discrete(2), control=None)
    with pytest.raises(InvalidArgument, match="must be float32, got float64"):
        random_walk(actions=Actions.box(np.zeros(1), np.ones(1), dtype="float64"))
    with pytest.raises(InvalidArgument, match="observation_size must be 2, got 1"):
        random_walk(observation_size=1)


def test_terms_of_a_reward_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="reward_terms"):
        CompiledEngine(Task("own", reward_terms=(1,)), random_walk(), threads=1, reason="")


def test_a_robot_needs_no_more_than_three_functions() -> None:
    task = MujocoTask(model=MODEL, observation_size=2, observe=observe, reward=_speed)
    assert CompiledEngine(Task("own"), task, threads=1, reason="").actions.low == (np.float32(-1e30),)


def _speed(model: Any, data: Any, options: Any, memory: Any, action: Any) -> float:
    return data.qvel[0]


def test_the_slider_is_a_task() -> None:
    assert slider(reward=reward).name == "slider"


def test_what_mujoco_says_of_a_model_goes_to_the_log(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import logging

    monkeypatch.chdir(tmp_path)
    with caplog.at_level(logging.DEBUG, "clipup"):
        from clipup.engines.compiled.mujoco_world import load_model

        load_model(slider(model=MODEL.replace("<option", "<compiler settotalmass='2'/><option")))
    assert "slider: " in caplog.text and "settotalmass" in caplog.text
    assert not capfd.readouterr().err and not list(tmp_path.iterdir())
