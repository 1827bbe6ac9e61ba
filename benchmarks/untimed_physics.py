"""What MuJoCo's own timing costs: the same candidates with the clock of its Python package and without, by turns.

    python benchmarks/untimed_physics.py [--rounds N]

Random linear policies, whole evaluations of the compiled engine on one thread, in processor seconds, so that a busy
machine disturbs little. The results of both must be equal. Writes benchmarks/results/untimed_physics.json.
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
from clipup.engines.compiled import mujoco_batch
from clipup.engines.physics import parse_physics
from clipup.policies import Network
from clipup.runs.presets import preset_named

RESULT = Path(__file__).parent / "results" / "untimed_physics.json"
PRESET = "Humanoid-v4, physics of its preset"
TASKS: dict[str, tuple[Task, int]] = {
    "Humanoid-v4": (Task("Humanoid-v4", engine="compiled"), 8),
    PRESET: (
        Task("Humanoid-v4", engine="compiled", physics=parse_physics(str(preset_named("humanoid").values["physics"]))),
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


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    arguments = parser.parse_args()
    untimed: Any = mujoco_batch.Untimed
    rows: dict[str, Any] = {}
    for name, (task, candidates) in TASKS.items():
        engine = make_engine(task, threads=1)
        evaluated(engine, candidates)
        ratios: list[float] = []
        for _ in range(arguments.rounds):
            mujoco_batch.Untimed = nullcontext  # type: ignore[misc,assignment]
            with_clock, expected = evaluated(engine, candidates)
            mujoco_batch.Untimed = untimed
            without, found = evaluated(engine, candidates)
            assert found == expected
            ratios.append(with_clock / without)
        low, median, high = statistics.quantiles(ratios, n=4)
        rows[name] = {"speed_ratio": round(median, 3), "middle_half": [round(low, 3), round(high, 3)]}
        print(f"{name}: {median:.2f} times the steps ({low:.2f} to {high:.2f})", flush=True)
        engine.close()
    result = {
        "command": "python benchmarks/untimed_physics.py",
        "rounds": arguments.rounds,
        "tasks": rows,
        "versions": {name: version(name) for name in ("clipup", "mujoco", "numba", "numpy")},
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} processors",
    }
    RESULT.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
