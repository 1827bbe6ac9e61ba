"""Renders episodes with Gymnasium."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import cast

import numpy as np

from clipup.engines.gymnasium import NAME
from clipup.engines.gymnasium.environment import actions_of, make_ready, observation_size
from clipup.engines.rendering import DEFAULT_RATE, Episode, Step, as_frame, frames_per_second
from clipup.engines.rollout import check_sizes
from clipup.engines.seeding import seed_words, uint32
from clipup.engines.task import Task
from clipup.errors import EnvironmentFault, one_line
from clipup.policies import Policy


def play(policy: Policy, task: Task, *, seed: int, episode: int) -> Episode:
    """Render the episode that `GymnasiumEngine` gives this number in an evaluation."""
    visible = dataclasses.replace(task, env_options={**task.env_options, "render_mode": "rgb_array"})
    environment = make_ready(visible)
    try:
        size = observation_size(task, environment.observation_space)
        check_sizes(policy.network, size, actions_of(task, environment.action_space).size)
    except BaseException:
        environment.close()
        raise
    words = seed_words(seed, "candidate", epoch=0, stream="evaluation", indices=np.array([episode]))
    start = uint32(words)[0]

    def steps() -> Iterator[Step]:
        try:
            observation, _ = environment.reset(seed=start)
            yield Step(as_frame(environment.render()), 0.0)
            while True:
                observation, reward, terminated, truncated, _ = environment.step(_action(policy, observation))
                yield Step(as_frame(environment.render()), float(reward))
                if terminated or truncated:
                    return
        except Exception as error:
            raise EnvironmentFault(f"{task.label} could not be rendered: {one_line(error)}") from error
        finally:
            with contextlib.suppress(Exception):
                environment.close()

    return Episode(steps(), frames_per_second(environment) or DEFAULT_RATE, NAME)


def _action(policy: Policy, observation: object) -> object:
    action = policy(np.asarray(observation).reshape(-1))
    return int(cast(int, action)) if policy.actions.kind == "discrete" else action
