"""A mass on a rail: a MuJoCo task of one's own, with ways to break it that an action chooses."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from clipup.engines.compiled.task import ArrayTask, MujocoTask
from clipup.policies.actions import Actions

MODEL = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <body>
      <joint name="x" type="slide" axis="1 0 0"/>
      <geom size=".1" mass="1"/>
    </body>
  </worldbody>
  <actuator>
    <motor joint="x" ctrlrange="-1e30 1e30" ctrllimited="true"/>
  </actuator>
</mujoco>
"""

DIVERGES, RAISES, ENDS_IN_MUJOCO, TURNS_NAN = 1e29, 1500.0, 5.0, 7.0


class Options(NamedTuple):
    weight: float = 1.0
    counts_mass: bool = True
    bonus: tuple[float, float] = (1.0, 2.0)
    power: int = 1


def observe(model: Any, data: Any, options: Options, observation: Any) -> None:
    observation[0] = data.qpos[0]
    observation[1] = data.time


def before(model: Any, data: Any, options: Options, memory: Any) -> None:
    memory[0] = data.qpos[0]
    memory[1] += 1.0


def control(model: Any, data: Any, options: Options, action: Any) -> None:
    data.ctrl[0] = action[0]
    if action[0] == ENDS_IN_MUJOCO:
        model.jnt_type[0] = 99
    if action[0] == TURNS_NAN:
        data.qvel[0] = np.nan


def reward(model: Any, data: Any, options: Options, memory: Any, action: Any) -> float:
    if action[0] == RAISES:
        raise ValueError("too much")
    speed = (data.qpos[0] - memory[0]) / model.opt.timestep
    mass = model.body_mass[1] if options.counts_mass else 0.0
    return options.weight * speed**options.power + options.bonus[1] + mass + 0.001 * memory[1]


def start(generator: np.random.Generator, model: Any, options: Options) -> Any:
    return generator.uniform(-1.0, 1.0, model.nq), np.zeros(model.nv)


def randomize(random: Any, model: Any, options: Options) -> None:
    model.body_mass[1] = random.uniform(1.0, 2.0)


def slider(**changes: Any) -> MujocoTask:
    settings: dict[str, Any] = {
        "model": MODEL, "observation_size": 2, "observe": observe, "reward": reward, "options": Options(),
        "frame_skip": 2, "max_episode_steps": 20, "control": control, "before": before, "memory_size": 2,
        "start": start, "randomize": randomize, "name": "slider",
    }  # fmt: skip
    return MujocoTask(**settings | changes)


def walk_reset(random: Any, state: Any, options: Options) -> None:
    state[0] = random.normal(0.0, 0.1)
    state[1] = random.uniform(-1.0, 1.0)


def walk_step(state: Any, action: Any, random: Any, options: Options) -> tuple[float, bool]:
    state[0] += 0.1 * float(action[0]) + 0.01 * random.standard_normal()
    return options.weight - abs(state[0]), abs(state[0]) > 1.0


def random_walk(**changes: Any) -> ArrayTask:
    settings: dict[str, Any] = {
        "state_size": 2, "observation_size": 2, "reset": walk_reset, "step": walk_step, "options": Options(),
        "actions": Actions.box(np.array([-1.0], np.float32), np.array([1.0], np.float32)), "name": "walk",
        "max_episode_steps": 50,
    }  # fmt: skip
    return ArrayTask(**settings | changes)
