"""Humanoid and HumanoidStandup: walking upright along x, and getting up from the floor.

Both observe the same fields. Version 4 takes them whole. Version 5 leaves out the world's body and the free joint's six
actuator forces, which are always zero, and lets a user leave out more.

Contact forces: the last 84 numbers that Humanoid-v4 observes are live contact forces here, as they are in Gymnasium.
EnvPool's Humanoid-v4 has zeros there unless it is made with ``post_constraint=True``. So a policy that was trained on
one of them sees other numbers on the other.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from clipup.engines.compiled.task import Data, Model, MujocoTask, Vector
from clipup.engines.compiled.tasks.declared import BuiltIn, Settings, Value, need, uniform_start
from clipup.engines.compiled.tasks.numpy_sums import clip, pairwise_sum, sum_of_squared_forces, sum_of_squares


class Humanoid(NamedTuple):
    """What the two tasks, their versions and a user's options change."""

    skipped_positions: int
    first_body: int
    first_actuator_force: int
    include_cinert_in_observation: bool
    include_cvel_in_observation: bool
    include_qfrc_actuator_in_observation: bool
    include_cfrc_ext_in_observation: bool
    timestep: float
    step_seconds: float
    forward_reward_weight: float
    ctrl_cost_weight: float
    pays_contacts: bool
    contact_cost_weight: float
    contact_cost_range: tuple[float, float]
    healthy_reward: float
    terminate_when_unhealthy: bool
    rewards_unhealthy: bool
    healthy_z_range: tuple[float, float]
    reset_noise_scale: float


def observe(model: Model, data: Data, options: Humanoid, observation: Vector) -> None:
    """Positions, velocities, then what is included of bodies' inertias and velocities, actuator and contact forces."""
    skipped = options.skipped_positions
    positions = data.qpos.size - skipped
    for i in range(positions):
        observation[i] = data.qpos[skipped + i]
    place = positions + data.qvel.size
    observation[positions:place] = data.qvel
    if options.include_cinert_in_observation:
        place = append_rows(observation, place, data.cinert, options.first_body)
    if options.include_cvel_in_observation:
        place = append_rows(observation, place, data.cvel, options.first_body)
    if options.include_qfrc_actuator_in_observation:
        for i in range(options.first_actuator_force, data.qfrc_actuator.size):
            observation[place] = data.qfrc_actuator[i]
            place += 1
    if options.include_cfrc_ext_in_observation:
        append_rows(observation, place, data.cfrc_ext, options.first_body)


def append_rows(observation: Vector, place: int, rows: Vector, first: int) -> int:
    """Write `rows`, from row `first` on, into `observation` from `place` on. Return the place after them."""
    for i in range(first, rows.shape[0]):
        for j in range(rows.shape[1]):
            observation[place] = rows[i, j]
            place += 1
    return place


def before(model: Model, data: Data, options: Humanoid, memory: Vector) -> None:
    """Remember where the center of mass was along x."""
    memory[0] = center_of_mass(model.body_mass, data.xipos)


def center_of_mass(masses: Vector, positions: Vector) -> float:
    """Return where the center of mass of the bodies is along x."""
    weighted = 0.0
    for body in range(masses.size):
        weighted += masses[body] * positions[body, 0]
    return weighted / pairwise_sum(masses)


def reward(model: Model, data: Data, options: Humanoid, memory: Vector, action: Any) -> float:
    """Speed, plus a reward for being healthy, less the costs of controls and, in version 5, of contacts."""
    speed = (center_of_mass(model.body_mass, data.xipos) - memory[0]) / options.step_seconds
    rewarded = options.rewards_unhealthy or is_healthy(data, options)
    rewards = options.forward_reward_weight * speed + (1.0 if rewarded else 0.0) * options.healthy_reward
    costs = options.ctrl_cost_weight * sum_of_squares(data.ctrl)
    if options.pays_contacts:
        costs += contact_cost(data.cfrc_ext, options)
    return rewards - costs


def contact_cost(forces: Vector, options: Humanoid) -> float:
    """Return the cost of contact forces, within its range."""
    cost = options.contact_cost_weight * sum_of_squared_forces(forces, -np.inf, np.inf)
    return clip(cost, options.contact_cost_range[0], options.contact_cost_range[1])


def terminated(model: Model, data: Data, options: Humanoid, observation: Vector) -> bool:
    """Whether the humanoid is not healthy, if that ends an episode."""
    return options.terminate_when_unhealthy and not is_healthy(data, options)


def is_healthy(data: Data, options: Humanoid) -> bool:
    """Whether the height of the torso is within its range."""
    return options.healthy_z_range[0] < data.qpos[2] < options.healthy_z_range[1]


def standup_reward(model: Model, data: Data, options: Humanoid, memory: Vector, action: Any) -> float:
    """Height over the length of a step of physics, less the costs of controls and impacts, plus one."""
    rise = data.qpos[2] / options.timestep
    return rise - options.ctrl_cost_weight * sum_of_squares(data.ctrl) - contact_cost(data.cfrc_ext, options) + 1.0


