"""HalfCheetah, Hopper, Swimmer and Walker2d: bodies that move in a plane, paid for their speed along x.

All four observe positions and velocities, and pay for their controls. Hopper and Walker2d must also stay upright. One
set of functions serves all of them: where a task lacks a rule, its options switch the rule off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from clipup.engines.compiled.task import Data, Model, MujocoTask, Vector
from clipup.engines.compiled.tasks.declared import BuiltIn, Settings, Value, need, normal_start, uniform_start
from clipup.engines.compiled.tasks.numpy_sums import clip, control_cost


class Runner(NamedTuple):
    """What the tasks, their versions and a user's options change."""

    skipped_positions: int
    velocity_limit: float
    step_seconds: float
    forward_reward_weight: float
    ctrl_cost_weight: float
    must_be_healthy: bool
    healthy_reward: float
    terminate_when_unhealthy: bool
    rewards_unhealthy: bool
    has_state_range: bool
    healthy_state_range: tuple[float, float]
    healthy_z_range: tuple[float, float]
    healthy_angle_range: tuple[float, float]
    reset_noise_scale: float


def observe(model: Model, data: Data, options: Runner, observation: Vector) -> None:
    """Positions, from the first that is not skipped on, then velocities within their limit."""
    skipped = options.skipped_positions
    positions = data.qpos.size - skipped
    for i in range(positions):
        observation[i] = data.qpos[skipped + i]
    for i in range(data.qvel.size):
        observation[positions + i] = clip(data.qvel[i], -options.velocity_limit, options.velocity_limit)


def before(model: Model, data: Data, options: Runner, memory: Vector) -> None:
    """Remember the position along x."""
    memory[0] = data.qpos[0]


def reward(model: Model, data: Data, options: Runner, memory: Vector, action: Any) -> float:
    """Speed, plus a reward for being healthy, less the cost of the controls."""
    rewards = options.forward_reward_weight * ((data.qpos[0] - memory[0]) / options.step_seconds)
    if options.must_be_healthy:
        rewarded = options.rewards_unhealthy or is_healthy(data, options)
        rewards += (1.0 if rewarded else 0.0) * options.healthy_reward
    return rewards - control_cost(options.ctrl_cost_weight, action)


def terminated(model: Model, data: Data, options: Runner, observation: Vector) -> bool:
    """Whether a body that must be healthy is not."""
    return options.must_be_healthy and options.terminate_when_unhealthy and not is_healthy(data, options)


def is_healthy(data: Data, options: Runner) -> bool:
    """Whether height and angle are within their ranges and, for Hopper, every number of the state after the height."""
    if not options.healthy_z_range[0] < data.qpos[1] < options.healthy_z_range[1]:
        return False
    if not options.healthy_angle_range[0] < data.qpos[2] < options.healthy_angle_range[1]:
        return False
    if options.has_state_range:
        low, high = options.healthy_state_range
        for i in range(2, data.qpos.size):
            if not low < data.qpos[i] < high:
                return False
        for i in range(data.qvel.size):
            if not low < data.qvel[i] < high:
                return False
    return True


def _make(settings: Settings) -> MujocoTask:
    task, (path, model) = settings.task, settings.model()
    must_be_healthy = settings.flag("must_be_healthy")
    need(task.id, model, nq=3 if must_be_healthy else 2, nv=1)
    terminates = must_be_healthy and settings.flag("terminate_when_unhealthy")
    frame_skip = settings.count("frame_skip")
    hidden = settings.flag("exclude_current_positions_from_observation")
    options = Runner(
        skipped_positions=settings.count("hidden_positions") if hidden else 0,
        velocity_limit=10.0 if must_be_healthy else math.inf,
        step_seconds=model.opt.timestep * frame_skip,
        forward_reward_weight=settings.number("forward_reward_weight"),
        ctrl_cost_weight=settings.number("ctrl_cost_weight"),
        must_be_healthy=must_be_healthy,
        healthy_reward=settings.number("healthy_reward"),
        terminate_when_unhealthy=terminates,
        rewards_unhealthy=settings.flag("rewards_unhealthy") and terminates,
        has_state_range=settings.flag("has_state_range"),
        healthy_state_range=settings.bounds("healthy_state_range"),
        healthy_z_range=settings.bounds("healthy_z_range"),
        healthy_angle_range=settings.bounds("healthy_angle_range"),
        reset_noise_scale=settings.scale("reset_noise_scale"),
    )
    return MujocoTask(
        model=path,
        observation_size=model.nq + model.nv - options.skipped_positions,
        observe=observe,
        before=before,
        memory_size=1,
        reward=reward,
        terminated=terminated if must_be_healthy else None,
        start=normal_start if settings.flag("normal_velocities") else uniform_start,
        options=options,
        frame_skip=frame_skip,
        max_episode_steps=task.max_episode_steps,
        post_constraint=False,
        name=task.id,
    )


