"""The loop: evaluate a generation, update the search, record it, and keep enough to go on after any interruption."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from clipup.engines import EngineDescription, Outcomes
from clipup.errors import FileFault, InvalidArgument
from clipup.executors import Executor
from clipup.executors.fingerprint import Fingerprint
from clipup.export.policy import PolicyTask
from clipup.policies import Normalizer, Policy, Statistics
from clipup.runs.checkpoint import Checkpoint, whole_value
from clipup.runs.config import RunConfig, identity
from clipup.runs.records import ClockRecord, Record
from clipup.runs.rundir import Status
from clipup.runs.storage import Storage
from clipup.searches import Search
from clipup.searches.protocol import FloatArray
from clipup.tracking import RunInfo, Tracker, Trackers
from clipup.training.callbacks import Callback, Progress, call_all
from clipup.training.setup import follow_schedule
from clipup.training.signals import Interrupted, Interruption
from clipup.training.state import Score, TrainingState
from clipup.training.warm_start import start_at_its_center, start_from

ARITHMETIC = 2
"""Version of the roundings: 1 was BLAS's, in version 0.1; 2 is the same on any processor."""


class Trainer:
    """One run, from where its storage says it stands until something stops it.

    Everything random is a function of (seed, generation, index). So the state is what the search, the normalizer and a
    few counters hold. A generation works on the live search and normalizer, and ends by committing one new
    `TrainingState`. Whatever stops a generation before that, the state of the last whole one is what is kept; the live
    objects are not used again.
    """

    def __init__(
        self,
        config: RunConfig,
        search: Search,
        executor: Executor,
        storage: Storage,
        trackers: Sequence[Tracker] = (),
        interruption: Interruption | None = None,
        callbacks: Sequence[Callback] = (),
        start: tuple[Policy, PolicyTask] | None = None,
    ) -> None:
        """Set up at the start, or where the storage's checkpoint stands. `search` is at its start.

        `start` is the policy that a new run starts from.
        """
        self.config = config
        self.records: list[Record] = []  # of a run that is not on disk
        self._search = search
        self._executor = executor
        self._engine, self._network = executor.description.engine, executor.description.network
        self._storage = storage
        storage.limits_evaluation = not self._engine.own_limit
        self._trackers = Trackers(trackers)
        self._interruption = interruption or Interruption()
        self._normalizer = Normalizer(self._network.observation_size) if config.normalize else None
        if start is not None and storage.checkpoint is None:
            start_from(*start, search, self._normalizer)
        elif storage.checkpoint is None:
            start_at_its_center(self._network, search)
        self._state = TrainingState.at_start(search, self._normalizer)
        self._callbacks = tuple(callbacks)
        self._called_off = False
        self._target = target_score(config, self._engine)
        self._notes: list[str] = []
        self._arithmetic_changed_at = 0
        self._fingerprint = executor.description.fingerprint
        if storage.checkpoint is not None:
            self._check_engine(storage.checkpoint)
            self._compare_arithmetic(storage.checkpoint)
            self._state = TrainingState.loaded(storage.checkpoint, search, self._normalizer)
        storage.take_up()
        self._seconds = storage.seconds
        self._last = storage.last_lines()

    @property
    def generation(self) -> int:
        """Generations made so far."""
        return self._state.generation

    @property
    def policy(self) -> Policy:
        """The center as a policy, with the statistics that the next generation would use."""
        return self._policy(self._state)

    def run(self) -> Status:
        """Train until a limit is reached, the target is met, or a signal comes; leave everything saved."""
        policy = (self._network.describe(), self._network.parameter_count)
        engine = (self._engine.name, self._engine.reason)
        info = RunInfo(self.config, self._storage.path, self.generation, *policy, *engine, self._executor.place)
        status = self._status("failed", "an error")
        try:
            self._trackers.begin(info)
            for text in (*self._notes, *(f"warning: {text}" for text in self._executor.description.notes)):
                self._trackers.message(text)
            self._storage.begin(self._status("running", ""))
            status = self._train()
        except KeyboardInterrupt:
            status = self._status("interrupted", "SIGINT")
            raise
        except Exception as error:
            status = self._status("failed", str(error) or type(error).__name__)
            raise
        finally:
            # Also after an error: the last whole generation is saved.
            try:
                self._storage.finish(self._checkpoint(self._state), self.policy, status)
            finally:
                self._trackers.end(status)
        return status

    def _train(self) -> Status:
        try:
            while (reason := self._reason_to_stop()) is None:
                self._generation()
            score = self._state.score
            if score is None and self.generation:
                score = self._final_evaluation()
        except Interrupted:
            number = self._interruption.signal
            return self._status("interrupted", number.name if number is not None else "stopped")
        return self._status("finished", reason, score)

    def _final_evaluation(self) -> Score:
        """Evaluate the center where no evaluation was due, and record it.

        The record of the last generation is written once more, with the score; of two lines about a generation, the
        later one counts. The checkpoint does not count it. So a run that is given more generations drops it, and has
        the records of one that never stopped.
        """
        score = self._evaluate_center(self._state.statistics)
        if self._last is not None:
            record, clock = self._last
            record = replace(record, score=score.mean, score_standard_error=score.standard_error)
            self._storage.append_again(record)
            self._hold(record)
            self._trackers.generation(record, clock)
        return score

    def _hold(self, record: Record) -> None:
        """Keep a record in memory if it is not on disk; of two about a generation, the later one counts."""
        if self._storage.path is None:
            if self.records and self.records[-1].generation == record.generation:
                self.records.pop()
            self.records.append(record)

    def _reason_to_stop(self) -> str | None:
        config, state = self.config, self._state
        if self._interruption.signal is not None:
            raise Interrupted
        if config.generations is not None and state.generation >= config.generations:
            return f"{config.generations} generations"
        if config.total_interactions is not None and state.total_interactions >= config.total_interactions:
            return f"{config.total_interactions} interactions"
        if config.time_limit is not None and self._seconds >= config.time_limit:
            return f"{config.time_limit:g} seconds"
        if self._target is not None and state.score is not None and state.score.mean >= self._target:
            return f"score {self._target:g}"
        if config.patience is not None and state.stale >= config.patience:
            return f"no better score in {state.stale} evaluations"
        return "a callback" if self._called_off else None

    def _generation(self) -> None:
        started = time.monotonic()
        follow_schedule(self._search, self.config, self._state.generation, self._state.total_interactions)
        outcomes = self._evaluate_population(self._state.statistics)
        self._warn(outcomes, "candidate")
        if self._normalizer is not None and outcomes.moments is not None:
            self._normalizer.merge(outcomes.moments)
        statistics = self._normalizer.statistics() if self._normalizer is not None else None
        every = self.config.evaluate_every
        due = every > 0 and self._search.generation % every == 0
        score = self._evaluate_center(statistics) if due else None
        record = self._record(outcomes, score)
        if self._callbacks:
            policy = self._made_policy(self._search.center, statistics)
            progress = Progress(record, self.config, self._storage.path, policy)
            self._called_off, figures = call_all(self._callbacks, progress)
            record = replace(record, figures=figures)
        elapsed = time.monotonic() - started
        self._seconds += elapsed
        speed = record.interactions / max(elapsed, 1e-9)
        clock = ClockRecord(record.generation, round(self._seconds, 3), round(speed, 1))
        records = self._storage.append(record, clock)
        self._commit(self._state.after(self._search, self._normalizer, record, score, records))
        self._hold(record)
        self._last = (record, clock)
        self._trackers.generation(record, clock)

    def _commit(self, state: TrainingState) -> None:
        """Make `state` the one that the run goes on from, and hand it to the storage."""
        whole, policy = self._checkpoint(state), self._policy(state)
        mean = _finite_or_none(state.score.mean if state.score else None)
        if state.best_score > self._state.best_score:
            # Before the generation counts: a state that knows of a best score has its policy on disk.
            self._storage.keep_best(whole, policy, mean)
        self._state = state
        self._storage.keep(whole, policy, mean)

    def _evaluate_population(self, statistics: Statistics | None) -> Outcomes:
        """The whole generation, batch by batch until the search has enough; ends with the search updated."""
        adaptive = self.config.interactions is not None
        parts: list[Outcomes] = []
        ended = False
        while not ended:
            batch = self._search.batch()
            with self._interruption.allowed():
                outcomes = self._executor.evaluate(batch, statistics, following=self._search.following())
            parts.append(outcomes)
            ended = self._search.tell(
                outcomes.fitness * self.config.fitness_scale,
                outcomes.interactions if adaptive else None,
                sum_blocks=self._executor.sum_blocks,
            )
        return Outcomes.concatenate(parts)

    def _evaluate_center(self, statistics: Statistics | None) -> Score:
        with self._interruption.allowed():
            outcomes = self._executor.evaluate_center(
                self._search.center,
                statistics,
                seed=self._search.seed,
                generation=self._search.generation,
                episodes=self.config.evaluation_episodes,
            )
        self._warn(outcomes, "evaluation episode")
        return Score.of(outcomes.returns)

    def _warn(self, outcomes: Outcomes, noun: str) -> None:
        if outcomes.failures:
            first = outcomes.failures[0]
            failed = f"{len(outcomes.failures)} of {len(outcomes)} {noun}s failed"
            self._trackers.message(f"warning: {failed}, {noun} {first.index}: {first.message}")

    def _record(self, outcomes: Outcomes, score: Score | None) -> Record:
        figures, fitness = dataclasses.asdict(self._search.figures()), outcomes.fitness
        fitness = fitness[np.isfinite(fitness)]
        figures["gradient_norm"] = math.nan if figures["gradient_norm"] is None else figures["gradient_norm"]
        interactions, wanted = int(outcomes.interactions.sum()), self.config.interactions
        best = max(self._state.best, float(fitness.max(initial=-math.inf)))
        return Record(
            generation=self._search.generation,
            interactions=interactions,
            total_interactions=self._state.total_interactions + interactions,
            fitness_mean=float(fitness.mean()) if fitness.size else None,
            fitness_best=float(fitness.max()) if fitness.size else None,
            best=best if math.isfinite(best) else None,
            score=score.mean if score else None,
            score_standard_error=score.standard_error if score else None,
            # A generation that grows ends with too few interactions only where its population reached the bound.
            population_bound=wanted is not None and interactions < wanted,
            **figures,
        )

    def _policy(self, state: TrainingState) -> Policy:
        return self._made_policy(state.center, state.statistics)

    def _made_policy(self, center: FloatArray, statistics: Statistics | None) -> Policy:
        return Policy(self._network, center, statistics, self._engine.actions, self._engine.observations)

    def _checkpoint(self, state: TrainingState) -> Checkpoint:
        settings = json.dumps(identity(self.config), sort_keys=True)
        words: dict[str, int | str] = {
            "settings": settings,
            "engine": self._engine.name,
            "simulator_version": self._engine.version,
            "arithmetic": ARITHMETIC,
            "arithmetic_changed_at": self._arithmetic_changed_at,
            "act_digest": self._fingerprint.act,
            "simulation_digest": self._fingerprint.simulation,
        }
        return state.checkpoint(words)

    def _check_engine(self, checkpoint: Checkpoint) -> None:
        """Refuse to go on in another simulator than before: ``engine = "auto"`` takes what is installed."""
        before, here = checkpoint.counters.get("engine"), self._engine.name
        if before is not None and before != here:
            raise FileFault(
                f"this run was made with {before}, and would go on here with {here} ({self._engine.reason}), "
                f"to other results; install {before}, or start a new run"
            )

    def _compare_arithmetic(self, checkpoint: Checkpoint) -> None:
        """Note what makes the next generations differ in their last bits from what they would have been before."""
        counters = checkpoint.counters
        self._arithmetic_changed_at = whole_value({"arithmetic_changed_at": 0, **counters}, "arithmetic_changed_at")
        if counters.get("arithmetic", 1) != ARITHMETIC:
            self._arithmetic_changed_at = checkpoint.generation
            self._notes.append(
                f"note: another version of clipup made the first {checkpoint.generation} generations, with other "
                "roundings; status.json keeps that number"
            )
        else:
            self._compare_fingerprint(checkpoint)
        before = counters.get("simulator_version", self._engine.version)
        if before != self._engine.version:
            self._notes.append(
                f"note: {self._engine.name} ran with version {before} of its simulator before, and goes on with "
                f"{self._engine.version}"
            )

    def _compare_fingerprint(self, checkpoint: Checkpoint) -> None:
        """Refuse to go on where the same numbers give other results than before, or note that it is accepted."""
        counters = checkpoint.counters
        before = Fingerprint(*(str(counters.get(name, ""))[:16] for name in ("act_digest", "simulation_digest")))
        different = before.differs_in(self._fingerprint)
        if different and not self.config.mixed_arithmetic:
            raise FileFault(
                "this machine rounds differently from the one that made the run, by its processor or libraries: the "
                f"same numbers give other bits in {different}; resume on a machine like that one, or accept that with "
                "--mixed-arithmetic"
            )
        if different:
            self._arithmetic_changed_at = checkpoint.generation
            self._notes.append(
                f"note: another machine made the first {checkpoint.generation} generations, with other roundings in "
                f"{different}; status.json keeps that number"
            )
        self._fingerprint = self._fingerprint.or_else(before)

    def _status(self, state: str, reason: str, score: Score | None = None) -> Status:
        score = score or self._state.score
        return Status(
            state=state,
            reason=reason,
            generation=self.generation,
            total_interactions=self._state.total_interactions,
            score=_finite_or_none(score.mean if score else None),
            score_standard_error=_finite_or_none(score.standard_error if score else None),
            engine=self._engine.name,
            actions=self._engine.actions.kind,
            warning="; ".join(self._executor.description.notes),
            arithmetic_changed_at=self._arithmetic_changed_at,
        )


def target_score(config: RunConfig, engine: EngineDescription) -> float | None:
    """The score that ends a run, if any does; ``stop = "solved"`` is refused where no score is called solved."""
    if config.stop is None or config.target_score is not None:
        return config.target_score
    if engine.solved_score is None:
        raise InvalidArgument(
            f"{config.env} is registered without a score that counts as solved; give one: --target-score X"
        )
    return engine.solved_score


def _finite_or_none(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
