"""A faster PyBullet client: the same answers, to the last bit, with fewer calls.

Bullet's environments ask for one link or joint at a time, and for each call the simulator collects the state of the
whole body. Their client also binds the function again at each call. Their walkers make arrays of the pose of each part,
of which they use the position alone, and the Humanoid clips and sends one torque at a time. All of this together took
about as much time as the physics (``benchmarks/bullet_client.py``).
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

_Call = Callable[..., Any]

_WALKERS = "pybullet_envs_gymnasium.robot_locomotors"
_READS = ("getBasePositionAndOrientation", "getBaseVelocity")
_PURE_OPTIONS = frozenset({"computeLinkVelocity"})
_BULK_READS = {"getLinkState": "getLinkStates", "getJointState": "getJointStates"}


def quicken(environment: Any) -> None:
    """Make the client of one of PyBullet's own environments faster. The environment must have been reset once.

    Answers are kept until any other function is called, so they are never out of date. Links and joints are read all at
    once, and so are the Humanoid's torques sent. Each function is bound once. Other environments are left alone.
    """
    # Only environments whose every call goes through their client: other calls would not discard the kept answers.
    if not type(environment.unwrapped).__module__.startswith("pybullet_envs_gymnasium."):
        return
    client = getattr(environment.unwrapped, "_p", None)
    library = sys.modules.get("pybullet_utils.bullet_client")
    if client is None or library is None or type(client) is not library.BulletClient:
        return
    pybullet = sys.modules["pybullet"]
    memory: dict[Any, Any] = {}
    bound = {
        name: functools.partial(function, physicsClientId=client._client)
        for name, function in vars(pybullet).items()
        if inspect.isbuiltin(function) and name != "disconnect"  # the client keeps count of that
    }
    for name, call in bound.items():
        setattr(client, name, _forgetting(call, memory))
    for name in _READS:
        setattr(client, name, _remembering(bound[name], memory))
    for name, bulk in _BULK_READS.items():
        setattr(client, name, _reading_all(bound[name], bound[bulk], bound["getNumJoints"], memory, pybullet.error))
    walkers, robot = sys.modules.get(_WALKERS), getattr(environment.unwrapped, "robot", None)
    if walkers is not None and isinstance(robot, walkers.WalkerBase):
        _quicken_walker(robot, walkers.Humanoid.apply_action, client, pybullet.TORQUE_CONTROL)


def _quicken_walker(robot: Any, one_by_one: Any, client: Any, mode: int) -> None:
    """Let a walker read and act with fewer calls. `one_by_one` is how the Humanoid applies its actions."""
    for part in robot.parts.values():
        part.bp_pose.xyz = _position(part, client)
    if getattr(robot.apply_action, "__func__", None) is one_by_one:
        robot.apply_action = _applying_all(robot, client, mode)


def _position(part: Any, client: Any) -> _Call:
    """What reads the position of a part of a robot: three numbers, and no array of its whole pose."""
    body, index = part.bodies[part.bodyIndex], part.bodyPartIndex
    if index == -1:
        return lambda: client.getBasePositionAndOrientation(body)[0]
    return lambda: client.getLinkState(body, index)[0]


def _applying_all(robot: Any, client: Any, mode: int) -> _Call:
    """What sends the Humanoid's torques in one call, rounded as one by one."""
    one_by_one = robot.apply_action
    body, joints = robot.motors[0].bodies[robot.motors[0].bodyIndex], [motor.jointIndex for motor in robot.motors]
    gains = [power * robot.power for power in robot.motor_power]

    def applying(action: Any) -> None:
        if action.dtype.kind != "f" or not np.isfinite(action).all():
            one_by_one(action)  # which says what is wrong
            return
        torques = np.array(gains, action.dtype) * np.clip(action, -1, 1)
        client.setJointMotorControlArray(body, joints, mode, forces=torques.tolist())

    return applying


def _forgetting(call: _Call, memory: dict[Any, Any]) -> _Call:
    def forgetting(*arguments: Any, **options: Any) -> Any:
        memory.clear()
        return call(*arguments, **options)

    return forgetting


def _remembering(call: _Call, memory: dict[Any, Any]) -> _Call:
    def remembering(*arguments: Any, **options: Any) -> Any:
        key = (call, arguments, *options.items())
        if key not in memory:
            memory[key] = call(*arguments, **options)
        return memory[key]

    return remembering


def _reading_all(single: _Call, bulk: _Call, count: _Call, memory: dict[Any, Any], error: type[Exception]) -> _Call:
    def reading(*arguments: Any, **options: Any) -> Any:
        if len(arguments) != 2 or options.keys() - _PURE_OPTIONS:
            memory.clear()  # computeForwardKinematics moves the links
            return single(*arguments, **options)
        body, index = arguments
        key = (single, body, *options.items())
        if key not in memory:
            try:
                memory[key] = bulk(body, range(count(body)), **options)
            except error:  # one of them cannot be read; the call for that one will say so
                memory[key] = ()
        states = memory[key]
        return states[index] if 0 <= index < len(states) else single(*arguments, **options)

    return reading