def _versions(
    name: str, *, models: tuple[str, str], frame_skip: int, options: Mapping[str, Value], **rules: Value
) -> tuple[BuiltIn, BuiltIn]:
    """Return version 4, which pays for health in its last step too, and version 5, whose model is an option."""
    lacking: dict[str, Value] = {
        "hidden_positions": 1,
        "normal_velocities": False,
        "must_be_healthy": False,
        "healthy_reward": 0.0,
        "has_state_range": False,
        "healthy_state_range": (-math.inf, math.inf),
        "healthy_z_range": (-math.inf, math.inf),
        "healthy_angle_range": (-math.inf, math.inf),
    }
    fixed: dict[str, Value] = {**lacking, **rules}
    old: dict[str, Value] = {"xml_file": models[0], "frame_skip": frame_skip}
    new: dict[str, Value] = {"xml_file": models[1], "frame_skip": frame_skip}
    return (
        BuiltIn(f"{name}-v4", 1000, _make, options, {**fixed, **old, "rewards_unhealthy": True}),
        BuiltIn(f"{name}-v5", 1000, _make, {**new, **options}, {**fixed, "rewards_unhealthy": False}),
    )


TASKS: tuple[BuiltIn, ...] = (
    *_versions(
        "HalfCheetah",
        models=("half_cheetah.xml", "half_cheetah.xml"),
        frame_skip=5,
        options={
            "forward_reward_weight": 1.0,
            "ctrl_cost_weight": 0.1,
            "reset_noise_scale": 0.1,
            "exclude_current_positions_from_observation": True,
        },
        normal_velocities=True,
    ),
    *_versions(
        "Hopper",
        models=("hopper.xml", "hopper.xml"),
        frame_skip=4,
        options={
            "forward_reward_weight": 1.0,
            "ctrl_cost_weight": 1e-3,
            "healthy_reward": 1.0,
            "terminate_when_unhealthy": True,
            "healthy_state_range": (-100.0, 100.0),
            "healthy_z_range": (0.7, math.inf),
            "healthy_angle_range": (-0.2, 0.2),
            "reset_noise_scale": 5e-3,
            "exclude_current_positions_from_observation": True,
        },
        must_be_healthy=True,
        has_state_range=True,
    ),
    *_versions(
        "Swimmer",
        models=("swimmer.xml", "swimmer.xml"),
        frame_skip=4,
        options={
            "forward_reward_weight": 1.0,
            "ctrl_cost_weight": 1e-4,
            "reset_noise_scale": 0.1,
            "exclude_current_positions_from_observation": True,
        },
        hidden_positions=2,
    ),
    *_versions(
        "Walker2d",
        models=("walker2d.xml", "walker2d_v5.xml"),
        frame_skip=4,
        options={
            "forward_reward_weight": 1.0,
            "ctrl_cost_weight": 1e-3,
            "healthy_reward": 1.0,
            "terminate_when_unhealthy": True,
            "healthy_z_range": (0.8, 2.0),
            "healthy_angle_range": (-1.0, 1.0),
            "reset_noise_scale": 5e-3,
            "exclude_current_positions_from_observation": True,
        },
        must_be_healthy=True,
    ),
)
