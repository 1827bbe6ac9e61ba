"""What workers do: jobs, and the worker that runs them.

A worker is the same object everywhere: in this process, in a process of its own, in an actor of a cluster. It is told
a job once, and then runs ranges of the job's indices. The result of an index depends on the job and the index alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from clipup.engines import Engine, EngineDescription, Outcomes, Rollout, Task, make_engine
from clipup.engines.inspection import Inspection
from clipup.engines.protocol import DEFAULT_LANES
from clipup.executors.fingerprint import Fingerprint, act_digest
from clipup.policies import PolicyNetwork, Statistics
from clipup.policies.named import for_workers, make_policy
from clipup.policies.stepping import prepare
from clipup.searches.protocol import Batch, BlockSum, FloatArray

ConsecutiveSums = list[tuple[NDArray[np.float64], ...]]
"""The sums of consecutive blocks."""

Result = Outcomes | ConsecutiveSums
Result_co = TypeVar("Result_co", bound=Result, covariant=True)


@dataclass(frozen=True)
class Setup:
    """What a worker is made for. It stays the same as long as the worker lives."""

    task: Task
    policy: object
    """As `clipup.policies.named.make_policy` takes it."""
    collect_moments: bool
    lanes: int = DEFAULT_LANES
    timed: bool = False
    """Whether episodes have a time limit. If so, both engines are made before the first episode."""

    what: str = field(default="environment", init=False)
    advice: str = field(default="give its id, or a callable defined at the top level of a module", init=False)

    def for_workers(self) -> Setup:
        """Return what another process needs, which may be in another directory."""
        return replace(self, task=self.task.for_workers(), policy=for_workers(self.policy))

    def make(self) -> Worker:
        """Return the worker."""
        return Worker(self)


class Readiness:
    """What a worker says of itself when it is ready."""


@dataclass(frozen=True)
class WorkerDescription(Readiness):
    """What a worker with an engine says of itself."""

    engine: EngineDescription
    network: PolicyNetwork
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    """What it computes from fixed numbers: another processor may round differently."""
    notes: tuple[str, ...] = ()
    """What is odd about the task and the workers, one sentence each."""

    def runs_like(self, other: WorkerDescription) -> bool:
        """Return whether both run the same network in the same engine; its reason may differ."""
        return self.network == other.network and replace(self.engine, reason="") == replace(other.engine, reason="")


class Worker:
    """Runs jobs. Its engines are kept between generations.

    An engine with threads of its own may use `threads` of them; None stands for all processors.
    """

    def __init__(self, setup: Setup, *, threads: int | None = 1) -> None:
        self._task = setup.task
        self._threads = threads
        self._training = make_engine(setup.task, lanes=setup.lanes, threads=threads)
        self._evaluation: Engine | None = None
        engine = self._training.description
        self.collect_moments = setup.collect_moments
        self.network = make_policy(setup.policy, engine.observation_size, engine.actions.size)
        prepare(self.network)
        # An environment may hang, and nothing ends a worker that is not ready: where that is feared, it is left out.
        found = Inspection() if setup.timed else self._training.inspect()
        fingerprint = Fingerprint(act_digest(self.network, engine.actions), found.digest)
        self.description = WorkerDescription(engine, self.network, fingerprint, found.notes)
        if setup.timed:
            self._evaluation = self._make_evaluation()

    def evaluate(self, rollout: Rollout) -> Outcomes:
        """Evaluate candidates as the task trains, or for ``"evaluation"`` with the environment's rewards and limits."""
        if rollout.stream == "training":
            return self._training.evaluate(rollout)
        if self._evaluation is None:
            self._evaluation = self._make_evaluation()
        return self._evaluation.evaluate(rollout)

    def close(self) -> None:
        """Close the engines."""
        self._training.close()
        if self._evaluation is not None:
            self._evaluation.close()

    def _make_evaluation(self) -> Engine:
        # The lanes are fixed, so that a policy is evaluated on the same episodes whatever lanes it trained with.
        return make_engine(self._task.for_evaluation(), lanes=DEFAULT_LANES, threads=self._threads)


class Job(Protocol[Result_co]):
    """Something that any worker can run index by index."""

    @property
    def noun(self) -> str:
        """What one index stands for, in messages."""
        ...

    @property
    def episodes(self) -> int:
        """How many episodes one index runs; 0 if it simulates nothing."""
        ...

    @property
    def step(self) -> int:
        """How many indices are best kept together."""
        ...

    def run(self, worker: Worker, start: int, stop: int) -> Result_co:
        """Run the indices ``start … stop - 1``."""
        ...

    def continues(self, earlier: object) -> bool:
        """Return whether the earlier job gives the same results for the same indices."""
        ...


@dataclass(frozen=True, eq=False)
class Population:
    """The candidates of a generation, from the batch's first one on. The generation may grow beyond the batch."""

    batch: Batch
    statistics: Statistics | None
    episodes: int = 1

    noun: str = field(default="candidate", init=False)
    step: int = field(default=2, init=False)  # a mirrored pair shares its noise

    def run(self, worker: Worker, start: int, stop: int) -> Outcomes:
        """Make the candidates and evaluate them."""
        batch = self.batch if stop <= self.batch.stop else self.batch.until(stop)
        rollout = Rollout(
            worker.network,
            batch.candidates(start, stop),
            seed=batch.seed,
            generation=batch.generation,
            first=start,
            statistics=self.statistics,
            collect_moments=worker.collect_moments,
        )
        return worker.evaluate(rollout)

    def continues(self, earlier: object) -> bool:
        """Compare by value. A batch that only looks like the one before gets its own results."""
        return (
            isinstance(earlier, Population)
            and self.batch.same_generation(earlier.batch)
            and _bits(self.statistics) == _bits(earlier.statistics)
        )


@dataclass(frozen=True, eq=False)
class CenterEvaluation:
    """One policy, evaluated on one episode for each index, with the rewards and limits of the environment itself."""

    center: FloatArray
    statistics: Statistics | None
    seed: int
    generation: int

    noun: str = field(default="evaluation episode", init=False)
    episodes: int = field(default=1, init=False)
    step: int = field(default=1, init=False)

    def run(self, worker: Worker, start: int, stop: int) -> Outcomes:
        """Run one episode for each index."""
        rollout = Rollout(
            worker.network,
            np.tile(self.center, (stop - start, 1)),
            seed=self.seed,
            generation=self.generation,
            first=start,
            statistics=self.statistics,
            stream="evaluation",
        )
        return worker.evaluate(rollout)

    def continues(self, earlier: object) -> bool:
        """Return whether it is the same job."""
        return self is earlier


@dataclass(frozen=True, eq=False)
class BlockSums:
    """The blocks of a sum over a generation, such as a gradient."""

    total: BlockSum

    noun: str = field(default="gradient block", init=False)
    episodes: int = field(default=0, init=False)
    step: int = field(default=1, init=False)

    def run(self, worker: Worker, start: int, stop: int) -> ConsecutiveSums:
        """Sum each block. The search adds the blocks, in order."""
        with np.errstate(over="ignore", invalid="ignore"):
            return [self.total.block(number) for number in range(start, stop)]

    def continues(self, earlier: object) -> bool:
        """Return whether it is the same job."""
        return self is earlier


def _bits(statistics: Statistics | None) -> tuple[bytes, bytes] | None:
    return None if statistics is None else (statistics.mean.tobytes(), statistics.stdev.tobytes())
