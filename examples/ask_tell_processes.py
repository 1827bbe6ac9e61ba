"""Spread a search over processes that make their own candidates.

    python examples/ask_tell_processes.py [--workers 2] [--dimension 1000]

Needs numpy alone. A batch is a few numbers and two vectors: what is needed to make any of its candidates. So no
candidate travels between processes. A worker gets the batch and two indices, and returns fitnesses. The result is the
same, to the last bit, for any number of workers.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import clipup


def score(candidates: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the fitness of each row; higher is better. Put your own slow function here."""
    return -np.square(candidates.astype(np.float64) - 3.0).sum(axis=1)


def evaluate(batch: clipup.Batch, start: int, stop: int) -> NDArray[np.float64]:
    """Make and score candidates start .. stop - 1 of a batch, in a worker."""
    return score(batch.candidates(start, stop))


def main(arguments: Sequence[str] | None = None) -> clipup.PGPE:
    """Run the search and return it."""
    parser = argparse.ArgumentParser(description="Spread a search over processes.")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--dimension", type=int, default=1000)
    parser.add_argument("--generations", type=int, default=200)
    parser.add_argument("--population-size", type=int, default=100)
    parser.add_argument("--max-speed", type=float, default=1.0, help="the one number to tune")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    try:
        search = clipup.PGPE(
            dimension=options.dimension,
            population_size=options.population_size,
            max_speed=options.max_speed,
            seed=options.seed,
        )
    except clipup.ClipUpError as error:
        parser.error(str(error))

    with multiprocessing.get_context("spawn").Pool(options.workers) as workers:
        while search.generation < options.generations:
            batch = search.batch()
            # Ten candidates at a time: few enough to keep every worker busy, enough to make messages cheap.
            ranges = [(batch, start, min(start + 10, batch.stop)) for start in range(batch.start, batch.stop, 10)]
            search.tell(np.concatenate(workers.starmap(evaluate, ranges, chunksize=1)))
            if search.generation % max(1, options.generations // 5) == 0:
                distance = float(np.linalg.norm(search.center - 3.0))
                print(f"generation {search.generation:4d}   distance of the center from the optimum {distance:8.3f}")
    return search


if __name__ == "__main__":
    main()
