"""Reacher and Pusher: moving a fingertip to a target, and pushing an object to a goal.

Version 4 measures the distances of its reward before the physics of a step, version 5 after it.

Gymnasium does not make Pusher-v4 with MuJoCo 3 or newer, because the object in its model has another mass there. This
one is Gymnasium's Pusher-v4 on the installed MuJoCo, so its numbers are not those of MuJoCo 2. Pusher-v5 has a
corrected model.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from clipup.compilation.math import cos, sin
from clipup.engines.compiled.task import Data, Model, MujocoTask, Vector
from clipup.engines.compiled.tasks.declared import BuiltIn, Settings, Value, body_number, need
from clipup.engines.compiled.tasks.numpy_sums import control_cost, distance


class Arm(NamedTuple):
    """What the tasks, their versions and a user's options change."""

    tip: int
    thing: int
    goal: int
    distance_before_physics: bool
    observed_differences: int
    reward_near_weight: float
    reward_dist_weight: float
    reward_control_weight: float


def before(model: Model, data: Data, options: Arm, memory: Vector) -> None:
    """Remember the distances."""
    memory[0] = distance(data.xpos, options.thing, options.goal)
    memory[1] = distance(data.xpos, options.thing, options.tip)


def reacher_observe(model: Model, data: Data, options: Arm, observation: Vector) -> None:
    """Cosines and sines of two angles, further positions, two velocities, and the way from the target to the tip."""
    for i in range(2):
        observation[i] = cos(data.qpos[i])
        observation[2 + i] = sin(data.qpos[i])
    size = data.qpos.size
    observation[4 : size + 2] = data.qpos[2:]
    observation[size + 2 : size + 4] = data.qvel[:2]
    for i in range(options.observed_differences):
        observation[size + 4 + i] = data.xpos[options.tip, i] - data.xpos[options.goal, i]


def reacher_reward(model: Model, data: Data, options: Arm, memory: Vector, action: Any) -> float:
    """Return the negative distance, less the cost of the controls."""
    away = memory[0] if options.distance_before_physics else distance(data.xpos, options.thing, options.goal)
    return -away * options.reward_dist_weight - control_cost(options.reward_control_weight, action)


def reacher_start(generator: np.random.Generator, model: Model, options: Arm) -> tuple[Vector, Vector]:
    """Start near the model's pose, with the target anywhere within 0.2 of the middle."""
    qpos = generator.uniform(-0.1, 0.1, int(model.nq)) + model.qpos0
    while True:
        x, y = generator.uniform(-0.2, 0.2, 2)
        if math.sqrt(x * x + y * y) < 0.2:
            break
    qpos[-2:] = x, y
    qvel = generator.uniform(-0.005, 0.005, int(model.nv))
    qvel[-2:] = 0
    return qpos, qvel


def pusher_observe(model: Model, data: Data, options: Arm, observation: Vector) -> None:
    """Positions and velocities of seven joints, then where the tip, the object and the goal are."""
    observation[:7] = data.qpos[:7]
    observation[7:14] = data.qvel[:7]
    for i in range(3):
        observation[14 + i] = data.xpos[options.tip, i]
        observation[17 + i] = data.xpos[options.thing, i]
        observation[20 + i] = data.xpos[options.goal, i]


def pusher_reward(model: Model, data: Data, options: Arm, memory: Vector, action: Any) -> float:
    """Return the negative distances from object to goal and to tip, less the cost of the controls."""
    if options.distance_before_physics:
        to_goal, to_tip = memory[0], memory[1]
    else:
        to_goal, to_tip = (
            distance(data.xpos, options.thing, options.goal),
            distance(data.xpos, options.thing, options.tip),
        )
    rewards = -to_goal * options.reward_dist_weight - control_cost(options.reward_control_weight, action)
    return rewards - to_tip * options.reward_near_weight


def pusher_start(generator: np.random.Generator, model: Model, options: Arm) -> tuple[Vector, Vector]:
    """Start in the model's pose, with the object anywhere at least 0.17 from the goal."""
    qpos = model.qpos0.copy()
    while True:
        x, y = generator.uniform(-0.3, 0.0), generator.uniform(-0.2, 0.2)
        if math.sqrt(x * x + y * y) > 0.17:
            break
    qpos[-4:] = x, y, 0.0, 0.0
    qvel = generator.uniform(-0.005, 0.005, int(model.nv))
    qvel[-4:] = 0
    return qpos, qvel


def _make_reacher(settings: Settings) -> MujocoTask:
    task, (path, model) = settings.task, settings.model()
    need(task.id, model, nq=2, nv=2)
    old = settings.flag("is_version_4")
    tip, target = body_number(task.id, model, "fingertip"), body_number(task.id, model, "target")
    options = Arm(
        tip=tip,
        thing=tip,
        goal=target,
        distance_before_physics=old,
        observed_differences=3 if old else 2,
        reward_near_weight=0.0,
        reward_dist_weight=settings.number("reward_dist_weight"),
        reward_control_weight=settings.number("reward_control_weight"),
    )
    return MujocoTask(
        model=path,
        observation_size=model.nq + 4 + options.observed_differences,
        observe=reacher_observe,
        before=before,
        memory_size=2,
        reward=reacher_reward,
        start=reacher_start,
        options=options,
        frame_skip=settings.count("frame_skip"),
        max_episode_steps=task.max_episode_steps,
        post_constraint=False,
        name=task.id,
    )


def _make_pusher(settings: Settings) -> MujocoTask:
    task, (path, model) = settings.task, settings.model()
    need(task.id, model, nq=7, nv=7)
    options = Arm(
        tip=body_number(task.id, model, "tips_arm"),
        thing=body_number(task.id, model, "object"),
        goal=body_number(task.id, model, "goal"),
        distance_before_physics=settings.flag("is_version_4"),
        observed_differences=0,
        reward_near_weight=settings.number("reward_near_weight"),
        reward_dist_weight=settings.number("reward_dist_weight"),
        reward_control_weight=settings.number("reward_control_weight"),
    )
    return MujocoTask(
        model=path,
        observation_size=23,
        observe=pusher_observe,
        before=before,
        memory_size=2,
        reward=pusher_reward,
        start=pusher_start,
        options=options,
        frame_skip=settings.count("frame_skip"),
        max_episode_steps=task.max_episode_steps,
        post_constraint=False,
        name=task.id,
    )


_REACHER: dict[str, Value] = {
    "xml_file": "reacher.xml",
    "frame_skip": 2,
    "reward_dist_weight": 1.0,
    "reward_control_weight": 1.0,
}
_PUSHER: dict[str, Value] = {
    "xml_file": "pusher_v5.xml",
    "frame_skip": 5,
    "reward_near_weight": 0.5,
    "reward_dist_weight": 1.0,
    "reward_control_weight": 0.1,
}

TASKS: tuple[BuiltIn, ...] = (
    BuiltIn("Reacher-v4", 50, _make_reacher, {}, {**_REACHER, "is_version_4": True}),
    BuiltIn("Reacher-v5", 50, _make_reacher, _REACHER, {"is_version_4": False}),
    BuiltIn("Pusher-v4", 100, _make_pusher, {}, {**_PUSHER, "xml_file": "pusher.xml", "is_version_4": True}),
    BuiltIn("Pusher-v5", 100, _make_pusher, _PUSHER, {"is_version_4": False}),
)
