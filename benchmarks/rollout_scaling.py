"""Does an interaction cost more late in a run, or more than linearly so with the number of parameters?

    python benchmarks/rollout_scaling.py [--seconds S] [--repeats N]

Whole generations of Walker2d-v4 and LunarLanderContinuous-v3 are trained by turns. *Generation number*: the same
search (its center does not move) with its generations counted from 0, from 1,024 and from 131,072 on. *Parameters*:
Walker2d-v4 with networks from a hundred parameters to a hundred thousand; beyond the physics, which is the same for
all, cost is given per parameter.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clipup import PGPE
from clipup.engines import Task
from clipup.training.bench import Contest

RESULT = Path(__file__).parent / "results" / "rollout_scaling.json"
POPULATIONS = {"Walker2d-v4": 100, "LunarLanderContinuous-v3": 200}
FIRST_GENERATIONS = (0, 1_024, 131_072)
NETWORKS = ("linear-bias", "mlp:64", "mlp:64,64", "mlp:128,128", "mlp:256,256")


def microseconds(contest: Contest, seconds: float) -> float:
    """Return what one interaction of whole generations costs."""
    return 1e6 / contest.ours(seconds)


def by_turns(contests: dict[Any, Contest], seconds: float, repeats: int) -> dict[Any, list[float]]:
    """Measure each in every round; the first round warms up."""
    rounds = [{key: microseconds(contest, seconds) for key, contest in contests.items()} for _ in range(repeats + 1)]
    for contest in contests.values():
        contest.close()
    return {key: [turn[key] for turn in rounds[1:]] for key in contests}


def over_generations(env: str, seconds: float, repeats: int) -> dict[str, Any]:
    """Return the cost of an interaction from several generations on, and each over the first."""
    contests: dict[int, Contest] = {}
    size = POPULATIONS[env]

    def still(dimension: int) -> PGPE:
        return PGPE(dimension=dimension, population_size=size, max_speed=1e-9, seed=1)

    for first in FIRST_GENERATIONS:
        contests[first] = Contest(Task(env), population_size=size, search=still)
        contests[first].count_from(first)
    found = by_turns(contests, seconds, repeats)
    return {
        "microseconds": {str(first): statistics.median(values) for first, values in found.items()},
        "over generation 0": {
            str(first): statistics.median(a / b for a, b in zip(values, found[0], strict=True))
            for first, values in found.items()
        },
    }


def over_parameters(seconds: float, repeats: int) -> dict[str, Any]:
    """Return the cost of an interaction of several networks, and what each parameter adds to the smallest's."""
    contests = {name: Contest(Task("Walker2d-v4"), network=name, population_size=100) for name in NETWORKS}
    parameters = {name: contest.network.parameter_count for name, contest in contests.items()}
    medians = {name: statistics.median(values) for name, values in by_turns(contests, seconds, repeats).items()}
    least = NETWORKS[0]
    return {
        name: {
            "parameters": parameters[name],
            "microseconds": medians[name],
            "nanoseconds per parameter above the smallest": None
            if name == least
            else 1e3 * (medians[name] - medians[least]) / (parameters[name] - parameters[least]),
        }
        for name in NETWORKS
    }


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    report = {
        "load before": os.getloadavg()[0],
        "generation number": {env: over_generations(env, arguments.seconds, arguments.repeats) for env in POPULATIONS},
        "parameters": over_parameters(arguments.seconds, arguments.repeats),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in ("numpy", "envpool")}},
        "processors": os.cpu_count(),
        "commit": commit,
    }
    RESULT.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
