"""A recorded episode of one's own task is the episode that an evaluation scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clipup.engines import Task
from clipup.errors import ClipUpError, EnvironmentFault
from clipup.evaluation.evaluate import evaluate
from clipup.evaluation.video import play
from clipup.policies import Network, Policy, Statistics
from clipup.policies.actions import Actions
from tests.environments.compiled_slider import random_walk, slider

UNBOUNDED = Actions.box(np.array([-1e30], np.float32), np.array([1e30], np.float32))
ONE = Actions.box([-1.0], [1.0])


def policy_of(actions: Actions) -> Policy:
    statistics = Statistics(np.array([0.1, 0.2]), np.array([1.5, 0.5]))
    return Policy(Network(2, 1), np.array([0.3, -0.2, 0.1], np.float32), statistics, actions)


def picture(state: Any, options: Any) -> Any:
    return np.full((8, 10, 3), 128, np.uint8)


@pytest.mark.parametrize("task", [slider(), random_walk(render=picture)], ids=["mujoco", "array"])
def test_the_rewards_of_a_recording_are_those_of_the_evaluation_to_the_bit(task: Any) -> None:
    policy = policy_of(UNBOUNDED if task.name == "slider" else ONE)
    found = evaluate(policy, Task(task), episodes=3, seed=5)
    for number in range(3):
        steps = list(play(policy, Task(task), seed=5, episode=number).steps)
        total = 0.0
        for step in steps:
            total += step.reward
        assert total == found.returns[number]
        assert steps[0].frame.dtype == np.uint8 and steps[0].frame.shape[2] == 3


def test_a_mujoco_task_is_drawn_in_its_own_time() -> None:
    episode = play(policy_of(UNBOUNDED), Task(slider()), seed=0)
    frames = [step.frame for step in episode.steps]
    assert episode.rate == pytest.approx(50.0)
    assert frames[0].shape == (480, 640, 3) and frames[0].std() > 1


def test_a_task_without_a_picture_says_so_in_one_line() -> None:
    with pytest.raises(ClipUpError, match="walk cannot be rendered: it has no function render"):
        play(policy_of(ONE), Task(random_walk()))


@pytest.mark.parametrize("wrong", [None, np.zeros((4, 4)), np.zeros((4, 4, 3)), "picture"])
def test_a_wrong_picture_is_one_line(wrong: Any) -> None:
    with pytest.raises(EnvironmentFault, match="expected a frame in colour"):
        list(play(policy_of(ONE), Task(random_walk(render=lambda state, options: wrong))).steps)


def test_a_picture_cannot_change_the_state() -> None:
    def scribble(state: Any, options: Any) -> Any:
        state[:] = 1e9
        return picture(state, options)

    policy = policy_of(ONE)
    kept = [step.reward for step in play(policy, Task(random_walk(render=picture)), seed=1).steps]
    assert [step.reward for step in play(policy, Task(random_walk(render=scribble)), seed=1).steps] == kept
