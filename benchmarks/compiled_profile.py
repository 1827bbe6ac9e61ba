"""Where the time of a generation on the compiled engine goes, apart from physics.

    python benchmarks/compiled_profile.py [--generations N]

Humanoid-v4 (200 candidates) and Pendulum-v1 (the same), a linear policy, first generations, all processors. Measured
are the seconds of each part of a generation on the clock. Apart from that: how long a step of the Humanoid's policy
takes (normalizer and network, in machine code, on rows of observations).
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
from clipup.policies.normalizer import Moments

RESULT = Path(__file__).parent / "results" / "compiled_profile.json"
T = TypeVar("T")
ROWS = 64
THREADS = len(os.sched_getaffinity(0))


def profile(env: str, policy: str, max_speed: float, *, normalize: bool, generations: int) -> dict[str, object]:
    """Return the shares of a generation's parts, and the time of a step."""
    engine = make_engine(Task(env, engine="compiled"))
    network = Network.parse(policy, engine.observation_size, engine.actions.size)
    search = PGPE(dimension=network.parameter_count, population_size=200, max_speed=max_speed, seed=1)
    normalizer = Normalizer(engine.observation_size)
    seconds: dict[str, float] = {}
    steps = 0

    def timed(name: str, call: Callable[[], T]) -> T:
        begun = time.perf_counter()
        result = call()
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - begun
        return result

    for generation in range(generations + 1):
        if generation == 1:  # the first one warms up
            seconds, steps = {}, 0
        candidates = timed("ask", search.ask)
        statistics = timed("statistics", normalizer.statistics) if normalize else None
        rollout = Rollout(
            network, candidates, seed=1, generation=generation, statistics=statistics, collect_moments=normalize
        )
        outcomes = timed("evaluate", lambda rollout=rollout: engine.evaluate(rollout))
        if outcomes.moments is not None:
            timed("merge the moments", lambda moments=outcomes.moments: normalizer.merge(moments))
        timed("tell", lambda fitness=outcomes.fitness: search.tell(fitness))
        steps += int(outcomes.interactions.sum())
    engine.close()
    whole = sum(seconds.values())
    return {
        "shares of a generation": {name: round(value / whole, 5) for name, value in seconds.items()},
        "microseconds of a step on one thread": round(1e6 * THREADS * whole / steps, 3),
        "steps": steps,
    }


def policy_step() -> float:
    """Return the microseconds of a step of the Humanoid's policy."""
    network, normalizer = Network.parse("linear-bias", 376, 17), Normalizer(376)
    random = np.random.default_rng(1)
    observations = random.standard_normal((ROWS, network.observation_size))
    normalizer.merge(Moments.of(observations))
    forward = Forward(network, normalizer.statistics(), compiled=True)
    parameters = forward.arrange(random.standard_normal((ROWS, network.parameter_count), dtype=np.float32))
    forward(parameters, observations)
    begun = time.perf_counter()
    for _ in range(200):
        forward(parameters, observations)
    return round(1e6 * (time.perf_counter() - begun) / (200 * ROWS), 2)


def main() -> None:
    """Measure, print and store what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generations", type=int, default=20)
    generations = parser.parse_args().generations
    result = {
        "command": "python benchmarks/compiled_profile.py",
        "Humanoid-v4": profile("Humanoid-v4", "linear-bias", 0.15, normalize=True, generations=generations),
        "Pendulum-v1": profile("Pendulum-v1", "linear", 0.05, normalize=False, generations=20 * generations),
        "microseconds of a step of the Humanoid's policy": policy_step(),
        "processors": THREADS,
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
