"""Domain randomization: a tray that balances a ball of any weight, with a motor of any strength.

    python examples/randomized_robot.py                       (train twice, about a minute)
    clipup train examples/randomized_robot.py:Waiter --env.spread 0.3

Needs clipup[train]. In each episode, `randomize` changes the model: the ball's mass, the motor's strength and how
stiff the hinge is. The random numbers are the episode's own, so results stay the same on any number of workers.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import clipup
from clipup.engines import Task

MODEL = """
<mujoco>
  <option timestep=".01"/>
  <worldbody>
    <light pos="0 -1 3" dir="0 .3 -1"/>
    <camera pos="0 -1.6 .75" xyaxes="1 0 0 0 .15 1"/>
    <geom type="plane" size="3 3 .1" rgba=".8 .8 .75 1" contype="0" conaffinity="0"/>
    <geom type="capsule" fromto="0 0 0 0 0 .48" size=".02" rgba=".3 .3 .35 1" contype="0" conaffinity="0"/>
    <body name="tray" pos="0 0 .5">
      <joint name="tilt" axis="0 1 0" range="-25 25" limited="true" damping=".2" armature=".01"/>
      <geom type="box" size=".4 .12 .01" mass=".4" rgba=".55 .35 .2 1"/>
    </body>
    <body name="ball" pos="0 0 .561">
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="z" type="slide" axis="0 0 1"/>
      <joint name="roll" axis="0 1 0"/>
      <geom type="sphere" size=".05" mass=".2" rgba=".9 .6 .1 1"/>
    </body>
  </worldbody>
  <actuator><motor joint="tilt" gear="2" ctrlrange="-1 1" ctrllimited="true"/></actuator>
</mujoco>"""
BALL = 2


class Options(NamedTuple):
    """How much the world varies between episodes: 0 is not at all, 0.9 is ten times lighter or heavier."""

    spread: float = 0.6


def observe(model: Any, data: Any, options: Options, observation: Any) -> None:
    """The tilt of the tray, where the ball is, and how fast both move."""
    observation[0:2] = data.qpos[0:2]
    observation[2:4] = data.qvel[0:2]


def reward(model: Any, data: Any, options: Options, memory: Any, action: Any) -> float:
    """Keep the ball in the middle, and the tray quiet."""
    return 1.0 - abs(data.qpos[1]) / 0.4 - 0.02 * abs(data.qvel[0])


def dropped(model: Any, data: Any, options: Options, observation: Any) -> bool:
    """The ball is off the tray."""
    return abs(data.qpos[1]) > 0.42 or data.qpos[2] < -0.25


def start(generator: np.random.Generator, model: Any, options: Options) -> tuple[Any, Any]:
    """Put the ball somewhere on the tray."""
    return np.array([0.0, generator.uniform(-0.25, 0.25), 0.0, 0.0]), np.zeros(model.nv)


def randomize(random: Any, model: Any, options: Options) -> None:
    """Another ball, another motor, another hinge. Called before each episode, on the model as it was loaded."""
    model.body_mass[BALL] *= 10.0 ** random.uniform(-options.spread, options.spread)
    model.actuator_gear[0, 0] *= 1.0 + random.uniform(-options.spread, options.spread)
    model.dof_damping[0] *= 1.0 + random.uniform(-options.spread, options.spread)


Waiter = clipup.MujocoTask(
    model=MODEL, observation_size=4, observe=observe, reward=reward, terminated=dropped, start=start,
    randomize=randomize, options=Options(), frame_skip=2, max_episode_steps=300,
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train in a world that never varies, and in one that does; then compare the two policies in the second."""
    parser = argparse.ArgumentParser(description="Balance a ball of any weight.")
    parser.add_argument("--generations", type=int, default=60)
    parser.add_argument("--population", type=int, default=60)
    parser.add_argument("--max-speed", type=float, default=0.2, help="the one number to tune")
    parser.add_argument("--workers", type=int, default=2, help="threads; the result is the same for any number")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    scores: list[float] = []
    for spread in (0.0, Options().spread):
        try:
            result = clipup.train(
                Waiter,
                env_options={"spread": spread},
                max_speed=options.max_speed,
                population=options.population,
                generations=options.generations,
                workers=options.workers,
                seed=options.seed,
                progress=True,
            )
        except clipup.ClipUpError as error:
            parser.error(str(error))
        found = clipup.evaluate(result.policy, Task(Waiter), episodes=100)
        scores.append(found.summary.mean)
        print(f"trained with spread {spread}: mean {found.summary.mean:.3f} in 100 varied episodes")
    return scores[0], scores[1]


if __name__ == "__main__":
    main()
