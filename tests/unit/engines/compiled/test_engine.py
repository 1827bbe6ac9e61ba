"""Whole episodes in machine code give what Gymnasium and plain Python give, to the bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clipup.engines.compiled import tasks
from clipup.engines.compiled.engine import CompiledEngine
from clipup.engines.gymnasium.environment import make_ready
from clipup.engines.gymnasium.spaces import actions_of
from clipup.engines.rollout import Rollout
from clipup.engines.seeding import seed_indices, seed_words, uint32
from clipup.engines.task import Task
from clipup.policies.compiled import Forward, observe_rows
from clipup.policies.feedforward import Network
from clipup.policies.normalizer import Statistics
from tests.environments.compiled_slider import random_walk, slider


def engine_of(task: Task, compiled: Any = None, threads: int = 2) -> CompiledEngine:
    compiled = compiled or tasks.task(str(task.env), task.env_options)
    return CompiledEngine(task, compiled, threads=threads, reason="asked for")


def candidates(network: Network, count: int, scale: float = 0.1) -> np.ndarray[Any, np.dtype[np.float32]]:
    return (np.random.default_rng(3).normal(size=(count, network.parameter_count)) * scale).astype(np.float32)


def statistics_of(size: int) -> Statistics:
    generator = np.random.default_rng(4)
    return Statistics(generator.normal(size=size) * 0.1, generator.uniform(0.5, 2.0, size))


def in_gymnasium(task: Task, network: Network, parameters: Any, statistics: Statistics, first: int) -> list[Any]:
    """Each candidate's summed reward, steps and moments, in Gymnasium's own environment with the library's one act."""
    environment = make_ready(task)
    actions = actions_of(task, environment.action_space)
    forward, convert = Forward(network, statistics), actions.apply
    arranged = forward.arrange(parameters)
    indices = seed_indices(np.arange(first, first + len(parameters)), task.episode_seeds)
    results = []
    for row in range(len(parameters)):
        total, steps, count = 0.0, 0, np.zeros((1, 1))
        mean, m2 = np.zeros((1, network.observation_size)), np.zeros((1, network.observation_size))
        for episode in range(task.episodes):
            words = seed_words(5, "candidate", epoch=3, stream="training", indices=indices, episode=episode)
            observation, _ = environment.reset(seed=uint32(words)[row])
            gained, over = 0.0, False
            while not over:
                count += 1
                observe_rows(observation[np.newaxis], count, mean, m2)
                action: Any = convert(forward(arranged[row : row + 1], observation[np.newaxis]))[0]
                action = int(action) if actions.kind == "discrete" else action
                observation, reward, terminated, truncated, _ = environment.step(action)
                gained += float(reward)
                steps += 1
                over = terminated or truncated
            total += gained
        results.append((total, steps, mean[0], m2[0]))
    environment.close()
    return results


@pytest.mark.parametrize("hidden", [(), (16,)], ids=["linear", "mlp"])
@pytest.mark.parametrize("name", ["Walker2d-v5", "CartPole-v1"])
def test_outcomes_equal_those_of_gymnasium_to_the_last_bit(name: str, hidden: tuple[int, ...]) -> None:
    task = Task(name, episodes=2, episode_seeds="pair", max_episode_steps=120, reward_offset=-0.5)
    engine = engine_of(task)
    network = Network(engine.observation_size, engine.actions.size, hidden)
    parameters, statistics = candidates(network, 6), statistics_of(engine.observation_size)
    outcomes = engine.evaluate(
        Rollout(network, parameters, seed=5, generation=3, first=2, statistics=statistics, collect_moments=True)
    )
    expected = in_gymnasium(task, network, parameters, statistics, first=2)
    assert outcomes.returns.tolist() == [total / 2 for total, *_ in expected]
    assert outcomes.fitness.tolist() == [(total - 0.5 * steps) / 2 for total, steps, *_ in expected]
    assert outcomes.interactions.tolist() == [steps for _, steps, *_ in expected]
    assert outcomes.moments is not None
    np.testing.assert_array_equal(outcomes.moments.count, outcomes.interactions)
    np.testing.assert_array_equal(outcomes.moments.mean, [mean for *_, mean, _ in expected])
    np.testing.assert_array_equal(outcomes.moments.m2, [m2 for *_, m2 in expected])


