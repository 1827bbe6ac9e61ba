"""A fault stays with its candidate, and an interruption is answered at once."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clipup.engines.compiled.engine import CompiledEngine
from clipup.engines.rollout import Rollout
from clipup.engines.task import Task
from clipup.policies.feedforward import Network
from tests.environments import compiled_slider
from tests.environments.compiled_slider import random_walk, slider

NETWORK = Network(2, 1)


def actions(*values: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return candidates whose action is always that number."""
    parameters = np.zeros((len(values), NETWORK.parameter_count), np.float32)
    parameters[:, 2] = values
    return parameters


def evaluate(parameters: Any, threads: int = 2) -> Any:
    engine = CompiledEngine(Task("own"), slider(), threads=threads, reason="asked for")
    return engine.evaluate(Rollout(NETWORK, parameters, seed=1, generation=0, first=10, collect_moments=True))


@pytest.mark.parametrize("threads", [1, 2])
def test_errors_of_mujoco_are_failures_of_their_candidates(threads: int) -> None:
    values = [0.5] * 60
    values[::3] = [compiled_slider.ENDS_IN_MUJOCO] * 20  # more than there are spare slots
    outcomes = evaluate(actions(*values), threads)
    assert [failure.index for failure in outcomes.failures] == list(range(10, 70, 3))
    assert all("MuJoCo: mj_kinematics1: unknown joint type 99" in failure.message for failure in outcomes.failures)
    assert np.isnan(outcomes.fitness[::3]).all() and not outcomes.moments.count[::3].any()
    sound = evaluate(actions(*[0.5] * 60), threads)
    keep = np.arange(60) % 3 > 0
    np.testing.assert_array_equal(outcomes.fitness[keep], sound.fitness[keep])


@pytest.mark.parametrize("value", [compiled_slider.DIVERGES, compiled_slider.TURNS_NAN, np.inf])
def test_a_warning_of_mujoco_ends_the_candidate_with_nan(value: float, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    outcomes = evaluate(actions(0.5, value, 0.5))
    assert np.isnan(outcomes.fitness).tolist() == [False, True, False]
    assert outcomes.interactions.tolist() == [20, 1, 20]
    assert outcomes.moments.count.tolist() == [20, 0, 20]
    assert not outcomes.failures
    assert not list(tmp_path.iterdir()), "MuJoCo wrote its log"


def test_an_action_that_is_nan_takes_no_step() -> None:
    outcomes = evaluate(actions(0.5, np.nan))
    assert outcomes.interactions.tolist() == [20, 0] and np.isnan(outcomes.fitness[1]) and not outcomes.failures


def test_an_exception_of_a_function_is_a_failure() -> None:
    outcomes = evaluate(actions(compiled_slider.RAISES, 0.5))
    assert [failure.index for failure in outcomes.failures] == [10]
    assert "a function of slider raised an exception" in outcomes.failures[0].message
    assert np.isnan(outcomes.fitness).tolist() == [True, False]


def rare_failure(generator: np.random.Generator, model: Any, options: Any) -> Any:
    if generator.uniform() < 0.2:
        raise RuntimeError("no place to start")
    return np.zeros(1), np.zeros(1)


def test_a_start_that_fails_is_a_failure_of_its_candidate() -> None:
    # Seed 0, with which a task is tried, starts.
    engine = CompiledEngine(Task("own"), slider(start=rare_failure), threads=2, reason="asked for")
    outcomes = engine.evaluate(Rollout(NETWORK, actions(*[0.5] * 50), seed=1, generation=0))
    assert 0 < len(outcomes.failures) < 25
    assert all("RuntimeError: no place to start" in failure.message for failure in outcomes.failures)
    assert np.flatnonzero(np.isnan(outcomes.fitness)).tolist() == [failure.index for failure in outcomes.failures]


def not_finite(state: Any, action: Any, random: Any, options: Any) -> tuple[float, bool]:
    state[1] += 1.0
    return (np.inf if state[1] > 5.0 else 1.0), False


def stays(state: Any, action: Any, random: Any, options: Any) -> tuple[float, bool]:
    return 1.0, False


def vanishes(state: Any, options: Any, observation: Any) -> None:
    observation[0] = state[0]
    observation[1] = np.nan if state[1] > 5.0 else state[1]


def test_rewards_and_observations_that_are_not_finite_make_the_fitness_nan() -> None:
    for changes in ({"step": not_finite}, {"step": not_finite, "observe": vanishes}):
        engine = CompiledEngine(Task("own"), random_walk(**changes), threads=1, reason="asked for")
        outcomes = engine.evaluate(Rollout(NETWORK, actions(0.0), seed=1, generation=0, collect_moments=True))
        assert np.isnan(outcomes.fitness).all() and not outcomes.failures
        assert outcomes.moments is not None and not outcomes.moments.count.any()
        # Gymnasium's engine goes on after such a reward, and stops at such an observation.
        assert (outcomes.interactions == 50).all() == ("observe" not in changes)


@pytest.mark.parametrize("kind", ["mujoco", "array"])
def test_an_interruption_is_answered_within_a_second(kind: str) -> None:
    limit = 2**40
    endless = slider(max_episode_steps=limit) if kind == "mujoco" else random_walk(step=stays, max_episode_steps=limit)
    engine = CompiledEngine(Task("own"), endless, threads=2, reason="asked for")
    network = NETWORK
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        engine.evaluate(Rollout(network, actions(0.0, 0.0, 0.0), seed=1, generation=0))
    assert time.monotonic() - began < 1.5
    short = CompiledEngine(Task("own", max_episode_steps=5), endless, threads=2, reason="asked for")
    assert short.evaluate(Rollout(network, actions(0.0), seed=1, generation=0)).interactions.tolist() == [5]
