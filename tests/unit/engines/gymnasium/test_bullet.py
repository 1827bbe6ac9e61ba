"""The quickened client of Bullet's environments: the same bits, nothing out of date, nobody else touched."""

from __future__ import annotations

import gc
from typing import Any

import gymnasium
import numpy as np
import pybullet
import pytest
from pybullet_utils.bullet_client import BulletClient

from clipup.engines import Rollout, Task, make_engine
from clipup.engines.gymnasium.bullet import quicken
from clipup.engines.gymnasium.environment import make_environment, make_ready
from clipup.policies import Network

MODULE = "pybullet_envs_gymnasium"
NAMES = [
    "AntBulletEnv-v0",
    "HalfCheetahBulletEnv-v0",
    "HopperBulletEnv-v0",
    "HumanoidBulletEnv-v0",
    "HumanoidFlagrunBulletEnv-v0",
    "InvertedDoublePendulumBulletEnv-v0",
    "PusherBulletEnv-v0",
    "ReacherBulletEnv-v0",
    "ThrowerBulletEnv-v0",
    "Walker2DBulletEnv-v0",
]
"""Without HumanoidFlagrunHarderBulletEnv-v0, which differs from itself now and then, quickened or not."""


def made(name: str, *, quick: bool) -> Any:
    environment = make_environment(Task(f"{MODULE}:{name}"))
    environment.reset(seed=0)
    if quick:
        quicken(environment)
    return environment


def episodes(environment: Any) -> list[object]:
    """What two short episodes of random actions look like from outside."""
    generator = np.random.default_rng(1)
    seen: list[object] = []
    for seed in range(2):
        seen.append(environment.reset(seed=seed)[0].tobytes())
        ended = False
        for _ in range(40):
            if not ended:
                action = generator.uniform(-1, 1, environment.action_space.shape).astype(np.float32)
                observation, reward, terminated, truncated, _ = environment.step(action)
                seen.append((observation.tobytes(), float(reward), list(environment.unwrapped.rewards)))
                ended = terminated or truncated
    environment.close()
    return seen


@pytest.mark.parametrize("name", NAMES)
def test_episodes_are_the_same_to_the_last_bit(name: str) -> None:
    assert episodes(made(name, quick=True)) == episodes(made(name, quick=False))


@pytest.fixture
def humanoid() -> Any:
    environment = made("HumanoidBulletEnv-v0", quick=True)
    yield environment
    environment.close()


def test_every_joint_and_link_reads_as_if_asked_for_alone(humanoid: Any) -> None:
    client = humanoid.unwrapped._p
    body, number = humanoid.unwrapped.robot.objects[0], client._client
    for index in range(client.getNumJoints(body)):
        for options in ({}, {"computeLinkVelocity": 1}):
            alone = pybullet.getLinkState(body, index, physicsClientId=number, **options)
            assert client.getLinkState(body, index, **options) == alone
        assert client.getJointState(body, index) == pybullet.getJointState(body, index, physicsClientId=number)


def test_nothing_read_is_out_of_date_after_a_change(humanoid: Any) -> None:
    client = humanoid.unwrapped._p
    robot = humanoid.unwrapped.robot
    body, joint = robot.objects[0], robot.ordered_joints[0].jointIndex
    position, link = client.getBasePositionAndOrientation(body), client.getLinkState(body, 5)
    assert client.getJointState(body, joint)[0] != 0.25
    client.resetJointState(body, joint, 0.25, 0.0)
    assert client.getJointState(body, joint)[0] == 0.25
    client.resetBasePositionAndOrientation(body, (0.0, 0.0, 3.0), (0.0, 0.0, 0.0, 1.0))
    client.stepSimulation()
    assert client.getLinkState(body, 5) != link
    assert client.getBasePositionAndOrientation(body) != position


