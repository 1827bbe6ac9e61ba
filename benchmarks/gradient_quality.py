"""How well does a generation know which way is up? Two generations at the same center, and whether they agree.

Each of the two estimates the gradient from PAIRS mirrored pairs with centered ranks, as PGPE does. The agreement is the
cosine between the two estimates. It is the square of the cosine between one estimate and what it estimates: the
gradient of the mean fitness under this noise. For a linear fitness without noise it would be
pairs / (pairs + parameters). By chance alone it is 0 ± 1 / √parameters.

The center is the Humanoid of docs/reproduction.md (small population, seed 3) after 10 million interactions, where its
score is about 900. Deterministic, so another run gives the same numbers. Five minutes on two busy processors.

Run: python benchmarks/gradient_quality.py
"""

import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from clipup.engines import Rollout, Task, make_engine
from clipup.export.policy import read_policy
from clipup.searches import centered_rank

POLICY = Path(__file__).parent / "policies" / "humanoid-10-million.safetensors"
RESULT = Path(__file__).parent / "results" / "gradient_quality.json"
RADII = (0.135, 0.27, 0.54, 0.8, 1.6)
PAIRS = 700


def table(result: dict[str, Any]) -> list[str]:
    """Return the lines of the table in docs/faster.md."""
    lines = ["| radius | agreement | mean fitness | interactions, thousands |", "| --- | --- | --- | --- |"]
    for row in result["radii"]:
        cells = (row["radius"], f"{row['agreement']:.3f}", row["mean_fitness"], round(row["interactions"] / 1000))
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def main() -> None:
    """Measure the agreement at every radius and store it."""
    policy, described = read_policy(POLICY)
    network, center = policy.network, policy.parameters
    task = Task(described.env, engine="compiled", reward_offset=-5.0)
    engine = make_engine(task)

    def run(parameters: np.ndarray, generation: int) -> tuple[np.ndarray, int]:
        found = engine.evaluate(Rollout(network, parameters, 7, generation, statistics=policy.statistics))
        return found.fitness, int(found.interactions.sum())

    alone, steps = run(np.repeat(center[np.newaxis], 200, axis=0), 0)
    print(f"center: fitness {alone.mean():.1f}, stdev {alone.std():.1f}, {steps / 200:.0f} steps an episode")
    rows: list[dict[str, float]] = []
    generator = np.random.default_rng(7)
    for radius in RADII:
        estimates: list[np.ndarray] = []
        fitnesses: list[np.ndarray] = []
        interactions = 0
        for _ in range(2):
            noise = generator.standard_normal((PAIRS, center.size)) * (radius / np.sqrt(center.size))
            candidates = np.repeat(center[np.newaxis], 2 * PAIRS, axis=0)
            candidates[0::2] += noise
            candidates[1::2] -= noise
            fitness, steps = run(candidates, 1 + len(rows) * 2 + len(estimates))
            ranks = centered_rank(fitness)
            estimates.append((ranks[0::2] - ranks[1::2]) @ noise)
            fitnesses.append(fitness)
            interactions += steps
        first, second = estimates
        row = {
            "radius": radius,
            "agreement": round(float(first @ second / np.linalg.norm(first) / np.linalg.norm(second)), 4),
            "mean_fitness": round(float(np.mean(fitnesses)), 1),
            "fitness_stdev": round(float(np.std(fitnesses)), 1),
            "interactions": interactions,
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
    engine.close()
    result = {
        "command": "python benchmarks/gradient_quality.py",
        "pairs": PAIRS,
        "parameters": center.size,
        "center": {"fitness": round(float(alone.mean()), 1), "fitness_stdev": round(float(alone.std()), 1)},
        "radii": rows,
        "versions": {name: version(name) for name in ("clipup", "mujoco", "numpy")},
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} processors",
    }
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print("\n".join(table(result)))


if __name__ == "__main__":
    main()
