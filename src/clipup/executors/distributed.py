"""The executor over workers in other processes: carries events and actions between the scheduler and a transport."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from clipup.engines import Outcomes, Task
from clipup.executors import scheduler
from clipup.executors.fingerprint import Fingerprint, act_digest
from clipup.executors.jobs import (
    BlockSums,
    CenterEvaluation,
    ConsecutiveSums,
    Job,
    Population,
    Readiness,
    Result_co,
    WorkerDescription,
)
from clipup.executors.scheduler import Action, AnyJob, Assignment, Event, Scheduler
from clipup.executors.work_queue import RangeRule
from clipup.policies import Statistics
from clipup.searches.protocol import Batch, BlockSum, FloatArray

SUMMED_BY_WORKERS = 4_000_000
"""From this many numbers on, workers share a search's sum; these take about 50 ms."""

WINDOW_BYTES = 64 * 2**20
"""How many bytes of block sums may wait for those before them."""

_logger = logging.getLogger("clipup")


class Transport(Protocol):
    """Some workers, and the way to them. Each has a number that is never used twice. A lost one is replaced."""

    @property
    def rule(self) -> RangeRule:
        """How work is best divided here."""
        ...

    @property
    def size(self) -> int:
        """How many workers there should be."""
        ...

    @property
    def place(self) -> str:
        """What the workers are, in a few words for people."""
        ...

    def publish(self, number: int, job: AnyJob) -> None:
        """Make a job known under this number."""
        ...

    def assign(self, worker: int, assignment: Assignment) -> None:
        """Give a worker a range."""
        ...

    def dismiss(self, worker: int, reason: str) -> None:
        """End a worker; `Lost` follows, with this reason."""
        ...

    def wait(self, seconds: float) -> Sequence[Event]:
        """Return what has happened. Wait for at most this long for something to happen."""
        ...

    def restart(self) -> None:
        """End all workers, forget what they did, and start others."""
        ...

    def close(self) -> None:
        """End all workers; may be called more than once."""
        ...


class Workers:
    """The workers of a transport, told what to do by a scheduler.

    `episode_timeout` is how many seconds an episode may take. Workers that round differently from each other, or from
    this process, end the run, unless `mixed_arithmetic` accepts them.
    """

    def __init__(
        self, transport: Transport, *, episode_timeout: float | None = None, mixed_arithmetic: bool = False
    ) -> None:
        self._transport = transport
        self._scheduler = Scheduler(
            transport.rule,
            now=time.monotonic(),
            episode_timeout=episode_timeout,
            mixed_arithmetic=mixed_arithmetic,
        )
        self._under_way = False
        try:
            self._until(lambda: self._scheduler.description is not None)
            workers = self._scheduler.description
            if isinstance(workers, WorkerDescription):
                self._perform(self._scheduler.compare(_own_description(workers)))
        except BaseException:
            transport.close()
            raise

    @property
    def description(self) -> Readiness | None:
        """What the workers say of themselves."""
        return self._scheduler.description

    @property
    def place(self) -> str:
        """What the workers are."""
        return self._transport.place

    @property
    def size(self) -> int:
        """How many workers there should be."""
        return self._transport.size

    def close(self) -> None:
        """End the workers."""
        self._transport.close()

    def run(
        self, job: Job[Result_co], start: int, stop: int, *, enough: int, ahead: range = range(0)
    ) -> tuple[int, list[Result_co]]:
        """Have the indices ``start … stop - 1`` done, and return as soon as those up to ``enough - 1`` are.

        Returns the index that comes next, and the results of those before it.
        """
        if self._under_way:  # an exception ended the call before, perhaps between an event and its handling
            self._transport.restart()
            self._scheduler.forget_workers()
        self._under_way = True
        self._perform(self._scheduler.ask(job, start, stop, ahead))
        self._until(lambda: self._scheduler.ready(start) >= enough)
        end = self._scheduler.ready(start)
        results = cast(list[Result_co], self._scheduler.collect(start, end))
        self._under_way = False
        return end, results

    def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            now = time.monotonic()
            self._perform(self._scheduler.tick(now, self._transport.size))
            for event in self._transport.wait(self._scheduler.patience(now)):
                self._perform(self._scheduler.handle(event, time.monotonic()))

    def _perform(self, actions: Sequence[Action]) -> None:
        for action in actions:
            match action:
                case scheduler.Publish(number, job):
                    self._transport.publish(number, job)
                case scheduler.Assign(worker, assignment):
                    self._transport.assign(worker, assignment)
                case scheduler.Dismiss(worker, reason):
                    self._transport.dismiss(worker, reason)
                case scheduler.Warn(message):
                    _logger.warning("%s", message)
                case scheduler.Stop(error):
                    raise error


