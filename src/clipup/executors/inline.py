"""Evaluation in this process (EnvPool brings its own threads)."""

from __future__ import annotations

import numpy as np

from clipup.engines import Engine, Outcomes, Rollout, Task, make_engine, registry
from clipup.engines.protocol import DEFAULT_LANES
from clipup.policies import Actions, Network, Statistics
from clipup.searches.pgpe import SumBlocks
from clipup.searches.sampling import Batch, FloatArray

EVALUATION_LANES = DEFAULT_LANES
"""Fixed, so that a policy's evaluation has the same episodes whatever it was trained with."""


class InlineExecutor:
    """Runs every candidate here, through one engine for training and one for evaluation."""

    def __init__(
        self, task: Task, policy: str, *, collect_moments: bool, lanes: int = DEFAULT_LANES, threads: int | None = None
    ) -> None:
        """Make the training engine; the evaluation engine follows when it is first needed."""
        self._task = task
        self._threads = threads
        self._collect_moments = collect_moments
        self._training = make_engine(task, lanes=lanes, threads=threads)
        self._evaluation: Engine | None = None
        self._network = Network.parse(policy, self._training.observation_size, self._training.actions.size)

    @property
    def network(self) -> Network:
        """The policy's network."""
        return self._network

    @property
    def actions(self) -> Actions:
        """How its outputs become actions."""
        return self._training.actions

    @property
    def engine(self) -> str:
        """Name of the rollout engine."""
        return self._training.name

    @property
    def engine_reason(self) -> str:
        """Why that engine was taken."""
        return self._training.reason

    @property
    def description(self) -> str:
        """Where evaluation runs."""
        if not registry.entry(self._training.name).own_threads:
            return "in this process"
        return "all threads" if self._threads is None else f"{self._threads} threads"

    @property
    def sum_blocks(self) -> SumBlocks | None:
        """The search sums its own gradient."""
        return None

    def evaluate(self, batch: Batch, statistics: Statistics | None, *, following: Batch | None = None) -> Outcomes:
        """All candidates of `batch`, in order. Nothing is idle here, so `following` is left aside."""
        outcomes = self._training.evaluate(
            Rollout(
                self._network,
                batch.candidates(),
                seed=batch.seed,
                generation=batch.generation,
                first=batch.start,
                statistics=statistics,
                collect_moments=self._collect_moments,
            )
        )
        return outcomes.check(self._task.label)

    def evaluate_center(
        self, center: FloatArray, statistics: Statistics | None, *, seed: int, generation: int, episodes: int
    ) -> Outcomes:
        """The center over `episodes` episodes of the task as the environment means it."""
        if self._evaluation is None:
            self._evaluation = make_engine(self._task.for_evaluation(), lanes=EVALUATION_LANES, threads=self._threads)
        outcomes = self._evaluation.evaluate(
            Rollout(
                self._network,
                np.tile(center, (episodes, 1)),
                seed=seed,
                generation=generation,
                statistics=statistics,
                stream="evaluation",
            )
        )
        return outcomes.check(self._task.label)

    def close(self) -> None:
        """Close both engines."""
        self._training.close()
        if self._evaluation is not None:
            self._evaluation.close()
