"""Minimize a test function: show progress, then plot it.

    python examples/optimize.py [--function rastrigin] [--dimension 100] [--plot optimize.png]

Needs numpy alone. With matplotlib the plot is a PNG file, without it the plot is drawn as text.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import clipup

Array = NDArray[np.floating]


def sphere(x: Array) -> Array:
    """Return the squared distance from the origin, of each row."""
    return np.square(x).sum(axis=1)


def rosenbrock(x: Array) -> Array:
    """Return the height in a long bent valley. Its floor falls towards (1, 1, …, 1)."""
    return (100 * np.square(x[:, 1:] - np.square(x[:, :-1])) + np.square(1 - x[:, :-1])).sum(axis=1)


def rastrigin(x: Array) -> Array:
    """Return a bowl with a local optimum at every point of the integer grid."""
    return (np.square(x) + 3 * (1 - np.cos(2 * np.pi * x))).sum(axis=1)


FUNCTIONS: dict[str, tuple[Callable[[Array], Array], float]] = {  # with a max_speed that suits it
    "sphere": (sphere, 0.5),
    "rosenbrock": (rosenbrock, 0.1),
    "rastrigin": (rastrigin, 0.2),
}


def progress(summary: clipup.GenerationSummary, generations: int) -> None:
    """Print one line: updated in place at a terminal, elsewhere ten times in all."""
    line = (
        f"generation {summary.generation:4d}/{generations}   mean {summary.mean:10.3f}   best {summary.best:10.3f}   "
        f"speed {summary.speed:.3f} {'(clipped)' if summary.clipped else '         '}   spread {summary.stdev_norm:.3f}"
    )
    last = summary.generation == generations
    if sys.stdout.isatty():
        print("\r" + line, end="\n" if last else "", flush=True)
    elif last or summary.generation % max(1, generations // 10) == 0:
        print(line)


def text_plot(values: Sequence[float], width: int = 72, height: int = 12) -> str:
    """Return the values as columns of blocks on a logarithmic scale."""
    heights = np.log10(np.maximum(values, 1e-12))
    columns = [part.mean() for part in np.array_split(heights, min(width, len(heights)))]
    low, high = min(columns), max(columns)
    levels = [round((column - low) / ((high - low) or 1.0) * (height - 1)) for column in columns]
    rows = ["".join("█" if level >= row else " " for level in levels) for row in reversed(range(height))]
    labels = [f"{10**high:9.3g} ┤", *["          │"] * (height - 2), f"{10**low:9.3g} ┤"]
    return "\n".join(label + row for label, row in zip(labels, rows, strict=True))


def write_plot(result: clipup.OptimizationResult, name: str, path: Path) -> bool:
    """Write the course of the search to a PNG file; return False if matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    generations = [summary.generation for summary in result.history]
    figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(7, 5), height_ratios=[2, 1], layout="constrained")
    top.semilogy(generations, [summary.mean for summary in result.history], label="mean of the population")
    top.semilogy(generations, [summary.best for summary in result.history], label="best of the population")
    top.set(ylabel=f"{name} (lower is better)")
    top.legend(frameon=False)
    bottom.plot(generations, [summary.speed for summary in result.history], label="speed of the center")
    bottom.axhline(result.search.max_speed or 0.0, linestyle=":", color="gray", label="max_speed")
    bottom.set(xlabel="generation", ylim=(0, None))
    bottom.legend(frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return True


def main(arguments: Sequence[str] | None = None) -> clipup.OptimizationResult:
    """Run the search that the command line describes."""
    parser = argparse.ArgumentParser(description="Minimize a test function with PGPE and ClipUp.")
    parser.add_argument("--function", choices=FUNCTIONS, default="rastrigin")
    parser.add_argument("--dimension", type=int, default=100)
    parser.add_argument("--generations", type=int, default=400)
    parser.add_argument("--population-size", type=int, default=100)
    parser.add_argument("--max-speed", type=float, help="the one number to tune; default: one that suits the function")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", type=Path, default=Path("optimize.png"))
    options = parser.parse_args(arguments)

    function, usual_speed = FUNCTIONS[options.function]
    start = np.random.default_rng(options.seed).uniform(-5.12, 5.12, max(1, options.dimension))
    try:
        result = clipup.minimize(
            function,
            center=start,
            max_speed=usual_speed if options.max_speed is None else options.max_speed,
            population_size=options.population_size,
            generations=options.generations,
            seed=options.seed,
            callback=lambda summary: progress(summary, options.generations),
        )
    except clipup.ClipUpError as error:
        parser.error(str(error))
    if not result.history:
        print("interrupted before the first generation ended")
        return result
    before, after = (float(function(x[np.newaxis])[0]) for x in (start, result.center))
    print(f"the center went from {before:.3f} to {after:.3f}; the best candidate seen has {result.best_fitness:.3f}")
    if write_plot(result, options.function, options.plot):
        print(f"plot: {options.plot}")
    else:
        print(text_plot([summary.mean for summary in result.history]))
        print("mean of the population by generation (for a picture: pip install matplotlib)")
    return result


if __name__ == "__main__":
    main()