def _own_description(workers: WorkerDescription) -> WorkerDescription:
    """What this process computes: it makes the noise of small sums, and updates the search."""
    return replace(workers, fingerprint=Fingerprint(act_digest(workers.network, workers.engine.actions)))


class DistributedExecutor:
    """Evaluates on a transport's workers; see `clipup.executors.protocol.Executor`.

    An episode may take `episode_timeout` seconds. If a candidate takes longer on several workers, the run ends with an
    error, as it does for a candidate that kills its workers. (A fitness that depends on a clock would not be a pure
    function of its inputs.) Workers that round differently from each other, or from this process, end the run too,
    unless `mixed_arithmetic` accepts them.
    """

    def __init__(
        self,
        transport: Transport,
        task: Task,
        *,
        episode_timeout: float | None = None,
        mixed_arithmetic: bool = False,
    ) -> None:
        self._task = task
        self._forecast = GrowthForecast()
        self._workers = Workers(transport, episode_timeout=episode_timeout, mixed_arithmetic=mixed_arithmetic)

    @property
    def description(self) -> WorkerDescription:
        """The engine and the policy's network, as the workers say."""
        return cast(WorkerDescription, self._workers.description)

    @property
    def place(self) -> str:
        """Where evaluation runs."""
        return self._workers.place

    def evaluate(self, batch: Batch, statistics: Statistics | None, *, following: Batch | None = None) -> Outcomes:
        """Evaluate all candidates of `batch`, in order. Idle workers start `following` if it is likely to be needed."""
        self._forecast.learn(batch.generation, batch.stop)
        ahead = range(0)
        if following is not None and self._forecast.expects(following.start):
            ahead = range(following.start, following.stop)
        return self._outcomes(Population(batch, statistics, self._task.episodes), batch.start, batch.stop, ahead)

    def evaluate_center(
        self, center: FloatArray, statistics: Statistics | None, *, seed: int, generation: int, episodes: int
    ) -> Outcomes:
        """Evaluate the center on `episodes` episodes with the environment's own rewards and limits."""
        return self._outcomes(CenterEvaluation(center, statistics, seed, generation), 0, episodes)

    def sum_blocks(self, total: BlockSum) -> Iterable[tuple[NDArray[np.float64], ...]]:
        """Yield the sums of all blocks, in order. Workers make them if there is enough to do."""
        if total.size < SUMMED_BY_WORKERS:
            return (total.block(number) for number in range(total.block_count))
        return chain.from_iterable(self._shared_sums(BlockSums(total)))

    def close(self) -> None:
        """End the workers."""
        self._workers.close()

    def _outcomes(self, job: Job[Outcomes], start: int, stop: int, ahead: range = range(0)) -> Outcomes:
        _, parts = self._workers.run(job, start, stop, ahead=ahead, enough=stop)
        return Outcomes.concatenate(parts).check(self._task.label)

    def _shared_sums(self, job: BlockSums) -> Iterator[ConsecutiveSums]:
        """Yield sums as they become ready, with a bounded number of later ones under way."""
        done, window, count = 0, 2 * self._workers.size, job.total.block_count
        while done < count:
            done, parts = self._workers.run(job, done, min(count, done + window), enough=done + 1)
            window = max(window, WINDOW_BYTES // max(1, sum(array.nbytes for array in parts[0][0])))
            yield from parts


class GrowthForecast:
    """Whether the next batch of an adaptive generation is worth starting before it is asked for.

    Generations resemble each other. So a batch is expected if the generation before needed one like it. A wrong guess
    costs time on workers that were idle, and at worst the rest of their ranges. It never changes a result.

    >>> forecast = GrowthForecast()
    >>> forecast.learn(generation=0, stop=4)
    >>> forecast.expects(start=4)  # in the first generation, every batch is expected
    True
    >>> forecast.learn(generation=0, stop=8)
    >>> forecast.learn(generation=1, stop=4)
    >>> forecast.expects(start=4), forecast.expects(start=8)
    (True, False)
    """

    def __init__(self) -> None:
        self._generation: int | None = None
        self._reached = 0
        self._reached_before: int | None = None

    def learn(self, generation: int, stop: int) -> None:
        """Note that the candidates of a generation up to ``stop - 1`` were asked for."""
        if self._generation is not None and generation != self._generation:
            self._reached_before = self._reached
        self._generation, self._reached = generation, stop

    def expects(self, start: int) -> bool:
        """Return whether the batch that begins at `start` is likely to be asked for."""
        return self._reached_before is None or start < self._reached_before