def _make(settings: Settings) -> MujocoTask:
    task, (path, model) = settings.task, settings.model()
    need(task.id, model, nq=3, nv=1)
    frame_skip = settings.count("frame_skip")
    old, walks = settings.flag("is_version_4"), settings.flag("walks")
    terminates = settings.flag("terminate_when_unhealthy")
    if not walks:
        settings.number("uph_cost_weight")
    costs = "contact" if walks else "impact"
    options = Humanoid(
        skipped_positions=2 if settings.flag("exclude_current_positions_from_observation") else 0,
        first_body=0 if old else 1,
        first_actuator_force=0 if old else 6,
        include_cinert_in_observation=settings.flag("include_cinert_in_observation"),
        include_cvel_in_observation=settings.flag("include_cvel_in_observation"),
        include_qfrc_actuator_in_observation=settings.flag("include_qfrc_actuator_in_observation"),
        include_cfrc_ext_in_observation=settings.flag("include_cfrc_ext_in_observation"),
        timestep=model.opt.timestep,
        step_seconds=model.opt.timestep * frame_skip,
        forward_reward_weight=settings.number("forward_reward_weight"),
        ctrl_cost_weight=settings.number("ctrl_cost_weight"),
        pays_contacts=not (old and walks),
        contact_cost_weight=settings.number(f"{costs}_cost_weight"),
        contact_cost_range=settings.bounds(f"{costs}_cost_range"),
        healthy_reward=settings.number("healthy_reward"),
        terminate_when_unhealthy=terminates,
        rewards_unhealthy=old and terminates,
        healthy_z_range=settings.bounds("healthy_z_range"),
        reset_noise_scale=settings.scale("reset_noise_scale"),
    )
    bodies = model.nbody - options.first_body
    size = model.nq + model.nv - options.skipped_positions
    size += 10 * bodies * options.include_cinert_in_observation + 6 * bodies * options.include_cvel_in_observation
    size += max(0, model.nv - options.first_actuator_force) * options.include_qfrc_actuator_in_observation
    size += 6 * bodies * options.include_cfrc_ext_in_observation
    return MujocoTask(
        model=path,
        observation_size=size,
        observe=observe,
        before=before if walks else None,
        memory_size=1 if walks else 0,
        reward=reward if walks else standup_reward,
        terminated=terminated if walks else None,
        start=uniform_start,
        options=options,
        frame_skip=frame_skip,
        max_episode_steps=task.max_episode_steps,
        post_constraint=options.include_cfrc_ext_in_observation or options.pays_contacts,
        name=task.id,
    )


_INCLUDED: dict[str, Value] = {
    "include_cinert_in_observation": True,
    "include_cvel_in_observation": True,
    "include_qfrc_actuator_in_observation": True,
    "include_cfrc_ext_in_observation": True,
}
_WALKING: dict[str, Value] = {
    "forward_reward_weight": 1.25,
    "ctrl_cost_weight": 0.1,
    "healthy_reward": 5.0,
    "terminate_when_unhealthy": True,
    "healthy_z_range": (1.0, 2.0),
    "reset_noise_scale": 0.01,
    "exclude_current_positions_from_observation": True,
}
_WALKING_MODEL: dict[str, Value] = {"xml_file": "humanoid.xml", "frame_skip": 5}
_CONTACTS: dict[str, Value] = {"contact_cost_weight": 5e-7, "contact_cost_range": (-math.inf, 10.0)}
_RISING: dict[str, Value] = {
    "xml_file": "humanoidstandup.xml",
    "frame_skip": 5,
    "uph_cost_weight": 1.0,  # Gymnasium takes this option and does not use it
    "ctrl_cost_weight": 0.1,
    "impact_cost_weight": 5e-7,
    "impact_cost_range": (-math.inf, 10.0),
    "reset_noise_scale": 0.01,
    "exclude_current_positions_from_observation": True,
}
_UNUSED: dict[str, Value] = {
    "walks": False,
    "forward_reward_weight": 0.0,
    "healthy_reward": 0.0,
    "terminate_when_unhealthy": False,
    "healthy_z_range": (-math.inf, math.inf),
}

TASKS: tuple[BuiltIn, ...] = (
    BuiltIn(
        "Humanoid-v4",
        1000,
        _make,
        _WALKING,
        {"is_version_4": True, "walks": True, **_WALKING_MODEL, **_CONTACTS, **_INCLUDED},
    ),
    BuiltIn(
        "Humanoid-v5",
        1000,
        _make,
        {**_WALKING_MODEL, **_WALKING, **_CONTACTS, **_INCLUDED},
        {"is_version_4": False, "walks": True},
    ),
    BuiltIn("HumanoidStandup-v4", 1000, _make, {}, {"is_version_4": True, **_UNUSED, **_RISING, **_INCLUDED}),
    BuiltIn("HumanoidStandup-v5", 1000, _make, {**_RISING, **_INCLUDED}, {"is_version_4": False, **_UNUSED}),
)
