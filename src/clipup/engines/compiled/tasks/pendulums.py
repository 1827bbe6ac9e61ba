"""InvertedPendulum and InvertedDoublePendulum: keeping one or two poles upright on a cart.

InvertedDoublePendulum observes sines and cosines. Its reward has squares, for which Gymnasium calls the C library's
``pow``; that does not always give the nearest number. Both differ between processors and C libraries in the last bit.
Here they are within 1e-12 of Gymnasium's, and all other numbers are equal.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from clipup.compilation.math import cos, sin
from clipup.engines.compiled.task import Data, Model, MujocoTask, Vector
from clipup.engines.compiled.tasks.declared import BuiltIn, Settings, Value, need, normal_start, uniform_start
from clipup.engines.compiled.tasks.numpy_sums import clip


class Pendulum(NamedTuple):
    """What the versions and a user's options change."""

    healthy_reward: float
    rewards_fallen: bool
    observed_constraints: int
    reset_noise_scale: float


def observe(model: Model, data: Data, options: Pendulum, observation: Vector) -> None:
    """Positions and velocities."""
    observation[: data.qpos.size] = data.qpos
    observation[data.qpos.size :] = data.qvel


def reward(model: Model, data: Data, options: Pendulum, memory: Vector, action: Any) -> float:
    """One for each step; in version 5, not for the one in which the pole falls."""
    return options.healthy_reward if options.rewards_fallen or not has_fallen(data) else 0.0


def terminated(model: Model, data: Data, options: Pendulum, observation: Vector) -> bool:
    """Whether the pole has fallen."""
    return has_fallen(data)


def has_fallen(data: Data) -> bool:
    """Whether the state is not finite, or the pole leans by more than 0.2."""
    for i in range(data.qpos.size):
        if not math.isfinite(data.qpos[i]):
            return True
    for i in range(data.qvel.size):
        if not math.isfinite(data.qvel[i]):
            return True
    return abs(data.qpos[1]) > 0.2


def observe_two(model: Model, data: Data, options: Pendulum, observation: Vector) -> None:
    """Place of the cart, sines and cosines of the angles, velocities and forces of constraints within 10."""
    angles, speeds = data.qpos.size - 1, data.qvel.size
    observation[0] = data.qpos[0]
    for i in range(angles):
        observation[1 + i] = sin(data.qpos[1 + i])
        observation[1 + angles + i] = cos(data.qpos[1 + i])
    place = 1 + 2 * angles
    for i in range(speeds):
        observation[place + i] = clip(data.qvel[i], -10.0, 10.0)
    for i in range(options.observed_constraints):
        observation[place + speeds + i] = clip(data.qfrc_constraint[i], -10.0, 10.0)


def reward_two(model: Model, data: Data, options: Pendulum, memory: Vector, action: Any) -> float:
    """A reward for each step (in version 5, not for the last), less penalties for distance of the tip and for speed."""
    x, y = data.site_xpos[0, 0], data.site_xpos[0, 2] - 2.0
    first, second = data.qvel[1], data.qvel[2]
    distance = 0.01 * (x * x) + y * y
    speed = 1e-3 * (first * first) + 5e-3 * (second * second)
    alive = options.healthy_reward if options.rewards_fallen or not data.site_xpos[0, 2] <= 1.0 else 0.0
    return alive - distance - speed


def terminated_two(model: Model, data: Data, options: Pendulum, observation: Vector) -> bool:
    """Whether the tip of the second pole is no higher than 1."""
    return data.site_xpos[0, 2] <= 1.0


def _make(settings: Settings) -> MujocoTask:
    return _task(settings, two=False)


def _make_two(settings: Settings) -> MujocoTask:
    return _task(settings, two=True)


def _task(settings: Settings, *, two: bool) -> MujocoTask:
    task, (path, model) = settings.task, settings.model()
    need(task.id, model, nq=2, nv=3 if two else 1, nsite=1 if two else 0)
    old = settings.flag("is_version_4")
    options = Pendulum(
        healthy_reward=settings.number("healthy_reward"),
        rewards_fallen=old,
        observed_constraints=(model.nv if old else 1) if two else 0,
        reset_noise_scale=settings.scale("reset_noise_scale"),
    )
    positions = 1 + 2 * (model.nq - 1) if two else model.nq
    return MujocoTask(
        model=path,
        observation_size=positions + model.nv + options.observed_constraints,
        observe=observe_two if two else observe,
        reward=reward_two if two else reward,
        terminated=terminated_two if two else terminated,
        start=normal_start if two else uniform_start,
        options=options,
        frame_skip=settings.count("frame_skip"),
        max_episode_steps=task.max_episode_steps,
        post_constraint=False,
        name=task.id,
    )


_ONE: dict[str, Value] = {"xml_file": "inverted_pendulum.xml", "frame_skip": 2, "reset_noise_scale": 0.01}
_TWO: dict[str, Value] = {
    "xml_file": "inverted_double_pendulum.xml",
    "frame_skip": 5,
    "healthy_reward": 10.0,
    "reset_noise_scale": 0.1,
}

TASKS: tuple[BuiltIn, ...] = (
    BuiltIn("InvertedPendulum-v4", 1000, _make, {}, {**_ONE, "healthy_reward": 1.0, "is_version_4": True}),
    BuiltIn("InvertedPendulum-v5", 1000, _make, _ONE, {"healthy_reward": 1.0, "is_version_4": False}),
    BuiltIn("InvertedDoublePendulum-v4", 1000, _make_two, {}, {**_TWO, "is_version_4": True}),
    BuiltIn("InvertedDoublePendulum-v5", 1000, _make_two, _TWO, {"is_version_4": False}),
)
