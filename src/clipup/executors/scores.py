"""A score function of Python's over worker processes: what ``clipup.maximize(…, workers=…)`` uses.

The score gets the same arrays whatever the number of workers: `batch_size` candidates at a time, counted from the first
one of the generation. So a score that depends on its candidates alone gives the same bits on any number of workers. A
worker that dies is replaced, and what it held runs again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

import numpy as np
from numpy.typing import ArrayLike

from clipup.errors import InvalidArgument, InvalidFitness, ScoreFault, one_line
from clipup.executors.distributed import Workers
from clipup.executors.jobs import ConsecutiveSums, Readiness
from clipup.executors.processes import ProcessTransport
from clipup.optimizers.protocol import Vector, as_floats
from clipup.searches.bounds import Bounds
from clipup.searches.protocol import Batch, FloatArray


@dataclass(frozen=True)
class ScoreSetup:
    """What a worker is made for."""

    score: Callable[[FloatArray], ArrayLike]
    bounds: Bounds | None
    batch_size: int

    what: str = field(default="score function", init=False)
    advice: str = field(default="define it at the top level of a module or of the script that is run", init=False)

    def for_workers(self) -> ScoreSetup:
        """Return what another process needs."""
        return self

    def make(self) -> ScoreWorker:
        """Return the worker."""
        return ScoreWorker(self)


class ScoreWorker:
    """Scores candidates."""

    description = Readiness()

    def __init__(self, setup: ScoreSetup) -> None:
        self.setup = setup

    def close(self) -> None:
        """Free nothing: the worker has only the function."""


@dataclass(frozen=True, eq=False)
class ScoreJob:
    """The candidates of a batch. Index i stands for the i-th `batch_size` of them."""

    batch: Batch
    noun: str
    episodes: int = field(default=0, init=False)
    step: int = field(default=1, init=False)

    def run(self, worker: object, start: int, stop: int) -> ConsecutiveSums:
        """Return one array of scores for each index."""
        if not isinstance(worker, ScoreWorker):
            raise InvalidArgument(f"scores need a worker that was made for them, got {worker!r}")
        return [(self._scores(worker.setup, index),) for index in range(start, stop)]

    def continues(self, earlier: object) -> bool:
        """Return whether it is the same job."""
        return self is earlier

    def _scores(self, setup: ScoreSetup, index: int) -> Vector:
        first = self.batch.start + index * setup.batch_size
        last = min(first + setup.batch_size, self.batch.stop)
        candidates = self.batch.candidates(first, last)
        if setup.bounds is not None:
            candidates = setup.bounds.fold(candidates)
        name = f"candidate {first}" if last - first == 1 else f"candidates {first} to {last - 1}"
        name += f" of generation {self.batch.generation}"
        try:
            given = setup.score(candidates)
        except Exception as error:
            raise ScoreFault(f"the score function failed at {name}: {one_line(error)}") from error
        found = as_floats(f"the scores of {name}", given, InvalidFitness)
        if found.shape != (last - first,):
            raise InvalidFitness(
                f"one score for each of {last - first} candidates is needed, got shape {found.shape} for {name}"
            )
        return found.astype(np.float64)


class ScoreExecutor:
    """Scores the batches of a search on `workers` processes; one worker means: stay in this process."""

    def __init__(
        self, score: Callable[[FloatArray], ArrayLike], *, bounds: Bounds | None, batch_size: int, workers: int
    ) -> None:
        setup = ScoreSetup(score, bounds, batch_size)
        self._size = batch_size
        self._noun = "candidate" if batch_size == 1 else "batch of candidates"
        self._own = setup.make() if workers == 1 else None
        self._workers = None if workers == 1 else Workers(ProcessTransport(setup, workers))

    def __call__(self, batch: Batch) -> Vector:
        """Return the scores of all candidates of `batch`, in order."""
        job, count = ScoreJob(batch, self._noun), -(-len(batch) // self._size)
        if self._workers is None:
            parts = [job.run(self._own, 0, count)]
        else:
            _, parts = self._workers.run(job, 0, count, enough=count)
        return np.concatenate([scores for part in parts for (scores,) in part])

    def __enter__(self) -> ScoreExecutor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the workers."""
        if self._workers is not None:
            self._workers.close()
