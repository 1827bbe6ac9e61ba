"""Whether memory grows while training goes on.

    python benchmarks/rollout_memory.py [--generations N]

Runs generations of LunarLanderContinuous-v3 (population 200, the paper's settings) and records the resident memory of
the process after each. EnvPool makes new environments for every generation, so that a leak of any kind would show.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import os
import platform
import subprocess
import threading
from pathlib import Path

import numpy as np

from clipup import PGPE
from clipup.engines import Rollout, Task, make_engine
from clipup.policies import Network

HERE = Path(__file__).parent
RESULT = HERE / "results" / "rollout_memory.json"


def resident_megabytes() -> float:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    """Run the generations, print and store what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generations", type=int, default=200)
    parser.add_argument("--max-episode-steps", type=int, default=None)
    parser.add_argument("--output", type=Path, default=RESULT)
    arguments = parser.parse_args()
    task = Task("LunarLanderContinuous-v3", max_episode_steps=arguments.max_episode_steps)
    engine = make_engine(task, lanes=200)
    network = Network(engine.observation_size, engine.actions.size, bias=False)
    search = PGPE(dimension=network.parameter_count, population_size=200, max_speed=0.3, seed=1)
    memory: list[float] = []
    steps = 0
    for generation in range(arguments.generations):
        outcomes = engine.evaluate(Rollout(network, search.ask(), seed=1, generation=generation, collect_moments=True))
        search.tell(outcomes.fitness)
        steps += int(outcomes.interactions.sum())
        gc.collect()
        memory.append(resident_megabytes())
    engine.close()
    half = len(memory) // 2
    slope = float(np.polyfit(np.arange(half), memory[half:][:half], 1)[0]) if half > 1 else 0.0
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True, cwd=HERE)
    found = {
        "generations": arguments.generations,
        "max episode steps": arguments.max_episode_steps,
        "interactions": steps,
        "megabytes after generation 1": memory[0],
        "megabytes after the first tenth": memory[len(memory) // 10],
        "megabytes at the end": memory[-1],
        "megabytes per generation, second half": slope,
        "threads at the end": threading.active_count(),
        "versions": {
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in ("numpy", "envpool")},
        },
        "commit": commit.stdout.strip(),
        "memory": [round(value, 2) for value in memory],
    }
    print({key: value for key, value in found.items() if key != "memory"})
    arguments.output.parent.mkdir(exist_ok=True)
    arguments.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
