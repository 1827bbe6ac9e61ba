"""Compare searches on a function of your own: the median over some seeds, and the quartiles.

    python examples/compare_searches.py [--dimension 30] [--generations 150] [--noise 1.0]

Needs numpy alone. It takes a few seconds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

import clipup

SEARCHES = {
    "PGPE with ClipUp": (clipup.PGPE, {"max_speed": 0.3}),
    "OpenAI-ES": (clipup.OpenAIES, {"max_speed": 0.3}),
    "SNES": (clipup.SNES, {"stdev": 1.0}),
    "CMA-ES": (clipup.CMAES, {"stdev": 1.0}),
    "cross-entropy": (clipup.CrossEntropy, {"stdev": 1.0}),
}


def noisy_bowl(noise: float, seed: int) -> Callable[[NDArray[np.float32]], NDArray[np.float64]]:
    """A bowl whose lowest point is at 3 in each coordinate, and scores that are off by `noise`."""
    random = np.random.default_rng(seed)
    return lambda x: -np.square(x - 3.0).sum(axis=1) + noise * random.normal(size=len(x))


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Print how far each search ends from the optimum; return the medians."""
    parser = argparse.ArgumentParser(description="Compare searches on a noisy bowl.")
    parser.add_argument("--dimension", type=int, default=30)
    parser.add_argument("--generations", type=int, default=150)
    parser.add_argument("--population", type=int, default=40)
    parser.add_argument("--noise", type=float, default=1.0, help="of each score")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(arguments)
    medians: dict[str, float] = {}
    print(f"{'distance to the optimum':<24} {'median':>8} {'quartiles':>18}")
    for name, (search, settings) in SEARCHES.items():
        distances: list[float] = []
        for seed in range(options.seeds):
            result = clipup.maximize(
                noisy_bowl(options.noise, seed), search=search, dimension=options.dimension, seed=seed,
                population_size=options.population, generations=options.generations, **settings,
            )  # fmt: skip
            distances.append(float(np.linalg.norm(result.center - 3.0)))
        low, middle, high = np.percentile(distances, [25, 50, 75])
        medians[name] = float(middle)
        print(f"{name:<24} {middle:>8.3f} {f'{low:.3f} to {high:.3f}':>18}")
    return medians


if __name__ == "__main__":
    main()
