"""What quickening PyBullet's client gives: steps of Bullet's Humanoid with and without it, and the physics alone.

    python benchmarks/bullet_client.py [--rounds N]

The same episodes of random actions, by turns; processor seconds of `step`, so that a busy machine disturbs little.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

from clipup.engines import Task
from clipup.engines.gymnasium.bullet import quicken
from clipup.engines.gymnasium.environment import make_environment

HERE = Path(__file__).parent
RESULT = HERE / "results" / "bullet_client.json"
ENV = "pybullet_envs_gymnasium:HumanoidBulletEnv-v0"
STEPS = 1000


def made(*, quick: bool) -> Any:
    """Return the environment, reset once."""
    environment = make_environment(Task(ENV))
    environment.reset(seed=0)
    if quick:
        quicken(environment)
    return environment


def seconds_of_a_step(environment: Any, seed: int) -> tuple[float, float]:
    """Return processor seconds of a whole step, and of the physics in it."""
    generator = np.random.default_rng(seed)
    world = environment.unwrapped.scene.cpp_world
    simulate, physics = world.step, 0.0

    def timed(frame_skip: int) -> None:
        nonlocal physics
        began = time.process_time()
        simulate(frame_skip)
        physics += time.process_time() - began

    world.step = timed
    whole = 0.0
    environment.reset(seed=seed)
    for _ in range(STEPS):
        action = generator.uniform(-1, 1, environment.action_space.shape).astype(np.float32)
        began = time.process_time()
        _, _, terminated, truncated, _ = environment.step(action)
        whole += time.process_time() - began
        if terminated or truncated:
            environment.reset()
    world.step = simulate
    return whole / STEPS, physics / STEPS


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--output", type=Path, default=RESULT)
    arguments = parser.parse_args()
    plain, quick = made(quick=False), made(quick=True)
    rows = [(seconds_of_a_step(plain, seed), seconds_of_a_step(quick, seed)) for seed in range(arguments.rounds)]
    ratios = [before[0] / after[0] for before, after in rows]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True, cwd=HERE)
    found = {
        "question": "how much faster is a step of Bullet's Humanoid with the quickened client?",
        "command": "python benchmarks/bullet_client.py",
        "microseconds of a step": {
            "plain": 1e6 * statistics.median(before[0] for before, _ in rows),
            "quickened": 1e6 * statistics.median(after[0] for _, after in rows),
            "the physics in it": 1e6 * statistics.median(after[1] for _, after in rows),
        },
        "plain over quickened": statistics.median(ratios),
        "rounds": sorted(round(ratio, 3) for ratio in ratios),
        "versions": {name: importlib.metadata.version(name) for name in ("pybullet", "pybullet-envs-gymnasium")},
        "python": platform.python_version(),
        "commit": commit.stdout.strip(),
    }
    arguments.output.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
