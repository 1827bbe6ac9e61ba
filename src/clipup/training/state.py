"""Where a run stands after a whole generation, as one value that never changes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clipup.optimizers.protocol import State
from clipup.policies import Normalizer, Statistics
from clipup.runs.checkpoint import Checkpoint, state_value, whole_value
from clipup.runs.records import Record
from clipup.searches import Search


@dataclass(frozen=True)
class Score:
    """The center's return over the evaluation episodes."""

    mean: float
    standard_error: float | None

    @classmethod
    def of(cls, returns: NDArray[np.float64]) -> Score:
        """The score of some episodes."""
        error = float(returns.std(ddof=1)) / math.sqrt(len(returns)) if len(returns) > 1 else None
        return cls(float(returns.mean()), error)


@dataclass(frozen=True, eq=False)
class TrainingState:
    """Everything that a run needs to go on, as of the end of a generation."""

    generation: int
    center: NDArray[np.float32]
    statistics: Statistics | None
    """The observation statistics that the next generation uses."""
    search: State
    normalizer: State
    total_interactions: int = 0
    best: float = -math.inf
    """Best fitness of any candidate so far."""
    best_score: float = -math.inf
    """Best score of any evaluation so far."""
    score: Score | None = None
    """The score of this generation, where it was evaluated."""
    records_size: int = 0
    """Bytes of records that belong to it."""

    @classmethod
    def at_start(cls, search: Search, normalizer: Normalizer | None) -> TrainingState:
        """The state before the first generation."""
        return cls(search.generation, *_parts(search, normalizer))

    @classmethod
    def loaded(cls, checkpoint: Checkpoint, search: Search, normalizer: Normalizer | None) -> TrainingState:
        """The state in a checkpoint; `search` and `normalizer` are brought to it."""
        search.load_state_dict(checkpoint.search)
        if normalizer is not None:
            normalizer.load_state_dict(checkpoint.normalizer)
        counters = checkpoint.counters
        mean, error = state_value(counters, "score"), state_value(counters, "score_standard_error")
        return cls(
            search.generation,
            *_parts(search, normalizer),
            whole_value(counters, "total_interactions"),
            state_value(counters, "best"),
            state_value(counters, "best_score"),
            None if math.isnan(mean) else Score(mean, None if math.isnan(error) else error),
            whole_value(counters, "records_size"),
        )

    def after(
        self, search: Search, normalizer: Normalizer | None, record: Record, score: Score | None, records_size: int
    ) -> TrainingState:
        """The state after one more generation, which `record` is about."""
        return TrainingState(
            search.generation,
            *_parts(search, normalizer),
            record.total_interactions,
            -math.inf if record.best is None else record.best,
            # Not `max`: a score that is not a number must not become the best one.
            score.mean if score is not None and score.mean > self.best_score else self.best_score,
            score,
            records_size,
        )

    def checkpoint(self, words: Mapping[str, int | str]) -> Checkpoint:
        """The state as it is saved, with `words` about the run beside its counters."""
        score = self.score
        error = score.standard_error if score is not None else None
        counters: State = {
            "total_interactions": self.total_interactions,
            "best": self.best,
            "best_score": self.best_score,
            "score": math.nan if score is None else score.mean,
            "score_standard_error": math.nan if error is None else error,
            "records_size": self.records_size,
            **words,
        }
        return Checkpoint(self.generation, self.search, self.normalizer, counters)


def _parts(
    search: Search, normalizer: Normalizer | None
) -> tuple[NDArray[np.float32], Statistics | None, State, State]:
    statistics = normalizer.statistics() if normalizer is not None else None
    kept: State = {**normalizer.state_dict()} if normalizer is not None else {}
    return search.center, statistics, search.state_dict(), kept
