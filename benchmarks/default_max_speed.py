"""Which max_speed to start from on a task that nobody has tuned: short runs of a few tasks, one seed each.

Evidence for a default, not a tuning: small populations, short episodes, one seed. Scores are means of 16 episodes with
the environment's own reward and length. Deterministic, so another run gives the same scores.

Run: python benchmarks/default_max_speed.py
"""

import json
import os
import platform
from importlib.metadata import version
from pathlib import Path

import clipup

RESULT = Path(__file__).parent / "results" / "default_max_speed.json"
SPEEDS = (0.015, 0.05, 0.15)
TASKS: dict[str, dict[str, object]] = {
    "CartPole-v1": {"generations": 30, "population": 100},
    "HalfCheetah-v4": {"generations": 40, "population": 60, "max_episode_steps": 200},
    "Swimmer-v4": {"generations": 40, "population": 60, "max_episode_steps": 300},
    "Pendulum-v1": {"generations": 60, "population": 100, "policy": "mlp:16"},
}


def main() -> None:
    """Run every task with every speed and store the scores."""
    rows: list[dict[str, object]] = []
    for task, settings in TASKS.items():
        for speed in SPEEDS:
            result = clipup.train(task, **settings, max_speed=speed, evaluate_every=10)
            scores = [[one.generation, round(one.score, 1)] for one in result.records if one.score is not None]
            rows.append({"task": task, "max_speed": speed, "settings": settings, "scores": scores})
            print(json.dumps(rows[-1]))
    described = {
        "command": "python benchmarks/default_max_speed.py",
        "runs": rows,
        "versions": {name: version(name) for name in ("envpool", "numpy")},
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} processors",
    }
    RESULT.write_text(json.dumps(described, indent=2) + "\n")


if __name__ == "__main__":
    main()