def test_a_question_that_moves_the_links_is_no_mere_question(humanoid: Any) -> None:
    plain = made("HumanoidBulletEnv-v0", quick=False)
    seen: list[object] = []
    for environment in (humanoid, plain):
        client, body = environment.unwrapped._p, environment.unwrapped.robot.objects[0]
        environment.reset(seed=3)
        client.resetBaseVelocity(body, (1.0, 2.0, 3.0), (3.0, 2.0, 1.0))
        client.stepSimulation()
        options = ({}, {"computeForwardKinematics": 1}, {}, {"computeLinkVelocity": 1})
        seen.append([client.getLinkState(body, 5, **option) for option in options])
    plain.close()
    assert seen[0] == seen[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_torques_sent_together_round_as_one_by_one(dtype: type[np.generic], humanoid: Any) -> None:
    plain = made("HumanoidBulletEnv-v0", quick=False)
    actions = (np.random.default_rng(2).uniform(-2, 2, (20, 17))).astype(dtype)
    seen: list[object] = []
    for environment in (humanoid, plain):
        environment.reset(seed=4)
        seen.append([environment.unwrapped.step(action)[0].tobytes() for action in actions])
    plain.close()
    assert seen[0] == seen[1]


def test_a_torque_that_is_no_number_is_refused_as_ever(humanoid: Any) -> None:
    with pytest.raises(AssertionError):
        humanoid.unwrapped.step(np.full(17, np.nan, np.float32))


def test_a_link_below_the_first_is_refused_as_ever(humanoid: Any) -> None:
    client = humanoid.unwrapped._p
    body = humanoid.unwrapped.robot.objects[0]
    client.getLinkState(body, 0)
    with pytest.raises(pybullet.error):
        client.getLinkState(body, -1)


def test_arguments_by_name_are_understood(humanoid: Any) -> None:
    client = humanoid.unwrapped._p
    body = humanoid.unwrapped.robot.objects[0]
    assert client.getJointState(bodyUniqueId=body, jointIndex=2) == client.getJointState(body, 2)


def test_a_client_is_let_go_with_its_environment() -> None:
    environment = make_ready(Task(f"{MODULE}:HopperBulletEnv-v0"))
    number = environment.unwrapped._p._client
    assert pybullet.isConnected(number)
    environment.close()
    del environment
    gc.collect()
    assert not pybullet.isConnected(number)


def test_environments_without_bullet_are_left_alone() -> None:
    environment = gymnasium.make("CartPole-v1")
    before = dict(vars(environment.unwrapped))
    quicken(environment)
    assert vars(environment.unwrapped).keys() == before.keys()
    environment.close()


class Fall(gymnasium.Env[Any, Any]):
    """A ball that falls, moved past the client that it is looked at through."""

    observation_space = gymnasium.spaces.Box(-10, 10, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self) -> None:
        self._p = BulletClient(connection_mode=pybullet.DIRECT)
        self._p.setGravity(0, 0, -10)
        self._ball = self._p.createMultiBody(1.0, self._p.createCollisionShape(pybullet.GEOM_SPHERE, radius=0.1))

    def _height(self) -> float:
        return float(self._p.getBasePositionAndOrientation(self._ball)[0][2])

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[Any, dict[str, object]]:
        pybullet.resetBasePositionAndOrientation(self._ball, (0, 0, 5), (0, 0, 0, 1), physicsClientId=self._p._client)
        return np.array([self._height()], np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, object]]:
        pybullet.stepSimulation(physicsClientId=self._p._client)
        return np.array([self._height()], np.float32), self._height(), False, False, {}


def test_an_environment_that_goes_past_its_client_is_left_alone() -> None:
    engine = make_engine(Task(Fall, max_episode_steps=50))
    outcomes = engine.evaluate(Rollout(Network(1, 1), np.zeros((1, 2), np.float32), seed=0, generation=0))
    engine.close()
    assert outcomes.fitness[0] < 50 * 5.0 - 1.0
