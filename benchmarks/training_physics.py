"""How much cheaper is a step of the Humanoid on other physics, and is it still the same Humanoid?

Four walking policies run on each physics. One was trained on the task's own, two on Euler's method (the zoo's, and
seed 3 of docs/faster.md), one on five iterations (seed 22). What they score says how far a walk carries over. Speeds
are measured on one thread, by turns, and compared with the task's own physics in the same turn. Leave the machine alone
meanwhile: some eight minutes.

Run: python benchmarks/training_physics.py [--page]      (--page puts the table into docs/faster.md)
"""

import json
import os
import platform
import statistics
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import clipup
from clipup.engines import Engine, Rollout, Task, make_engine
from clipup.engines.physics import parse_physics
from clipup.policies import Policy
from clipup.runs.presets import preset_named

ROOT = Path(__file__).parent.parent
RESULT = Path(__file__).parent / "results" / "training_physics.json"
PAGE = ROOT / "docs" / "faster.md"
MARK = "<!-- by benchmarks/training_physics.py --page -->"
POLICIES = {
    "own": ROOT / "results/policies/small-population-seed-2.safetensors",
    "Euler": ROOT / "src/clipup/zoo/policies/Humanoid-v4.safetensors",
    "Euler, seed 3": ROOT / "benchmarks/policies/humanoid-euler-seed-3.safetensors",
    "5 iterations, seed 22": ROOT / "benchmarks/policies/humanoid-five-iterations-seed-22.safetensors",
}
OWN = "the task's own: RK4, 50 iterations, 5 time steps"
PRESET = str(preset_named("humanoid").values["physics"])
PHYSICS: dict[str, str | None] = {
    OWN: None,
    "Newton's solver": "solver=Newton",
    "Newton's solver, 3 time steps": "solver=Newton, timestep=0.005",
    "Newton's solver, 2 time steps": "solver=Newton, timestep=0.0075",
    "3 time steps": "timestep=0.005",
    "10 iterations": "iterations=10",
    "5 iterations": "iterations=5",
    "5 iterations, 3 time steps": "iterations=5, timestep=0.005",
    "Euler": "integrator=Euler",
    "Euler, 10 iterations": "integrator=Euler, iterations=10",
    "Euler, 10 iterations, 4 time steps (the preset)": PRESET,
    "… explicit damping": "integrator=Euler, iterations=10, timestep=0.00375, eulerdamp=disable",
    "Euler, 10 iterations, 10 time steps": "integrator=Euler, iterations=10, timestep=0.0015",
}
ROUNDS = 5
EPISODES = 10
"""Of each policy in each round."""


def run(engine: Engine, policy: Policy, turn: int) -> tuple[float, list[float]]:
    """Return steps a second, and the return of each episode."""
    parameters = np.repeat(policy.parameters[np.newaxis].astype(np.float32), EPISODES, axis=0)
    rollout = Rollout(policy.network, parameters, seed=12345, generation=turn, statistics=policy.statistics)
    started = time.perf_counter()
    found = engine.evaluate(rollout)
    return float(found.interactions.sum()) / (time.perf_counter() - started), found.returns.tolist()


def table(result: dict[str, Any]) -> list[str]:
    """Return the lines of the table in docs/faster.md."""
    header = [
        "physics",
        "steps a second",
        "score of a walk trained on the task's own",
        "on Euler (the zoo's)",
        "on Euler (seed 3)",
        "on 5 iterations (seed 22)",
    ]
    lines = [f"| {' | '.join(header)} |", "| --- " * len(header) + "|"]
    for name, row in result["physics"].items():
        scores = [f"{row[kind]['mean']:.0f} ± {row[kind]['standard_error']:.0f}" for kind in POLICIES]
        ratio = row["speed_ratio"]
        speed = f"{ratio['median']:.1f} times ({ratio['low']:.1f} to {ratio['high']:.1f})"
        lines.append(f"| {name} | {speed} | {' | '.join(scores)} |")
    return lines


def main() -> None:
    """Measure every physics by turns, and store what came out."""
    if "--page" in sys.argv[1:]:
        before, _, after = PAGE.read_text("utf-8").split(MARK)
        lines = table(json.loads(RESULT.read_text("utf-8")))
        PAGE.write_text(MARK.join([before, "\n" + "\n".join(lines) + "\n", after]), "utf-8")
        return
    tasks = {
        name: Task("Humanoid-v4", engine="compiled", physics=parse_physics(text)) for name, text in PHYSICS.items()
    }
    engines = {name: make_engine(task, threads=1) for name, task in tasks.items()}
    rows: dict[str, dict[str, Any]] = {name: {"physics": text} for name, text in PHYSICS.items()}
    ratios: dict[str, list[float]] = {name: [] for name in PHYSICS}
    for kind, path in POLICIES.items():
        policy = clipup.load_policy(path)
        returns: dict[str, list[float]] = {name: [] for name in PHYSICS}
        for turn in range(ROUNDS):
            speeds: dict[str, float] = {}
            for name, engine in engines.items():
                speeds[name], found = run(engine, policy, turn)
                returns[name] += found
                ratios[name].append(round(speeds[name] / speeds[OWN], 3))
            print(f"walk of {kind}, round {turn}: {speeds[OWN]:.0f} steps/s on the task's own physics", flush=True)
        for name, scores in returns.items():
            error = statistics.stdev(scores) / len(scores) ** 0.5
            rows[name][kind] = {"mean": round(statistics.fmean(scores), 1), "standard_error": round(error, 1)}
    for name, found in ratios.items():
        rows[name]["speed_ratio"] = {"median": statistics.median(found), "low": min(found), "high": max(found)}
    result = {
        "command": "python benchmarks/training_physics.py",
        "episodes": ROUNDS * EPISODES,
        "physics": rows,
        "versions": {name: version(name) for name in ("clipup", "mujoco", "numba", "numpy")},
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} processors",
    }
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print("\n".join(table(result)))


if __name__ == "__main__":
    main()
