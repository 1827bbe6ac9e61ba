"""Renders episodes with Gymnasium."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from clipup.engines.gymnasium import NAME
from clipup.engines.gymnasium.environment import make_ready
from clipup.engines.gymnasium.spaces import action_maker, actions_of, observations_of
from clipup.engines.rendering import DEFAULT_RATE, Episode, Step, as_frame, frames_per_second
from clipup.engines.rollout import check_observations, check_sizes
from clipup.engines.seeding import seed_words, uint32
from clipup.engines.task import Task
from clipup.errors import EnvironmentFault, InvalidArgument, one_line
from clipup.policies import Policy


def play(policy: Policy, task: Task, *, seed: int, episode: int) -> Episode:
    """Render the episode that `GymnasiumEngine` gives this number in an evaluation."""
    visible = dataclasses.replace(task, env_options={**task.env_options, "render_mode": "rgb_array"})
    environment = _make_visible(task, visible)
    try:
        size, layout = observations_of(task, environment.observation_space)
        actions = actions_of(task, environment.action_space)
        check_sizes(policy.network, size, actions.size)
        check_observations(policy, layout)
        _follow(environment, task)
    except BaseException:
        environment.close()
        raise
    words = seed_words(seed, "candidate", epoch=0, stream="evaluation", indices=np.array([episode]))
    start = uint32(words)[0]
    make = action_maker(environment.action_space, actions)

    def act(observation: object) -> object:
        vector = np.asarray(observation).reshape(-1) if layout is None else layout.flatten(observation)
        return make(policy(vector))

    def steps() -> Iterator[Step]:
        try:
            policy.reset()
            observation, _ = environment.reset(seed=start)
            yield Step(as_frame(environment.render()), 0.0)
            while True:
                observation, reward, terminated, truncated, _ = environment.step(act(observation))
                yield Step(as_frame(environment.render()), float(reward))
                if terminated or truncated:
                    return
        except Exception as error:
            raise _invisible(task, one_line(error)) from error
        finally:
            with contextlib.suppress(Exception):
                environment.close()

    return Episode(steps(), frames_per_second(environment) or DEFAULT_RATE, NAME)


def _make_visible(task: Task, visible: Task) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*is not in the possible render_modes.*")
            return make_ready(visible)
    except InvalidArgument as error:
        if "render_mode" not in str(error):
            raise
        raise _invisible(task, "it does not take render_mode") from error


def _follow(environment: Any, task: Task) -> None:
    """Look through the camera that follows a MuJoCo robot, if its model has one and the task chose no other.

    Gymnasium 1.4 leaves its camera where the episode starts (it is a free camera, which ignores `trackbodyid`), so that
    whoever walks is soon out of the picture. Before, it took the camera of this name.
    """
    renderer = getattr(environment.unwrapped, "mujoco_renderer", None)
    chosen = {"camera_id", "camera_name", "default_camera_config"} & task.env_options.keys()
    if renderer is None or chosen or getattr(renderer, "camera_id", None) != -1:
        return
    names = [renderer.model.camera(number).name for number in range(renderer.model.ncam)]
    if "track" in names:
        renderer.camera_id = names.index("track")


def _invisible(task: Task, reason: str) -> EnvironmentFault:
    return EnvironmentFault(
        f"{task.label} cannot be rendered: {reason}; its render() must return a picture for render_mode='rgb_array'"
    )
