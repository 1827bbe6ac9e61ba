"""Ask `clipup tune` for the one number of the zoo's trainings, with seeds that no reported training has.

    python benchmarks/zoo_tuning.py NAME [NAME ...] [--work DIR]

The settings are those of PLANS in zoo.py without that number. SEARCHES says how long a run of the search is and how
many of them it may cost. Where the number of the plan is within KEPT of the answer, the plan keeps it: closer values
cannot be told apart from the luck of a seed (docs/tuning.md). It keeps it too where the values that were run to the end
all score the same. Otherwise the policy is trained again with the answer. Searches and KEPT were written down before
the first search.

Stopped, this goes on where it was. Writes benchmarks/results/zoo_tuning.json; `zoo.py --page` shows it in docs/zoo.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

from zoo import PLANS, TUNING

from clipup.runs.resolve import resolve
from clipup.tuning import TrialProgress, TuningSettings, tune

SEED = 101
"""Of the first run of each value. The zoo has 1 to 4 and 501."""
KEPT = 3.0
"""Times as large or as small as the answer."""
QUICK = TuningSettings()
QUARTER = TuningSettings(low=0.01, high=1.0, points=5, budget=6.0)
"""For trainings of many minutes: runs of a quarter of their generations, over two powers of ten."""
SEARCHES: dict[str, tuple[float, TuningSettings]] = {
    "Acrobot-v1": (1.0, QUICK),
    "CartPole-hidden-velocities": (1.0, QUICK),
    "CartPole-v1": (1.0, QUICK),
    "InvertedPendulum-v5": (1.0, QUICK),
    "MountainCarContinuous-v0": (1.0, QUICK),
    "Pendulum-v1": (1.0, QUICK),
    "Ant-v5": (0.25, QUARTER),
    "BipedalWalker-v3": (0.25, QUARTER),
    "HalfCheetah-v5": (0.25, QUARTER),
    "Hopper-v5": (0.25, QUARTER),
    "InvertedDoublePendulum-v5": (0.25, QUARTER),
    "Pusher-v5": (0.25, QUARTER),
    "Reacher-v5": (1.0, QUARTER),
    "Stool": (0.25, QUARTER),
    "Swimmer-v5": (0.25, QUARTER),
}
"""The share of the plan's generations that a run of the search has, and the search. (A quarter of the Reacher's was not
long enough to learn anything.)"""


def search(name: str, work: Path) -> dict[str, Any]:
    """Search for the number of a training; return what was found."""
    share, settings = SEARCHES[name]
    given = {key: value for key, value in PLANS[name].items() if key not in ("max_speed", "seed")}
    config, _ = resolve(given, preset=given.pop("preset", "auto"))
    generations = round(share * (config.generations or 0))
    config = dataclasses.replace(config, seed=SEED, generations=generations, workers=1)

    def show(progress: TrialProgress) -> None:
        print(f"{name}: {progress.spent:5.1f} runs: {progress.point} -> {progress.value:.4g}", flush=True)

    found = tune(config, work / name, settings=settings, report=show)
    return {
        "setting": found.setting,
        "found": getattr(found.config, found.setting),
        "learned": found.learned,
        "generations": generations,
        "whole_runs": round(found.spent, 2),
        "scores": {str(standing.point): [round(value, 3) for value in standing.values] for standing in found.standings},
    }


def main() -> None:
    """Search for what was named, and write the results after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=SEARCHES, metavar="NAME")
    parser.add_argument("--work", type=Path, default=Path("runs/zoo-tuning"))
    arguments = parser.parse_args()
    for name in arguments.names:
        result = search(name, arguments.work)
        found = json.loads(TUNING.read_text()) if TUNING.exists() else {}
        TUNING.write_text(json.dumps(dict(sorted((found | {name: result}).items())), indent=1) + "\n")
        print(name, json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
