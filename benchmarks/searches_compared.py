"""Every search on test functions, at equal evaluations, and the time of its ask and tell.

    python benchmarks/searches_compared.py --output FILE.json [--dimensions 10 100] [--evaluations 20000] [--seeds 5]

Each method is tuned by its one number alone: the scale, `max_speed` for methods that follow a gradient and `stdev` for
the others. The best of a few values over the first seed is used for all other seeds, and is written beside them. The
loss is that of the center, without noise. `cma` (pycma) takes part if it is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import clipup
from clipup.errors import ClipUpError
from clipup.searches import Search

Array = NDArray[np.float64]
SCALES = (0.01, 0.03, 0.1, 0.3, 1.0)


def bowl(condition: float) -> Callable[[Array], Array]:
    """Return a quadratic bowl of this condition along the axes."""
    return lambda x: (np.logspace(0, np.log10(condition), x.shape[1]) * np.square(x)).sum(axis=1)


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "bowl, condition 1": bowl(1),
    "bowl, condition 1e3": bowl(1e3),
    "bowl, condition 1e6": bowl(1e6),
    "rosenbrock": lambda x: (100 * np.square(x[:, 1:] - np.square(x[:, :-1])) + np.square(1 - x[:, :-1])).sum(axis=1),
    "rastrigin": lambda x: (np.square(x) + 10 - 10 * np.cos(2 * np.pi * x)).sum(axis=1),
}


def _adam(kind: Callable[..., Search]) -> Callable[..., Search]:
    def make(scale: float, **common: object) -> Search:
        step = 3 * scale / np.sqrt(np.size(common["center"]))
        return kind(optimizer=clipup.Adam(step), radius=15 * scale, **common)

    return make


def _clipup(kind: Callable[..., Search]) -> Callable[..., Search]:
    return lambda scale, **common: kind(max_speed=scale, **common)


def _own(kind: Callable[..., Search]) -> Callable[..., Search]:
    return lambda scale, **common: kind(stdev=scale, **common)


METHODS: dict[str, Callable[..., Search]] = {
    "PGPE, ClipUp": _clipup(clipup.PGPE),
    "PGPE, Adam": _adam(clipup.PGPE),
    "OpenAI-ES, ClipUp": _clipup(clipup.OpenAIES),
    "OpenAI-ES, Adam": _adam(clipup.OpenAIES),
    "ARS, ClipUp": _clipup(clipup.ARS),
    "ARS, Adam": _adam(clipup.ARS),
    "SNES, ClipUp": _clipup(clipup.SNES),
    "SNES": _own(clipup.SNES),
    "xNES": _own(clipup.XNES),
    "CMA-ES": _own(clipup.CMAES),
    "separable CMA-ES": _own(clipup.SepCMAES),
    "cross-entropy": _own(clipup.CrossEntropy),
}
FULL_MATRIX = {"xNES": 100, "CMA-ES": 100}  # with the dimension beyond which they are left out here


def run(method: str, scale: float, function: Callable[[Array], Array], dimension: int, evaluations: int, noise: float,
        seed: int) -> tuple[float, float]:  # fmt: skip
    """Return the loss of the center in the end, and the seconds of an ask and tell."""
    dice = np.random.default_rng(seed)
    start = dice.uniform(1, 2, dimension)
    asked, seconds = 0, 0.0
    search = METHODS[method](scale, center=start, population_size=2 * (10 + int(dimension**0.5)), seed=seed)
    try:
        while asked < evaluations:
            began = time.process_time()
            population = search.ask()
            seconds += time.process_time() - began
            losses = function(population.astype(np.float64))
            losses += noise * np.abs(losses).mean() * dice.standard_normal(len(losses))
            asked += len(losses)
            began = time.process_time()
            search.tell(-losses)
            seconds += time.process_time() - began
    except ClipUpError:
        return float("inf"), float("nan")  # it left the range of float32
    return float(function(search.center[np.newaxis].astype(np.float64))[0]), seconds / search.generation


def run_pycma(scale: float, function: Callable[[Array], Array], dimension: int, evaluations: int, noise: float,
              seed: int) -> float:  # fmt: skip
    """Return the loss of pycma's mean in the end."""
    import cma  # pyright: ignore[reportMissingImports]

    dice = np.random.default_rng(seed)
    options = {"seed": seed + 1, "verbose": -9, "maxfevals": evaluations, "CMA_diagonal": dimension > 100}
    strategy = cma.CMAEvolutionStrategy(dice.uniform(1, 2, dimension), scale, options)
    while not strategy.stop():
        population = strategy.ask()
        losses = function(np.array(population))
        strategy.tell(population, losses + noise * np.abs(losses).mean() * dice.standard_normal(len(losses)))
    return float(function(strategy.result.xfavorite[np.newaxis])[0])


def main() -> None:
    """Compare, print a line for each case, and write the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[10, 100, 1000, 10_000])
    parser.add_argument("--evaluations", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.0, 0.3])
    arguments = parser.parse_args()
    rows: list[dict[str, object]] = []
    for dimension in arguments.dimensions:
        for name, function in FUNCTIONS.items():
            for noise in arguments.noise:
                budget = (function, dimension, arguments.evaluations, noise)
                for method in METHODS:
                    if dimension > FULL_MATRIX.get(method, dimension):
                        continue
                    tuned = min(SCALES, key=lambda scale: run(method, scale, *budget, seed=0)[0])
                    found = [run(method, tuned, *budget, seed=seed) for seed in range(1, arguments.seeds + 1)]
                    rows.append(_row(name, dimension, noise, method, tuned, [loss for loss, _ in found]))
                    rows[-1]["seconds"] = statistics.median(seconds for _, seconds in found)
                if find_spec("cma") is not None:
                    tuned = min(SCALES, key=lambda scale: run_pycma(scale, *budget, seed=0))
                    losses = [run_pycma(tuned, *budget, seed=seed) for seed in range(1, arguments.seeds + 1)]
                    rows.append(_row(name, dimension, noise, "pycma", tuned, losses))
    result = {
        "evaluations": arguments.evaluations,
        "seeds": arguments.seeds,
        "rows": rows,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "processors": os.cpu_count(),
    }
    arguments.output.write_text(json.dumps(result, indent=1) + "\n")


def _row(name: str, dimension: int, noise: float, method: str, tuned: float, losses: list[float]) -> dict[str, object]:
    print(
        f"{name:20} d={dimension:<6} noise={noise:<4} {method:20} {tuned:<5} {statistics.median(losses):.4g}",
        flush=True,
    )
    return {
        "function": name,
        "dimension": dimension,
        "noise": noise,
        "method": method,
        "tuned": tuned,
        "losses": losses,
        "median": statistics.median(losses),
    }


if __name__ == "__main__":
    main()
