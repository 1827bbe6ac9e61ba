"""Where the time of a generation on the compiled engine goes, apart from physics.

    python benchmarks/compiled_profile.py [--generations N]

Humanoid-v4, a linear policy, 200 candidates, first generations, all processors. Measured are the seconds of each part
of a generation on the clock. Apart from that: how long a step of the policy takes (normalizer and network, in machine
code, on rows of observations).
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from clipup import PGPE
from clipup.engines import Rollout, Task, make_engine
from clipup.policies import Network, Normalizer
from clipup.policies.compiled import Forward

RESULT = Path(__file__).parent / "results" / "compiled_profile.json"
T = TypeVar("T")
ROWS = 64


def main() -> None:
    """Measure, print and store what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generations", type=int, default=20)
    arguments = parser.parse_args()
    engine = make_engine(Task("Humanoid-v4", reward_offset=-5.0, engine="compiled"))
    network = Network.parse("linear-bias", engine.observation_size, engine.actions.size)
    search = PGPE(dimension=network.parameter_count, population_size=200, max_speed=0.15, seed=1)
    normalizer = Normalizer(engine.observation_size)
    seconds: dict[str, float] = {}
    steps = 0

    def timed(name: str, call: Callable[[], T]) -> T:
        begun = time.perf_counter()
        result = call()
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - begun
        return result

    for generation in range(arguments.generations + 1):
        if generation == 1:  # the first one warms up
            seconds, steps = {}, 0
        candidates = timed("ask", search.ask)
        statistics = timed("statistics", normalizer.statistics)
        rollout = Rollout(
            network, candidates, seed=1, generation=generation, statistics=statistics, collect_moments=True
        )
        outcomes = timed("evaluate", lambda rollout=rollout: engine.evaluate(rollout))
        if outcomes.moments is not None:
            timed("merge the moments", lambda moments=outcomes.moments: normalizer.merge(moments))
        timed("tell", lambda fitness=outcomes.fitness: search.tell(fitness))
        steps += int(outcomes.interactions.sum())
    engine.close()
    whole = sum(seconds.values())
    forward = Forward(network, normalizer.statistics(), compiled=True)
    random = np.random.default_rng(1)
    parameters = forward.arrange(random.standard_normal((ROWS, network.parameter_count), dtype=np.float32))
    observations = random.standard_normal((ROWS, network.observation_size))
    forward(parameters, observations)
    begun = time.perf_counter()
    for _ in range(200):
        forward(parameters, observations)
    act = (time.perf_counter() - begun) / (200 * ROWS)
    threads = len(os.sched_getaffinity(0))
    result = {
        "command": "python benchmarks/compiled_profile.py",
        "shares of a generation": {name: round(value / whole, 5) for name, value in seconds.items()},
        "microseconds of a step on one thread": round(1e6 * threads * whole / steps, 1),
        "microseconds of a policy's step": round(1e6 * act, 2),
        "steps": steps,
        "processors": threads,
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
