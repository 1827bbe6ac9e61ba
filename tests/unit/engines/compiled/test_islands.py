"""Robots of one kinematic tree do not look for islands of constraints, and move as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from clipup.engines.compiled.mujoco_world import mujoco, without_islands

ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
STEPS = 400
ARM = """
<mujoco>
  <option solver="{solver}" cone="{cone}" integrator="{integrator}"/>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .5">
      <freejoint/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".05"/>
      <body name="a" pos=".4 0 0">
        <joint name="a" axis="0 1 0" range="-60 60" limited="true" frictionloss=".1"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".05"/>
        <body pos=".3 0 0"><joint name="b" axis="0 0 1"/><geom type="box" size=".1 .1 .1"/></body>
      </body>
      <body pos="-.1 0 0"><joint name="c" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 -.3 0 0" size=".05"/></body>
    </body>
  </worldbody>
  <equality><joint joint1="a" joint2="c" polycoef="0 1 0 0 0"/></equality>
  <actuator><motor joint="a"/><motor joint="b"/><motor joint="c"/></actuator>
</mujoco>"""
TWO_TREES = """
<mujoco><worldbody>
  <body><freejoint/><geom size=".1"/></body><body pos="1 0 0"><freejoint/><geom size=".1"/></body>
</worldbody></mujoco>"""


def track(model: Any) -> Any:
    """Return positions, velocities and accelerations of some time of random actions."""
    data: Any = mujoco().MjData(model)
    generator = np.random.default_rng(1)
    rows: list[Any] = []
    for i in range(STEPS):
        if i % 100 == 0:
            mujoco().mj_resetData(model, data)
        data.ctrl[:] = generator.uniform(-1, 1, model.nu)
        mujoco().mj_step(model, data, nstep=4)
        rows.append(np.concatenate([data.qpos, data.qvel, data.qacc]))
    return np.array(rows)


def check(model: Any) -> None:
    """Compare with and without islands."""
    bit = int(mujoco().mjtDisableBit.mjDSBL_ISLAND)
    quick = without_islands(model)
    assert quick.opt.disableflags & bit
    assert not model.opt.disableflags & bit
    np.testing.assert_array_equal(track(quick), track(model))


@pytest.mark.parametrize("name", ["humanoid", "humanoidstandup", "walker2d_v5", "hopper", "half_cheetah", "ant"])
def test_a_robot_of_gymnasium_moves_to_the_same_bits(name: str) -> None:
    check(mujoco().MjModel.from_xml_path(str(ASSETS / f"{name}.xml")))


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("solver", ["PGS", "CG", "Newton"])
def test_a_robot_with_constraints_of_every_kind_moves_to_the_same_bits(solver: str, cone: str, integrator: str) -> None:
    check(mujoco().MjModel.from_xml_string(ARM.format(solver=solver, cone=cone, integrator=integrator)))


def test_a_model_of_several_trees_keeps_its_islands() -> None:
    model = mujoco().MjModel.from_xml_string(TWO_TREES)
    assert without_islands(model).opt.disableflags == model.opt.disableflags
