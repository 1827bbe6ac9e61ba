"""The loop: evaluate a generation, update the search, record it, and keep enough to go on after any interruption."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clipup.engines import Outcomes
from clipup.errors import FileFault
from clipup.executors import Executor
from clipup.policies import Normalizer, Policy, Statistics
from clipup.runs.checkpoint import Checkpoint, state_value, whole_value
from clipup.runs.config import RunConfig, identity
from clipup.runs.records import ClockRecord, Record
from clipup.runs.rundir import Status
from clipup.runs.storage import Storage
from clipup.searches import PGPE
from clipup.searches.sampling import Batch
from clipup.tracking.audience import Audience
from clipup.tracking.protocol import RunInfo, Tracker
from clipup.training.setup import make_search
from clipup.training.signals import Interrupted, Interruption


@dataclass(frozen=True)
class Score:
    """The center's return over the evaluation episodes."""

    mean: float
    standard_error: float | None

    @classmethod
    def of(cls, outcomes: Outcomes) -> Score:
        """The score of some episodes."""
        returns = outcomes.returns
        error = float(returns.std(ddof=1)) / math.sqrt(len(returns)) if len(returns) > 1 else None
        return cls(float(returns.mean()), error)


class Trainer:
    """One run, from where its storage says it stands until something stops it.

    Everything random is a function of (seed, generation, index), so the state is what the search, the normalizer and
    a few counters hold; a copy of it is kept as of the last whole generation. That copy is what gets saved when an
    evaluation is interrupted.
    """

    def __init__(
        self,
        config: RunConfig,
        executor: Executor,
        storage: Storage,
        trackers: Sequence[Tracker] = (),
        interruption: Interruption | None = None,
    ) -> None:
        """Set up at the start, or where the storage's checkpoint stands."""
        self.config = config
        self.records: list[Record] = []
        self._executor = executor
        self._storage = storage
        self._audience = Audience(trackers)
        self._interruption = interruption or Interruption()
        self._search: PGPE = make_search(config, executor.description.network.parameter_count)
        self._normalizer = Normalizer(executor.description.network.observation_size) if config.normalize else None
        self._total_interactions = 0
        self._best = -math.inf
        self._best_score = -math.inf
        self._last_score: Score | None = None
        if storage.checkpoint is not None:
            self._check_engine(storage.checkpoint)
            self._restore(storage.checkpoint)
        self._whole = self._snapshot()
        self._seconds = storage.seconds

    @property
    def generation(self) -> int:
        """Generations made so far."""
        return self._whole.generation

    @property
    def policy(self) -> Policy:
        """The center as a policy, with the statistics that the next generation would use."""
        description = self._executor.description
        return Policy(description.network, self._search.center, self._statistics(), description.engine.actions)

    def run(self) -> Status:
        """Train until a limit is reached, the target is met, or a signal comes; leave everything saved."""
        info = RunInfo(
            self.config,
            self._storage.path,
            self.generation,
            self._executor.description.network.describe(),
            self._executor.description.network.parameter_count,
            self._executor.description.engine.name,
            self._executor.description.engine.reason,
            self._executor.place,
        )
        status = self._status("failed", "an error")
        try:
            self._audience.begin(info)
            self._storage.begin(self._status("running", ""))
            status = self._train()
        except KeyboardInterrupt:
            self._restore(self._whole)
            status = self._status("interrupted", "SIGINT")
            raise
        except Exception as error:
            self._restore(self._whole)
            status = self._status("failed", str(error) or type(error).__name__)
            raise
        finally:
            # Also after an error: what was computed up to the last whole generation is kept, the rest dropped.
            try:
                score = self._last_score
                self._restore(self._whole)
                self._last_score = score if status.state == "finished" else self._last_score
                self._storage.finish(self._whole, self.policy, status)
            finally:
                self._audience.end(status)
        return status

    def _train(self) -> Status:
        try:
            while (reason := self._reason_to_stop()) is None:
                self._generation()
            if self._last_score is None and self.generation:
                self._last_score = self._evaluate_center()
        except Interrupted:
            self._restore(self._whole)
            number = self._interruption.signal
            return self._status("interrupted", number.name if number is not None else "stopped")
        return self._status("finished", reason)

    def _reason_to_stop(self) -> str | None:
        config = self.config
        if self._interruption.signal is not None:
            raise Interrupted
        if config.generations is not None and self.generation >= config.generations:
            return f"{config.generations} generations"
        if config.total_interactions is not None and self._total_interactions >= config.total_interactions:
            return f"{config.total_interactions} interactions"
        if config.time_limit is not None and self._seconds >= config.time_limit:
            return f"{config.time_limit:g} seconds"
        score = self._last_score
        if config.target_score is not None and score is not None and score.mean >= config.target_score:
            return f"score {config.target_score:g}"
        return None

    def _generation(self) -> None:
        started = time.monotonic()
        outcomes = self._evaluate_population()
        self._warn(outcomes, "candidate")
        if self._normalizer is not None and outcomes.moments is not None:
            self._normalizer.merge(outcomes.moments)
        interactions = int(outcomes.interactions.sum())
        self._total_interactions += interactions
        self._best = max(self._best, float(_finite(outcomes.fitness).max(initial=-math.inf)))
        every = self.config.evaluate_every
        due = every > 0 and self._search.generation % every == 0
        score = self._evaluate_center() if due else None
        record = self._record(outcomes, interactions, score)
        self._seconds += time.monotonic() - started
        elapsed = max(time.monotonic() - started, 1e-9)
        clock = ClockRecord(record.generation, round(self._seconds, 3), round(interactions / elapsed, 1))
        self._last_score = score
        improved = score is not None and score.mean > self._best_score
        if score is not None and improved:
            self._best_score = score.mean
        self._storage.append(record, clock)
        whole = self._snapshot()
        mean = _finite_or_none(score.mean if score else None)
        if improved:  # before the generation counts: a state that knows of a best score has its policy on disk
            self._storage.keep_best(whole, self.policy, mean)
        self._whole = whole
        self._storage.keep(whole, self.policy, mean)
        self.records.append(record)
        self._audience.generation(record, clock)

    def _evaluate_population(self) -> Outcomes:
        """The whole generation, batch by batch until the search has enough; ends with the search updated."""
        statistics = self._statistics()
        adaptive = self.config.interactions is not None
        parts: list[Outcomes] = []
        ended = False
        while not ended:
            batch = self._search.batch()
            with self._interruption.allowed():
                outcomes = self._executor.evaluate(batch, statistics, following=self._following(batch))
            parts.append(outcomes)
            ended = self._search.tell(
                outcomes.fitness * self.config.fitness_scale,
                outcomes.interactions if adaptive else None,
                sum_blocks=self._executor.sum_blocks,
            )
        return Outcomes.concatenate(parts)

    def _following(self, batch: Batch) -> Batch | None:
        bound = self._search.population_max
        if bound is None or batch.stop >= bound:
            return None
        stop = min(batch.stop + self._search.batch_size, bound)
        return dataclasses.replace(batch, start=batch.stop, stop=stop)

    def _evaluate_center(self) -> Score:
        with self._interruption.allowed():
            outcomes = self._executor.evaluate_center(
                self._search.center,
                self._statistics(),
                seed=self._search.seed,
                generation=self._search.generation,
                episodes=self.config.evaluation_episodes,
            )
        self._warn(outcomes, "evaluation episode")
        return Score.of(outcomes)

    def _warn(self, outcomes: Outcomes, noun: str) -> None:
        if outcomes.failures:
            first = outcomes.failures[0]
            failed = f"{len(outcomes.failures)} of {len(outcomes)} {noun}s failed"
            self._audience.message(f"warning: {failed}, {noun} {first.index}: {first.message}")

    def _record(self, outcomes: Outcomes, interactions: int, score: Score | None) -> Record:
        search, fitness = self._search, _finite(outcomes.fitness)
        wanted, bound = self.config.interactions, search.population_max
        return Record(
            generation=search.generation,
            population=search.population_size,
            interactions=interactions,
            total_interactions=self._total_interactions,
            fitness_mean=float(fitness.mean()) if fitness.size else None,
            fitness_best=float(fitness.max()) if fitness.size else None,
            best=self._best if math.isfinite(self._best) else None,
            score=score.mean if score else None,
            score_standard_error=score.standard_error if score else None,
            speed=search.speed,
            max_speed=search.max_speed,
            clipped=search.clipped,
            stdev_norm=math.sqrt(float(np.square(search.stdev.astype(np.float64)).sum())),
            gradient_norm=search.gradient_norm,
            gradient_agreement=search.gradient_agreement,
            nonfinite=search.nonfinite,
            tied=search.tied,
            population_bound=bool(
                wanted is not None and bound is not None and interactions < wanted and len(outcomes) >= bound
            ),
        )

    def _statistics(self) -> Statistics | None:
        return self._normalizer.statistics() if self._normalizer is not None else None

    def _snapshot(self) -> Checkpoint:
        return Checkpoint(
            self._search.generation,
            self._search.state_dict(),
            dict(self._normalizer.state_dict()) if self._normalizer is not None else {},
            {
                "total_interactions": self._total_interactions,
                "best": float(self._best),
                "best_score": float(self._best_score),
                "score": math.nan if self._last_score is None else self._last_score.mean,
                "score_standard_error": _or_nan(self._last_score.standard_error if self._last_score else None),
                "records_size": self._storage.records_size,
                "settings": json.dumps(identity(self.config), sort_keys=True),
                "engine": self._executor.description.engine.name,
            },
        )

    def _check_engine(self, checkpoint: Checkpoint) -> None:
        """Refuse to go on in another simulator than before: ``engine = "auto"`` takes what is installed."""
        before, engine = checkpoint.counters.get("engine"), self._executor.description.engine
        if before is not None and before != engine.name:
            raise FileFault(
                f"this run was made with {before}, and would go on here with {engine.name} ({engine.reason}), "
                f"to other results; install {before}, or start a new run"
            )

    def _restore(self, checkpoint: Checkpoint) -> None:
        self._search.load_state_dict(checkpoint.search)
        if self._normalizer is not None:
            self._normalizer.load_state_dict(checkpoint.normalizer)
        counters = checkpoint.counters
        self._total_interactions = whole_value(counters, "total_interactions")
        self._best = state_value(counters, "best")
        self._best_score = state_value(counters, "best_score")
        mean, error = state_value(counters, "score"), state_value(counters, "score_standard_error")
        self._last_score = None if math.isnan(mean) else Score(mean, None if math.isnan(error) else error)

    def _status(self, state: str, reason: str) -> Status:
        score = self._last_score
        return Status(
            state=state,
            reason=reason,
            generation=self.generation,
            total_interactions=self._total_interactions,
            score=_finite_or_none(score.mean if score else None),
            score_standard_error=_finite_or_none(score.standard_error if score else None),
            engine=self._executor.description.engine.name,
        )


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[np.isfinite(values)]


def _finite_or_none(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
