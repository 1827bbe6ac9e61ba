"""MuJoCo's own threads, without its clock."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from clipup.engines.compiled.mujoco_batch import Untimed
from clipup.engines.compiled.mujoco_world import library, mujoco
from clipup.engines.rollout import Rollout
from clipup.engines.task import Task
from clipup.policies.feedforward import Network
from tests.unit.engines.compiled.test_engine import engine_of


def timed_step() -> float:
    """Return how long a step of physics says that it took."""
    model = mujoco().MjModel.from_xml_string(
        "<mujoco><worldbody><body><freejoint/><geom size='1'/></body></worldbody></mujoco>"
    )
    data = mujoco().MjData(model)
    mujoco().mj_step(model, data)
    return float(data.timer[int(mujoco().mjtTimer.mjTIMER_STEP)].duration)


@pytest.fixture
def clock() -> Iterator[list[int]]:
    """Give MuJoCo a clock that counts how often it is asked."""
    asked, numbers = [0], itertools.count()
    address = ctypes.c_void_p.in_dll(library(), "mjcb_time")
    before = address.value

    def now() -> float:
        asked[0] += 1
        return float(next(numbers))

    mujoco().set_mjcb_time(now)
    yield asked
    mujoco().set_mjcb_time(None)
    address.value = before


def test_a_run_never_asks_for_the_time_and_leaves_the_clock_as_it_was(clock: list[int]) -> None:
    engine = engine_of(Task("Hopper-v5", max_episode_steps=20))
    network = Network(engine.observation_size, engine.actions.size)
    clock[0] = 0
    engine.evaluate(Rollout(network, np.zeros((4, network.parameter_count), np.float32), seed=1, generation=0))
    engine.close()
    assert clock[0] == 0
    assert timed_step() > 0
    assert clock[0] > 0


def test_the_clock_comes_back_with_the_last_of_several_runs(clock: list[int]) -> None:
    with Untimed(library()):
        with Untimed(library()):
            assert timed_step() == 0
        assert timed_step() == 0
    assert timed_step() > 0


def test_the_clock_comes_back_after_an_error(clock: list[int]) -> None:
    with pytest.raises(ZeroDivisionError), Untimed(library()):
        raise ZeroDivisionError
    assert timed_step() > 0
