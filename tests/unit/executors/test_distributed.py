"""The executor over a transport that runs everything in this process, one range at a time."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from clipup import PGPE
from clipup.engines import EngineDescription, Outcomes, Rollout, Task
from clipup.errors import EnvironmentFault
from clipup.executors import distributed
from clipup.executors.distributed import DistributedExecutor
from clipup.executors.jobs import WorkerDescription
from clipup.executors.scheduler import AnyJob, Assignment, Event, Failed, Finished, Joined
from clipup.executors.work_queue import RangeRule
from clipup.policies import Actions, Network, Statistics
from clipup.searches import Batch
from clipup.searches.protocol import FloatArray

ACTIONS = Actions.box(np.full(1, -1, np.float32), np.ones(1, np.float32))
DESCRIPTION = WorkerDescription(EngineDescription("gymnasium", "1.0", "asked for", 2, ACTIONS), Network(2, 1))
TASK = Task("Pendulum-v1", episodes=2)


class SumWorker:
    """The fitness of a candidate is the sum of its parameters; no simulator is needed."""

    network = DESCRIPTION.network
    collect_moments = False

    def evaluate(self, rollout: Rollout) -> Outcomes:
        fitness = rollout.parameters.astype(np.float64).sum(axis=1)
        return Outcomes(fitness, fitness, np.ones(len(fitness), np.int64))


@dataclass
class OwnTransport:
    """Two workers in this process. Every ninth wait is interrupted, after its events were taken, if asked for."""

    interrupts: bool = False
    rule: RangeRule = field(default_factory=RangeRule)
    size: int = 2
    place: str = "here"
    closed: bool = False
    restarts: int = 0
    waits: int = 0
    count: int = 0
    highest: int = 0
    error: EnvironmentFault | None = None

    def __post_init__(self) -> None:
        self.jobs: dict[int, AnyJob] = {}
        self.held: dict[int, deque[Assignment]] = {}

    def publish(self, number: int, job: AnyJob) -> None:
        self.jobs[number] = job

    def assign(self, worker: int, assignment: Assignment) -> None:
        self.held[worker].append(assignment)
        self.highest = max(self.highest, assignment.stop)

    def dismiss(self, worker: int, reason: str) -> None:
        raise NotImplementedError

    def wait(self, seconds: float) -> Sequence[Event]:
        events: list[Event] = []
        if self.error is not None:
            return [Failed(1, self.error)]
        for worker, held in self.held.items():
            if held:
                done = held.popleft()
                result = self.jobs[done.job].run(SumWorker(), done.start, done.stop)  # type: ignore[arg-type]
                events.append(Finished(worker, result, 0.001))
        while len(self.held) < self.size:
            self.count += 1
            self.held[self.count] = deque()
            events.append(Joined(self.count, DESCRIPTION))
        self.waits += 1
        if self.interrupts and self.waits % 9 == 8:
            raise KeyboardInterrupt
        return events

    def restart(self) -> None:
        self.restarts += 1
        self.held.clear()

    def close(self) -> None:
        self.closed = True


def search(population: int = 12) -> PGPE:
    return PGPE(dimension=2, population_size=population, max_speed=0.2, seed=3)


def expected(batch: Batch) -> list[float]:
    return batch.candidates().astype(np.float64).sum(axis=1).tolist()


@dataclass(frozen=True)
class LineBatch:
    """Candidate i is at (i, generation): a batch that has nothing in common with PGPE's."""

    start: int
    stop: int
    generation: int = 0
    seed: int = 0

    def __len__(self) -> int:
        return self.stop - self.start

    def candidates(self, start: int | None = None, stop: int | None = None) -> FloatArray:
        first, last = self.start if start is None else start, self.stop if stop is None else stop
        assert self.start <= first <= last <= self.stop
        return np.array([(index, self.generation) for index in range(first, last)], np.float32).reshape(-1, 2)

    def until(self, stop: int) -> LineBatch:
        return dataclasses.replace(self, start=self.stop, stop=stop)

    def same_generation(self, other: object) -> bool:
        return isinstance(other, LineBatch) and other.generation == self.generation


@pytest.mark.parametrize("speculates", [True, False])
def test_a_generation_of_any_search_may_grow_batch_by_batch(speculates: bool) -> None:
    transport = OwnTransport()
    executor = DistributedExecutor(transport, TASK)
    for generation in range(3):
        batch = LineBatch(0, 7, generation)
        for _ in range(3):
            following = batch.until(batch.stop + 7)
            outcomes = executor.evaluate(batch, None, following=following if speculates else None)
            assert outcomes.fitness.tolist() == expected(batch)
            batch = following
    assert len(transport.jobs) == 3, "a job reaches the workers once a generation"


def test_other_statistics_are_another_job() -> None:
    transport = OwnTransport()
    executor = DistributedExecutor(transport, TASK)
    for number, mean in enumerate((0.0, 0.0, 1.0)):
        executor.evaluate(LineBatch(7 * number, 7 * number + 7), Statistics(np.full(2, mean), np.ones(2)))
    assert len(transport.jobs) == 2


def test_work_that_was_interrupted_anywhere_can_be_asked_for_again() -> None:
    transport = OwnTransport(interrupts=True)
    executor = DistributedExecutor(transport, TASK)
    first = search().batch()
    for generation in range(5):
        for start in (0, 12):
            batch = dataclasses.replace(first, generation=generation, start=start, stop=start + 12)
            for _ in range(20):
                try:
                    following = dataclasses.replace(batch, start=start + 12, stop=start + 24)
                    outcomes = executor.evaluate(batch, None, following=following)
                except KeyboardInterrupt:
                    continue
                break
            else:
                pytest.fail("the work never came to its end")
            assert outcomes.fitness.tolist() == expected(batch)
    assert transport.restarts


def test_workers_are_not_restarted_if_nothing_was_interrupted() -> None:
    transport = OwnTransport()
    executor = DistributedExecutor(transport, TASK)
    batch = search().batch()
    for _ in range(2):
        assert executor.evaluate(batch, None).fitness.tolist() == expected(batch)
    center = executor.evaluate_center(np.ones(2, np.float32), None, seed=1, generation=0, episodes=5)
    assert center.fitness.tolist() == [2.0] * 5
    assert not transport.restarts
    executor.close()
    assert transport.closed


def test_an_executor_whose_workers_fail_at_the_start_closes_them() -> None:
    transport = OwnTransport(error=EnvironmentFault("no simulator"))
    with pytest.raises(EnvironmentFault, match="no simulator"):
        DistributedExecutor(transport, TASK)
    assert transport.closed


@pytest.mark.parametrize("shared", [True, False])
def test_sums_are_shared_in_a_window_and_have_the_bits_of_the_search(
    shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributed, "SUMMED_BY_WORKERS", 0 if shared else 10**9)
    monkeypatch.setattr(distributed, "WINDOW_BYTES", 0)
    transport = OwnTransport()
    executor = DistributedExecutor(transport, TASK)
    one, other = search(2000), search(2000)
    fitnesses = np.sin(np.arange(2000.0))
    for each, sum_blocks in ((one, executor.sum_blocks), (other, None)):
        each.batch()
        each.tell(fitnesses, sum_blocks=sum_blocks)
    assert one.center.tobytes() == other.center.tobytes()
    assert one.stdev.tobytes() == other.stdev.tobytes()
    assert bool(transport.jobs) == shared
