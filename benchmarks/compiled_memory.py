"""Peak memory of one evaluation on the compiled engine and on EnvPool, for growing populations.

    python benchmarks/compiled_memory.py

Each figure comes from a process of its own: Walker2d-v4, a linear policy, episodes of at most 5 steps, two threads.
Of a candidate the compiled engine keeps parameters, moments and results, here about a kilobyte. EnvPool keeps a
simulator for each of up to 256 lanes.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
from pathlib import Path

POPULATIONS = (100, 1_000, 10_000)
ENGINES = ("compiled", "envpool")
RESULT = Path(__file__).parent / "results" / "compiled_memory.json"


def peak_megabytes(engine: str, population: int) -> float:
    """Evaluate one population and return the most memory that this process ever had."""
    from clipup import PGPE
    from clipup.engines import Rollout, Task, make_engine
    from clipup.policies import Network

    task = Task("Walker2d-v4", engine=engine, max_episode_steps=5)
    made = make_engine(task, lanes=256, threads=2)
    network = Network.parse("linear-bias", made.observation_size, made.actions.size)
    search = PGPE(dimension=network.parameter_count, population_size=population, max_speed=0.015, seed=1)
    made.evaluate(Rollout(network, search.ask(), seed=1, generation=0, collect_moments=True))
    made.close()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure every engine and population in a process of its own, print and store what was found."""
    if len(sys.argv) == 3:
        print(peak_megabytes(sys.argv[1], int(sys.argv[2])))
        return
    found = {
        engine: {
            str(population): round(
                float(
                    subprocess.run(
                        [sys.executable, __file__, engine, str(population)], capture_output=True, text=True, check=True
                    ).stdout.splitlines()[-1]
                ),
                1,
            )
            for population in POPULATIONS
        }
        for engine in ENGINES
    }
    result = {
        "command": "python benchmarks/compiled_memory.py",
        "peak megabytes by population": found,
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} processors",
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
