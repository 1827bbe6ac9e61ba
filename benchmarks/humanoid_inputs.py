"""Which inputs does a walking Humanoid use? Its weights on one group of inputs at a time are set to zero.

The policies are linear, so this removes the inputs and leaves everything else as it was. They are the two walking
policies of docs/reproduction.md that were trained on the compiled engine, where contact forces are live. Two minutes on
two processors.

Run: python benchmarks/humanoid_inputs.py
"""

import json
import os
import platform
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import clipup
from clipup.engines import Task
from clipup.export.policy import read_policy

ROOT = Path(__file__).parent.parent
RESULT = Path(__file__).parent / "results" / "humanoid_inputs.json"
SEEDS = (2, 3)
EPISODES = 50
INPUTS = 376
GROUPS = {
    "none": (0, 0),
    "positions (22)": (0, 22),
    "velocities (23)": (22, 45),
    "inertia of the bodies (140)": (45, 185),
    "velocities of the bodies (84)": (185, 269),
    "forces of the actuators (23)": (269, 292),
    "contact forces (84)": (292, 376),
}


def table(result: dict[str, Any]) -> list[str]:
    """Return the lines of the table in docs/faster.md."""
    lines = ["| inputs removed | " + " | ".join(f"seed {seed}" for seed in SEEDS) + " |", "| --- " * 3 + "|"]
    for group in GROUPS:
        scores = [result["scores"][str(seed)][group] for seed in SEEDS]
        cells = [f"{score['mean']:.0f} ± {score['standard_error']:.0f}" for score in scores]
        lines.append("| " + " | ".join([group, *cells]) + " |")
    return lines


def main() -> None:
    """Evaluate each policy without each group, and store the scores."""
    scores: dict[str, dict[str, Any]] = {}
    for seed in SEEDS:
        policy, described = read_policy(ROOT / f"results/policies/small-population-seed-{seed}.safetensors")
        for group, (start, stop) in GROUPS.items():
            parameters = policy.parameters.copy()
            parameters[: -policy.network.action_size].reshape(-1, INPUTS)[:, start:stop] = 0.0
            changed = replace(policy, parameters=parameters)
            found = clipup.evaluate(changed, Task(described.env, engine="compiled"), episodes=EPISODES, seed=12345)
            mean, error = found.summary.mean, found.summary.standard_error
            scores.setdefault(str(seed), {})[group] = {"mean": round(mean, 1), "standard_error": round(error, 1)}
            print(f"seed {seed}, without {group}: {mean:.0f} ± {error:.0f}", flush=True)
    result = {
        "command": "python benchmarks/humanoid_inputs.py",
        "episodes": EPISODES,
        "scores": scores,
        "versions": {name: version(name) for name in ("clipup", "mujoco", "numpy")},
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} processors",
    }
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print("\n".join(table(result)))


if __name__ == "__main__":
    main()
