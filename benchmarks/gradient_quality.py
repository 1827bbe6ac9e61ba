"""How well does a generation know which way is up? Two measurements at centers of the Humanoid.

Agreement: two generations at the same center. Each estimates the gradient from PAIRS mirrored pairs with centered
ranks, as PGPE does. The agreement is the cosine between the two estimates. It is the square of the cosine between one
estimate and what it estimates: the gradient of the mean fitness under this noise. For a linear fitness without noise it
would be pairs / (pairs + parameters). By chance alone it is 0 ± 1 / √parameters.

Repeatability: the same candidates twice, from other starts. It is the correlation between their two ranks: 1 if a
candidate's fitness follows from its parameters, 0 if it follows from its start.

The centers: a run with the paper's small population (seed 3) after 10 million interactions, where its score is about
900, and one with twice its max_speed (seed 401) after 19 million, where it is about 2000. Deterministic, so another run
gives the same numbers. Six minutes on two processors.

Run: python benchmarks/gradient_quality.py
"""

import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from clipup.engines import Engine, Rollout, Task, make_engine
from clipup.export.policy import read_policy
from clipup.policies.trained import Policy
from clipup.searches import centered_rank

POLICIES = Path(__file__).parent / "policies"
RESULT = Path(__file__).parent / "results" / "gradient_quality.json"
RADII = (0.135, 0.27, 0.54, 0.8, 1.6)
PAIRS = 700
REPEATED = tuple((millions, radius) for millions in (10, 19) for radius in (0.27, 0.54))
REPEATED_PAIRS = 250


def table(result: dict[str, Any]) -> list[str]:
    """Return the lines of the table of agreements in docs/faster.md."""
    lines = ["| radius | agreement | mean fitness | interactions, thousands |", "| --- | --- | --- | --- |"]
    for row in result["radii"]:
        cells = (row["radius"], f"{row['agreement']:.3f}", row["mean_fitness"], round(row["interactions"] / 1000))
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def repeated_table(result: dict[str, Any]) -> list[str]:
    """Return the lines of the table of repeatabilities in docs/faster.md."""
    lines = ["| center after | radius | of a candidate's rank | of a pair's difference |", "| --- | --- | --- | --- |"]
    for row in result["repeatability"]:
        cells = (f"{row['millions']} million", row["radius"], f"{row['candidate']:.2f}", f"{row['pair']:.2f}")
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def mirrored(center: np.ndarray, radius: float, pairs: int, generator: np.random.Generator) -> np.ndarray:
    """Return candidates around the center: rows 2i and 2i + 1 mirror each other."""
    noise = generator.standard_normal((pairs, center.size)) * (radius / np.sqrt(center.size))
    candidates = np.repeat(center[np.newaxis], 2 * pairs, axis=0)
    candidates[0::2] += noise
    candidates[1::2] -= noise
    return candidates


def fitnesses(engine: Engine, policy: Policy, candidates: np.ndarray, generation: int) -> tuple[np.ndarray, int]:
    """Return the fitness of each candidate, from the starts of that generation, and the interactions."""
    found = engine.evaluate(Rollout(policy.network, candidates, 7, generation, statistics=policy.statistics))
    return found.fitness, int(found.interactions.sum())


def differences(fitness: np.ndarray) -> np.ndarray:
    """Return the difference of the centered ranks in each pair: its weight in the gradient."""
    ranks = centered_rank(fitness)
    return ranks[0::2] - ranks[1::2]


def agreement(engine: Engine, policy: Policy, radius: float, place: int, generator: np.random.Generator) -> Any:
    """Return the cosine between the gradients of two generations, and what they cost."""
    estimates: list[np.ndarray] = []
    told: list[np.ndarray] = []
    interactions = 0
    for _ in range(2):
        candidates = mirrored(policy.parameters, radius, PAIRS, generator)
        fitness, steps = fitnesses(engine, policy, candidates, 1 + place * 2 + len(estimates))
        estimates.append(differences(fitness) @ (candidates[0::2] - policy.parameters))
        told.append(fitness)
        interactions += steps
    first, second = estimates
    return {
        "radius": radius,
        "agreement": round(float(first @ second / np.linalg.norm(first) / np.linalg.norm(second)), 4),
        "mean_fitness": round(float(np.mean(told)), 1),
        "fitness_stdev": round(float(np.std(told)), 1),
        "interactions": interactions,
    }


def repeatability(engine: Engine, policy: Policy, millions: int, radius: float) -> dict[str, float]:
    """Return how well the ranks of the same candidates agree from two different starts."""
    candidates = mirrored(policy.parameters, radius, REPEATED_PAIRS, np.random.default_rng(5))
    first, second = (fitnesses(engine, policy, candidates, generation)[0] for generation in (1, 2))

    def correlation(one: np.ndarray, other: np.ndarray) -> float:
        return round(float(np.corrcoef(one, other)[0, 1]), 3)

    return {
        "millions": millions,
        "radius": radius,
        "candidate": correlation(centered_rank(first), centered_rank(second)),
        "pair": correlation(differences(first), differences(second)),
    }


def main() -> None:
    """Measure both, and store them."""
    policies = {millions: read_policy(POLICIES / f"humanoid-{millions}-million.safetensors") for millions in (10, 19)}
    policy, described = policies[10]
    engine = make_engine(Task(described.env, engine="compiled", reward_offset=-5.0))
    alone, steps = fitnesses(engine, policy, np.repeat(policy.parameters[np.newaxis], 200, axis=0), 0)
    print(
        f"center: fitness {alone.mean():.1f}, stdev {alone.std():.1f}, {steps / 200:.0f} steps an episode", flush=True
    )
    repeated: list[dict[str, float]] = []
    for millions, radius in REPEATED:
        repeated.append(repeatability(engine, policies[millions][0], millions, radius))
        print(json.dumps(repeated[-1]), flush=True)
    rows: list[dict[str, float]] = []
    generator = np.random.default_rng(7)
    for place, radius in enumerate(RADII):
        rows.append(agreement(engine, policy, radius, place, generator))
        print(json.dumps(rows[-1]), flush=True)
    engine.close()
    result = {
        "command": "python benchmarks/gradient_quality.py",
        "pairs": PAIRS,
        "parameters": policy.parameters.size,
        "center": {"fitness": round(float(alone.mean()), 1), "fitness_stdev": round(float(alone.std()), 1)},
        "radii": rows,
        "repeated_pairs": REPEATED_PAIRS,
        "repeatability": repeated,
        "versions": {name: version(name) for name in ("clipup", "mujoco", "numpy")},
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} processors",
    }
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print("\n".join([*table(result), "", *repeated_table(result)]))


if __name__ == "__main__":
    main()
