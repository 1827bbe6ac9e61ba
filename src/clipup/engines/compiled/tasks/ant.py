"""Ant: a torso on four legs, paid for its speed along x."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from clipup.engines.compiled.task import Data, Model, MujocoTask, Vector
from clipup.engines.compiled.tasks.declared import BuiltIn, Settings, Value, need, normal_start
from clipup.engines.compiled.tasks.numpy_sums import clip, control_cost, sum_of_squared_forces


class Ant(NamedTuple):
    """What the versions and a user's options change."""

    skipped_positions: int
    observes_contacts: bool
    first_body: int
    main_body: int
    step_seconds: float
    forward_reward_weight: float
    ctrl_cost_weight: float
    pays_contacts: bool
    contact_cost_weight: float
    contact_force_range: tuple[float, float]
    healthy_reward: float
    terminate_when_unhealthy: bool
    rewards_unhealthy: bool
    healthy_z_range: tuple[float, float]
    reset_noise_scale: float


def observe(model: Model, data: Data, options: Ant, observation: Vector) -> None:
    """Positions, from the first that is not skipped on; velocities; contact forces within their range, if included."""
    skipped = options.skipped_positions
    positions = data.qpos.size - skipped
    for i in range(positions):
        observation[i] = data.qpos[skipped + i]
    place = positions + data.qvel.size
    observation[positions:place] = data.qvel
    if options.observes_contacts:
        low, high = options.contact_force_range
        for body in range(options.first_body, data.cfrc_ext.shape[0]):
            for j in range(6):
                observation[place] = clip(data.cfrc_ext[body, j], low, high)
                place += 1


def before(model: Model, data: Data, options: Ant, memory: Vector) -> None:
    """Remember where the main body was along x."""
    memory[0] = data.xpos[options.main_body, 0]


def reward(model: Model, data: Data, options: Ant, memory: Vector, action: Any) -> float:
    """Speed, plus a reward for being healthy, less the costs of controls and contacts."""
    speed = (data.xpos[options.main_body, 0] - memory[0]) / options.step_seconds
    rewarded = options.rewards_unhealthy or is_healthy(data, options)
    rewards = speed * options.forward_reward_weight + (1.0 if rewarded else 0.0) * options.healthy_reward
    costs = control_cost(options.ctrl_cost_weight, action)
    if options.pays_contacts:
        low, high = options.contact_force_range
        costs += options.contact_cost_weight * sum_of_squared_forces(data.cfrc_ext, low, high)
    return rewards - costs


def terminated(model: Model, data: Data, options: Ant, observation: Vector) -> bool:
    """Whether the ant is not healthy, if that ends an episode."""
    return options.terminate_when_unhealthy and not is_healthy(data, options)


def is_healthy(data: Data, options: Ant) -> bool:
    """Whether the state is finite and the height within its range."""
    for i in range(data.qpos.size):
        if not math.isfinite(data.qpos[i]):
            return False
    for i in range(data.qvel.size):
        if not math.isfinite(data.qvel[i]):
            return False
    return options.healthy_z_range[0] <= data.qpos[2] <= options.healthy_z_range[1]


def _make(settings: Settings) -> MujocoTask:
    task, (path, model) = settings.task, settings.model()
    need(task.id, model, nq=3, nv=1)
    frame_skip = settings.count("frame_skip")
    terminates = settings.flag("terminate_when_unhealthy")
    old = settings.flag("is_version_4")
    observes = settings.flag("use_contact_forces" if old else "include_cfrc_ext_in_observation")
    options = Ant(
        skipped_positions=2 if settings.flag("exclude_current_positions_from_observation") else 0,
        observes_contacts=observes,
        first_body=0 if old else 1,
        main_body=settings.body(model, "main_body"),
        step_seconds=model.opt.timestep * frame_skip,
        forward_reward_weight=settings.number("forward_reward_weight"),
        ctrl_cost_weight=settings.number("ctrl_cost_weight"),
        pays_contacts=observes if old else True,
        contact_cost_weight=settings.number("contact_cost_weight"),
        contact_force_range=settings.bounds("contact_force_range"),
        healthy_reward=settings.number("healthy_reward"),
        terminate_when_unhealthy=terminates,
        rewards_unhealthy=old and terminates,
        healthy_z_range=settings.bounds("healthy_z_range"),
        reset_noise_scale=settings.scale("reset_noise_scale"),
    )
    contacts = 6 * (model.nbody - options.first_body) if observes else 0
    return MujocoTask(
        model=path,
        observation_size=model.nq + model.nv - options.skipped_positions + contacts,
        observe=observe,
        before=before,
        memory_size=1,
        reward=reward,
        terminated=terminated,
        start=normal_start,
        options=options,
        frame_skip=frame_skip,
        max_episode_steps=task.max_episode_steps,
        post_constraint=options.observes_contacts or options.pays_contacts,
        name=task.id,
    )


_SHARED: dict[str, Value] = {
    "xml_file": "ant.xml",
    "ctrl_cost_weight": 0.5,
    "contact_cost_weight": 5e-4,
    "healthy_reward": 1.0,
    "terminate_when_unhealthy": True,
    "healthy_z_range": (0.2, 1.0),
    "contact_force_range": (-1.0, 1.0),
    "reset_noise_scale": 0.1,
    "exclude_current_positions_from_observation": True,
}

TASKS: tuple[BuiltIn, ...] = (
    BuiltIn(
        "Ant-v4",
        1000,
        _make,
        {**_SHARED, "use_contact_forces": False},
        {"is_version_4": True, "frame_skip": 5, "forward_reward_weight": 1.0, "main_body": "torso"},
    ),
    BuiltIn(
        "Ant-v5",
        1000,
        _make,
        {
            **_SHARED,
            "frame_skip": 5,
            "forward_reward_weight": 1.0,
            "main_body": 1,
            "include_cfrc_ext_in_observation": True,
        },
        {"is_version_4": False},
    ),
)