@pytest.mark.parametrize("make", [slider, random_walk])
def test_results_depend_on_neither_threads_nor_chunks_nor_order(make: Any) -> None:
    task = Task("own", episodes=2)
    network = Network(2, 1)
    parameters = candidates(network, 30)
    whole = engine_of(task, make(), threads=1).evaluate(Rollout(network, parameters, seed=1, generation=2))
    engine = engine_of(task, make(), threads=3)
    for first, stop in ((20, 30), (0, 7), (7, 20), (0, 7)):
        part = engine.evaluate(Rollout(network, parameters[first:stop], seed=1, generation=2, first=first))
        np.testing.assert_array_equal(part.fitness, whole.fitness[first:stop])
        np.testing.assert_array_equal(part.interactions, whole.interactions[first:stop])
    engine.close()
    np.testing.assert_array_equal(
        engine.evaluate(Rollout(network, parameters, seed=1, generation=2)).fitness, whole.fitness
    )


def test_candidates_share_starts_as_the_task_says() -> None:
    network = Network(2, 1)
    parameters = np.repeat(candidates(network, 1), 6, axis=0)
    fitness = {
        sharing: engine_of(Task("own", episode_seeds=sharing), slider())  # type: ignore[arg-type]
        .evaluate(Rollout(network, parameters, seed=1, generation=0))
        .fitness
        for sharing in ("independent", "pair", "shared")
    }
    assert len(set(fitness["independent"])) == 6
    assert len(set(fitness["pair"])) == 3 and (fitness["pair"][::2] == fitness["pair"][1::2]).all()
    assert len(set(fitness["shared"])) == 1


def test_a_stream_and_a_generation_have_starts_of_their_own() -> None:
    engine, network = engine_of(Task("own"), slider()), Network(2, 1)
    parameters = candidates(network, 4)
    one = engine.evaluate(Rollout(network, parameters, seed=1, generation=0)).fitness
    assert (one != engine.evaluate(Rollout(network, parameters, seed=1, generation=1)).fitness).all()
    assert (
        one != engine.evaluate(Rollout(network, parameters, seed=1, generation=0, stream="evaluation")).fitness
    ).all()


def test_no_candidates_give_no_outcomes() -> None:
    engine, network = engine_of(Task("own"), slider()), Network(2, 1)
    outcomes = engine.evaluate(Rollout(network, candidates(network, 0), seed=1, generation=0, collect_moments=True))
    assert len(outcomes) == 0 and outcomes.moments is not None and len(outcomes.moments.count) == 0


def test_an_option_changes_the_result_without_a_new_compilation() -> None:
    from tests.environments.compiled_slider import Options

    network = Network(2, 1)
    parameters = candidates(network, 3)
    light = engine_of(Task("own"), slider(options=Options(bonus=(0.0, 0.0), counts_mass=False)))
    heavy = engine_of(Task("own"), slider(options=Options(bonus=(0.0, 10.0), counts_mass=False)))
    difference = [
        engine.evaluate(Rollout(network, parameters, seed=1, generation=0)).fitness for engine in (light, heavy)
    ]
    np.testing.assert_allclose(difference[1] - difference[0], 200.0)
    assert light._simulators._code is heavy._simulators._code  # type: ignore[attr-defined]


def test_rescaled_actions_are_those_of_the_converter() -> None:
    task = Task("Pendulum-v1", rescale_actions=True, max_episode_steps=3)
    engine = engine_of(task)
    assert engine.actions.rescale
    network = Network(3, 1)
    parameters = candidates(network, 3, 1.0)
    statistics = statistics_of(3)
    outcomes = engine.evaluate(Rollout(network, parameters, seed=5, generation=3, statistics=statistics))
    expected = in_gymnasium(task, network, parameters, statistics, first=0)
    np.testing.assert_allclose(outcomes.returns, [total for total, *_ in expected], rtol=0, atol=1e-11)


PLAIN = """
import json, sys, numpy as np
from clipup.engines.rollout import Rollout
from clipup.engines.compiled.engine import CompiledEngine
from clipup.engines.task import Task
from clipup.policies.feedforward import Network
from tests.environments.compiled_slider import random_walk, slider
network = Network(2, 1, (3,))
parameters = (np.random.default_rng(3).normal(size=(5, network.parameter_count)) * 0.1).astype(np.float32)
found = []
for make in (slider, random_walk):
    engine = CompiledEngine(Task("own", episodes=2), make(), threads=2, reason="asked for")
    outcomes = engine.evaluate(Rollout(network, parameters, seed=1, generation=0, collect_moments=True))
    found.append([outcomes.fitness.tolist(), outcomes.interactions.tolist(), outcomes.moments.m2.tolist()])
print(json.dumps([found, "numba" in sys.modules]))
"""


def test_plain_python_gives_the_same_bits_without_importing_numba() -> None:
    results = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", PLAIN],
                env=os.environ | {"NUMBA_DISABLE_JIT": flag, "PYTHONPATH": str(Path.cwd())},
                capture_output=True, text=True, check=True,
            ).stdout
        )
        for flag in ("0", "1")
    ]  # fmt: skip
    (machine, with_numba), (plain, without_numba) = results
    assert machine == plain
    assert with_numba and not without_numba
