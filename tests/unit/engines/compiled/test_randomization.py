"""Domain randomization: each episode's model comes from its own seed, whatever ran before or beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clipup.engines import Rollout, Task, make_engine
from clipup.policies import Network
from tests.environments.compiled_slider import Options, slider

COUNT = 12


def randomize(random: Any, model: Any, options: Any) -> None:
    model.body_mass[1] *= random.uniform(0.5, 2.0)
    model.dof_damping[0] = abs(random.normal(0.0, 0.5))
    model.opt.gravity[0] = 0.1 * random.random()


ROBOT = slider(randomize=randomize, options=Options(counts_mass=True))


def fitness(threads: int, ranges: list[tuple[int, int]], task: Task) -> Any:
    network = Network(2, 1)
    parameters = np.random.default_rng(1).normal(size=(COUNT, network.parameter_count)).astype(np.float32)
    engine = make_engine(task, threads=threads)
    parts = [
        engine.evaluate(Rollout(network, parameters[start:stop], seed=3, generation=2, first=start))
        for start, stop in ranges
    ]
    engine.close()
    return np.concatenate([part.fitness for part in parts])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("cut", [COUNT, 5, 1])
def test_the_same_bits_for_any_threads_and_any_chunks(threads: int, cut: int) -> None:
    task = Task(ROBOT, episodes=2)
    expected = fitness(1, [(0, COUNT)], task)
    ranges = [(start, min(start + cut, COUNT)) for start in range(0, COUNT, cut)]
    assert np.isfinite(expected).all()
    assert fitness(threads, ranges, task).tobytes() == expected.tobytes()


def test_a_candidate_has_another_model_in_another_episode_and_the_loaded_one_without_randomize() -> None:
    same = Task(slider(randomize=None))
    assert fitness(1, [(0, COUNT)], Task(ROBOT)).tobytes() != fitness(1, [(0, COUNT)], same).tobytes()


def test_plain_python_randomizes_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(ROBOT, episodes=2)
    expected = fitness(2, [(0, COUNT)], task)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert fitness(1, [(0, COUNT)], task).tobytes() == expected.tobytes()
