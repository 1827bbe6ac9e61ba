"""What is left out of MuJoCo's steps, and what it would cost: its timing of itself, and the search for islands.

    python benchmarks/physics_overhead.py [--rounds N]

The same candidates run on the engine as it is, with MuJoCo's clock, and with islands, by turns. Random linear policies,
whole evaluations of the compiled engine on one thread, in processor seconds, so that a busy machine disturbs little.
All results must be equal. Writes benchmarks/results/physics_overhead.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from clipup.engines import Engine, Rollout, Task, make_engine
from clipup.engines.compiled import mujoco_batch, mujoco_world
from clipup.engines.physics import parse_physics
from clipup.policies import Network

RESULT = Path(__file__).parent / "results" / "physics_overhead.json"
EULER = "Humanoid-v4, Euler's method"
TASKS: dict[str, tuple[Task, int]] = {
    "Humanoid-v4": (Task("Humanoid-v4", engine="compiled"), 8),
    EULER: (
        Task(
            "Humanoid-v4", engine="compiled", physics=parse_physics("integrator=Euler, iterations=10, timestep=0.00375")
        ),
        40,
    ),
    "Ant-v5": (Task("Ant-v5", engine="compiled"), 8),
    "Walker2d-v5": (Task("Walker2d-v5", engine="compiled"), 60),
    "HalfCheetah-v5": (Task("HalfCheetah-v5", engine="compiled"), 2),
    "Hopper-v5": (Task("Hopper-v5", engine="compiled"), 100),
    "Swimmer-v5": (Task("Swimmer-v5", engine="compiled"), 2),
}
"""The tasks, and how many candidates run in one turn."""


def evaluated(engine: Engine, candidates: int) -> tuple[float, list[float]]:
    """Return the processor seconds of an evaluation, and the fitnesses."""
    network = Network.parse("linear-bias", engine.observation_size, engine.actions.size)
    generator = np.random.default_rng(0)
    parameters = generator.normal(0, 0.01, (candidates, network.parameter_count)).astype(np.float32)
    began = time.process_time()
    found = engine.evaluate(Rollout(network, parameters, seed=1, generation=0))
    return time.process_time() - began, found.fitness.tolist()


def summary(ratios: list[float]) -> dict[str, Any]:
    """Return how many times the steps it brings to leave something out: the median and the middle half."""
    low, median, high = statistics.quantiles(ratios, n=4)
    return {"speed_ratio": round(median, 3), "middle_half": [round(low, 3), round(high, 3)]}


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    arguments = parser.parse_args()
    untimed: Any = mujoco_batch.Untimed
    without_islands: Any = mujoco_world.without_islands
    rows: dict[str, Any] = {}
    for name, (task, candidates) in TASKS.items():
        engine = make_engine(task, threads=1)
        mujoco_world.without_islands = lambda model: model
        with_islands = make_engine(task, threads=1)
        mujoco_world.without_islands = without_islands
        ratios: dict[str, list[float]] = {"clock": [], "islands": [], "both": []}
        for i in range(arguments.rounds + 1):
            lean, expected = evaluated(engine, candidates)
            islands, found = evaluated(with_islands, candidates)
            mujoco_batch.Untimed = nullcontext  # type: ignore[misc,assignment]
            clock, also_found = evaluated(engine, candidates)
            both, found_with_both = evaluated(with_islands, candidates)
            mujoco_batch.Untimed = untimed
            assert found == also_found == found_with_both == expected
            if i > 0:  # the first turn warms the caches
                ratios["clock"].append(clock / lean)
                ratios["islands"].append(islands / lean)
                ratios["both"].append(both / lean)
        rows[name] = {what: summary(found) for what, found in ratios.items()}
        print(name, rows[name], flush=True)
        engine.close()
        with_islands.close()
    result = {
        "command": "python benchmarks/physics_overhead.py",
        "rounds": arguments.rounds,
        "tasks": rows,
        "versions": {name: version(name) for name in ("clipup", "mujoco", "numba", "numpy")},
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} processors",
    }
    RESULT.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
