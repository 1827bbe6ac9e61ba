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
    assert "observe of slider must fill all numbers, but observation[1]" in message_of(slider(observe=too_short))


def test_a_function_that_numba_cannot_compile_is_named_with_its_line() -> None:
    message = message_of(slider(reward=unsupported))
    assert f"Numba cannot compile _helper (test_errors.py, line {line_of('not for Numba')})" in message


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
