"""Evaluation in this process."""

from __future__ import annotations

from clipup.engines import Outcomes, registry
from clipup.executors.jobs import CenterEvaluation, Population, Setup, Worker, WorkerDescription
from clipup.policies import Statistics
from clipup.searches.protocol import Batch, FloatArray, SumBlocks


class InlineExecutor:
    """Runs every job on one worker in this process, made as `Worker` is; see `clipup.executors.protocol.Executor`."""

    sum_blocks: SumBlocks | None = None

    def __init__(self, setup: Setup, *, threads: int | None = None) -> None:
        self._task = setup.task
        self._threads = threads
        self._worker = Worker(setup, threads=threads)

    @property
    def description(self) -> WorkerDescription:
        """The engine and the policy's network."""
        return self._worker.description

    @property
    def place(self) -> str:
        """Where evaluation runs."""
        if not registry.entry(self.description.engine.name).own_threads:
            return "in this process"
        return "all threads" if self._threads is None else f"{self._threads} thread{'s' if self._threads > 1 else ''}"

    def evaluate(self, batch: Batch, statistics: Statistics | None, *, following: Batch | None = None) -> Outcomes:
        """Evaluate all candidates of `batch`, in order. `following` is not used, because no worker is idle."""
        job = Population(batch, statistics, self._task.episodes)
        return job.run(self._worker, batch.start, batch.stop).check(self._task.label)

    def evaluate_center(
        self, center: FloatArray, statistics: Statistics | None, *, seed: int, generation: int, episodes: int
    ) -> Outcomes:
        """Evaluate the center on `episodes` episodes with the environment's own rewards and limits."""
        job = CenterEvaluation(center, statistics, seed, generation)
        return job.run(self._worker, 0, episodes).check(self._task.label)

    def close(self) -> None:
        """Close the engines."""
        self._worker.close()
