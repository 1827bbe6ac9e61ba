"""A robot that no library has: a three-legged stool that walks. Its task is the functions below.

    clipup zoo play Stool -o stool.mp4
    clipup train clipup.zoo.tasks.stool:Stool --generations 250 --population 100 --max-speed 0.01 --seed 1

Each leg swings forwards and backwards, and stretches like a telescope. No leg has a knee.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import clipup

LEG = """
<body name="leg{n}" pos="{x} {y} -.03">
  <joint name="swing{n}" axis="0 1 0" range="-35 35" damping="1"/>
  <geom fromto="0 0 0 0 0 -.22" size=".022" rgba=".72 .52 .32 1"/>
  <body name="foot{n}" pos="0 0 -.2">
    <joint name="stretch{n}" type="slide" axis="0 0 -1" range="-.06 .06" damping="20"/>
    <geom fromto="0 0 0 0 0 -.14" size=".015" rgba=".75 .75 .78 1"/>
    <geom type="sphere" pos="0 0 -.15" size=".025" friction="1.5" rgba=".2 .2 .2 1"/>
  </body>
</body>"""
SERVOS = """
<position joint="swing{n}" kp="25" ctrlrange="-.6 .6"/>
<position joint="stretch{n}" kp="1500" ctrlrange="-.06 .06"/>"""
CORNERS = [(0.17 * math.cos(angle), 0.17 * math.sin(angle)) for angle in (0.0, 2 * math.pi / 3, -2 * math.pi / 3)]
MODEL = f"""
<mujoco>
  <option timestep=".005"/>
  <default>
    <geom type="capsule" density="400" contype="1" conaffinity="0"/>
    <joint limited="true" armature=".01"/>
  </default>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1=".95 .93 .88" rgb2=".6 .7 .8" width="64" height="64"/>
    <texture name="tiles" type="2d" builtin="checker" rgb1=".82 .8 .75" rgb2=".7 .68 .64" width="64" height="64"/>
    <material name="floor" texture="tiles" texrepeat="60 60"/>
  </asset>
  <worldbody>
    <light pos="0 0 4" dir=".2 .2 -1" directional="true"/>
    <geom name="floor" type="plane" size="30 30 .1" material="floor" contype="0" conaffinity="1"/>
    <body name="seat" pos="0 0 .405">
      <camera pos=".2 -1.7 .6" xyaxes="1 0 0 0 .4 1" mode="trackcom"/>
      <freejoint/>
      <geom type="cylinder" size=".22 .025" rgba=".8 .3 .2 1"/>
      {"".join(LEG.format(n=n, x=x, y=y) for n, (x, y) in enumerate(CORNERS))}
    </body>
  </worldbody>
  <actuator>{"".join(SERVOS.format(n=n) for n in range(3))}</actuator>
</mujoco>"""


class Options(NamedTuple):
    """What may be changed: ``--env.strides_per_second 2``."""

    strides_per_second: float = 2.0
    pace: float = 0.8
    effort_cost: float = 0.05


def observe(model: Any, data: Any, options: Options, observation: Any) -> None:
    """Height, orientation, joints, all speeds, and a clock."""
    observation[0:11] = data.qpos[2:13]
    observation[11:23] = data.qvel
    phase = 2 * math.pi * options.strides_per_second * data.time
    observation[23] = math.sin(phase)
    observation[24] = math.cos(phase)


def reward(model: Any, data: Any, options: Options, memory: Any, action: Any) -> float:
    """Stay upright and walk along x, at most at the pace that is asked for: a faster stool only falls over."""
    effort = 0.0
    for force in data.actuator_force:
        effort += (0.01 * force) ** 2
    return 0.3 + 3.0 * min(data.qvel[0], options.pace) - 0.5 * abs(data.qpos[1]) - options.effort_cost * effort


def fallen(model: Any, data: Any, options: Options, observation: Any) -> bool:
    """It lies on its side: the seat leans by more than 60 degrees, or is down."""
    return data.qpos[2] < 0.2 or 1 - 2 * (data.qpos[4] ** 2 + data.qpos[5] ** 2) < 0.5


def start(generator: np.random.Generator, model: Any, options: Options) -> tuple[Any, Any]:
    """Stand, with every joint a little off."""
    qpos = np.array(model.qpos0)
    qpos[7:] += generator.uniform(-0.01, 0.01, 6)
    return qpos, generator.uniform(-0.02, 0.02, int(model.nv))


Stool = clipup.MujocoTask(
    model=MODEL, observation_size=25, observe=observe, reward=reward, terminated=fallen, start=start,
    options=Options(), frame_skip=4, max_episode_steps=300,
)  # fmt: skip
