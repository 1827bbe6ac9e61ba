"""The scheduler, driven by events that dice choose: without processes, clocks or waiting."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clipup.engines import EngineDescription, Outcomes
from clipup.errors import EnvironmentFault, InvalidArgument
from clipup.executors import scheduler as module
from clipup.executors.fingerprint import Fingerprint
from clipup.executors.jobs import Worker, WorkerDescription
from clipup.executors.scheduler import (
    Action,
    Assign,
    Assignment,
    Dismiss,
    Failed,
    Finished,
    Joined,
    Lost,
    Publish,
    Scheduler,
    Stop,
    Warn,
)
from clipup.executors.work_queue import RangeRule
from clipup.policies import Actions, Network

ACTIONS = Actions.box(np.full(1, -1, np.float32), np.ones(1, np.float32))
DESCRIPTION = WorkerDescription(EngineDescription("gymnasium", "1.0", "asked for", 2, ACTIONS), Network(2, 1))


@dataclass(frozen=True)
class Echo:
    """A job whose results are its indices, next to its name."""

    name: str
    noun: str = "candidate"
    episodes: int = 1
    step: int = 2

    def run(self, worker: Worker | None, start: int, stop: int) -> Outcomes:
        return [(self.name, index) for index in range(start, stop)]  # type: ignore[return-value]

    def continues(self, earlier: object) -> bool:
        return self == earlier


@dataclass
class Simulation:
    """A scheduler, and imaginary workers that join, finish, die and are replaced as dice decide."""

    dice: random.Random
    deaths: float = 0.0
    size: int = 3
    rule: RangeRule = field(default_factory=RangeRule)
    episode_timeout: float | None = None
    description: WorkerDescription = DESCRIPTION
    poison: int | None = None
    slow: int | None = None
    """A worker that runs this index does not finish."""

    def __post_init__(self) -> None:
        self.now = 100.0
        self.scheduler = Scheduler(self.rule, now=self.now, episode_timeout=self.episode_timeout)
        self.count = 0
        self.starting: list[int] = []
        self.workers: dict[int, deque[Assignment]] = {}
        self.known: dict[int, int] = {}
        self.jobs: dict[int, Echo] = {}
        self.assigned: list[Assignment] = []
        self.dismissed: dict[int, str] = {}
        self.warnings: list[str] = []
        self.meet()

    def meet(self) -> None:
        while self.scheduler.description is None:
            self.step()

    def run(self, job: Echo, start: int, stop: int, ahead: range = range(0)) -> list[tuple[str, int]]:
        """Have indices done, and return their results."""
        self.perform(self.scheduler.ask(job, start, stop, ahead))
        while self.scheduler.ready(start) < stop:
            self.step()
        assert self.scheduler.ready(start) == stop
        return self.collect(start, stop)

    def collect(self, start: int, stop: int) -> list[tuple[str, int]]:
        return [pair for part in self.scheduler.collect(start, stop) for pair in part]  # type: ignore[misc]

    def step(self) -> None:
        self.now += 0.01
        self.perform(self.scheduler.tick(self.now, self.size))
        assert 0 < self.scheduler.patience(self.now) <= 1
        for event in list(self.events()):
            self.perform(self.scheduler.handle(event, self.now))

    def perform(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Publish(number, job):
                    assert number not in self.jobs
                    assert isinstance(job, Echo)
                    self.jobs[number] = job
                case Assign(worker, assignment):
                    held = self.workers[worker]
                    assert len(held) < self.rule.depth
                    if self.known.get(worker) != assignment.job:
                        assert not held, "a new job goes only to an idle worker"
                        self.known[worker] = assignment.job
                    held.append(assignment)
                    self.assigned.append(assignment)
                case Dismiss(worker, reason):
                    assert worker not in self.dismissed, "once is enough"
                    self.dismissed[worker] = reason
                case Warn(message):
                    self.warnings.append(message)
                case Stop(error):
                    raise error

    def events(self) -> Iterator[Joined | Finished | Lost | Failed]:
        while len(self.workers) + len(self.starting) < self.size:
            self.count += 1
            self.starting.append(self.count)
        for worker in [*self.starting, *self.workers]:
            if self.dice.random() < 0.5:
                continue
            if worker in self.starting:
                self.starting.remove(worker)
                if self.dice.random() < self.deaths / 2:
                    yield Lost(worker, "died", ready=False)
                else:
                    self.workers[worker] = deque()
                    yield Joined(worker, self.description)
                continue
            held = self.workers[worker]
            running = range(held[0].start, held[0].stop) if held else range(0)
            if worker in self.dismissed:
                yield self.lose(worker, self.dismissed[worker])
            elif self.poison is not None and self.poison in running:
                yield self.lose(worker, "met its poison")
            elif self.dice.random() < self.deaths:
                yield self.lose(worker, "died")
            elif held and self.slow not in running:
                done = held.popleft()
                result = self.jobs[done.job].run(None, done.start, done.stop)
                yield Finished(worker, result, self.dice.random() * 0.01 * len(done))

    def lose(self, worker: int, reason: str) -> Lost:
        del self.workers[worker]
        return Lost(worker, reason, ready=True)


def expected(job: Echo, start: int, stop: int) -> list[tuple[str, int]]:
    return [(job.name, index) for index in range(start, stop)]


@pytest.fixture
def many_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TRIES", 1000)


@pytest.mark.usefixtures("many_tries")
@given(
    seed=st.integers(0, 2**32),
    deaths=st.floats(0, 0.4),
    size=st.integers(1, 6),
    depth=st.integers(1, 3),
    batches=st.lists(st.tuples(st.integers(1, 40), st.booleans(), st.booleans()), min_size=1, max_size=6),
)
def test_every_index_comes_once_and_in_order_whatever_joins_dies_or_is_speculated_on(
    seed: int, deaths: float, size: int, depth: int, batches: list[tuple[int, bool, bool]]
) -> None:
    simulation = Simulation(random.Random(seed), deaths, size, RangeRule(depth=depth))
    job, start = Echo("g0"), 0
    for number, (length, continued, speculated) in enumerate(batches):
        if not continued:
            job, start = Echo(f"g{number}"), 0
        stop = start + length
        ahead = range(stop, stop + length) if speculated else range(0)
        assert simulation.run(job, start, stop, ahead) == expected(job, start, stop)
        start = stop


def test_fewer_indices_than_were_begun_may_be_asked_for() -> None:
    simulation = Simulation(random.Random(1))
    simulation.perform(simulation.scheduler.ask(Echo("g"), 0, 40))
    for _ in range(10):
        simulation.step()
    assert simulation.run(Echo("g"), 0, 7) == expected(Echo("g"), 0, 7)


@pytest.mark.usefixtures("many_tries")
@given(seed=st.integers(0, 2**32), deaths=st.floats(0, 0.4), count=st.integers(1, 60), window=st.integers(1, 9))
def test_a_stream_comes_in_order_and_stays_within_its_window(seed: int, deaths: float, count: int, window: int) -> None:
    simulation = Simulation(random.Random(seed), deaths)
    job = Echo("b", noun="gradient block", episodes=0, step=1)
    done, seen = 0, list[tuple[str, int]]()
    while done < count:
        simulation.perform(simulation.scheduler.ask(job, done, min(count, done + window)))
        while (end := simulation.scheduler.ready(done)) == done:
            simulation.step()
        seen += simulation.collect(done, end)
        done = end
        assert max(assignment.stop for assignment in simulation.assigned) <= done + window
    assert seen == expected(job, 0, count)
    assert len(simulation.jobs) == 1, "the job is published once"


# -- speculation -------------------------------------------------------------------------------------------------------


def test_idle_workers_begin_the_next_batch_which_is_then_not_done_twice() -> None:
    simulation = Simulation(random.Random(1), size=4)
    simulation.run(Echo("g"), 0, 10, range(10, 20))
    assert any(assignment.start >= 10 for assignment in simulation.assigned), "idle workers stayed idle"
    simulation.run(Echo("g"), 10, 20)
    indices = sorted(index for assignment in simulation.assigned for index in range(assignment.start, assignment.stop))
    assert indices == list(range(20))
    assert len(simulation.jobs) == 1


@pytest.mark.parametrize(("job", "start", "stop"), [(Echo("other"), 0, 8), (Echo("g"), 10, 14), (Echo("g"), 0, 10)])
def test_speculation_that_is_not_asked_for_is_dropped(job: Echo, start: int, stop: int) -> None:
    simulation = Simulation(random.Random(1), size=4)
    simulation.run(Echo("g"), 0, 10, range(10, 20))
    assert simulation.run(job, start, stop) == expected(job, start, stop)
    assert list(simulation.jobs) == [1, 2]
    later = [assignment for assignment in simulation.assigned if assignment.job == 2]
    assert sorted(i for one in later for i in range(one.start, one.stop)) == list(range(start, stop))


def test_speculation_waits_until_nothing_that_was_asked_for_is_left() -> None:
    simulation = Simulation(random.Random(2), size=4)
    simulation.run(Echo("g"), 0, 50, range(50, 100))
    starts = [assignment.start for assignment in simulation.assigned]
    assert starts == sorted(starts)


def test_a_fault_in_the_next_batch_counts_only_if_that_batch_is_asked_for() -> None:
    for asks in (False, True):
        # Index 1 is slow, so that the others go on with the next batch, and meet the poison in it.
        simulation = Simulation(random.Random(6), size=4, poison=11, slow=1)
        simulation.perform(simulation.scheduler.ask(Echo("g"), 0, 10, range(10, 1000)))
        while not any("may not be needed" in message for message in simulation.warnings):
            simulation.step()
        handed = len(simulation.assigned)
        for _ in range(20):
            simulation.step()
        assert max(assignment.stop for assignment in simulation.assigned) < 1000
        assert len(simulation.assigned) == handed, "speculation ends there"
        simulation.slow = None
        while simulation.scheduler.ready(0) < 10:
            simulation.step()
        assert simulation.collect(0, 10) == expected(Echo("g"), 0, 10)
        if asks:
            with pytest.raises(EnvironmentFault, match="candidate 11 ended 3 workers in a row"):
                simulation.run(Echo("g"), 10, 1000)
        else:
            assert simulation.run(Echo("h"), 0, 10) == expected(Echo("h"), 0, 10)


# -- losses ------------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32), poison=st.integers(0, 39), size=st.integers(1, 5))
def test_a_candidate_that_ends_every_worker_ends_the_run_by_its_name(seed: int, poison: int, size: int) -> None:
    simulation = Simulation(random.Random(seed), size=size, poison=poison)
    message = rf"^candidate {poison} ended 3 workers in a row; the last one met its poison"
    with pytest.raises(EnvironmentFault, match=message):
        simulation.run(Echo("g"), 0, 40)


def test_a_loss_is_reported_with_what_the_worker_ran() -> None:
    simulation = Simulation(random.Random(1), size=1)
    simulation.perform(simulation.scheduler.ask(Echo("g"), 0, 4))
    simulation.perform(simulation.scheduler.tick(simulation.now, 1))
    (worker,) = simulation.workers
    simulation.perform(simulation.scheduler.handle(simulation.lose(worker, "was killed by SIGKILL"), simulation.now))
    assert simulation.warnings == [
        "a worker was killed by SIGKILL while running candidates 0..1; it is replaced, and they run again"
    ]
    assert simulation.run(Echo("g"), 0, 4) == expected(Echo("g"), 0, 4)


def test_workers_that_never_start_end_the_run() -> None:
    message = "8 workers in a row were lost while they started; the last one died"
    with pytest.raises(EnvironmentFault, match=message):
        Simulation(random.Random(3), deaths=2.0, size=2)
    with pytest.raises(EnvironmentFault, match="30 workers in a row"):
        Simulation(random.Random(3), deaths=2.0, size=10)


def test_losses_at_the_start_count_only_in_a_row() -> None:
    scheduler = Scheduler(RangeRule(), now=0.0)
    scheduler.tick(0.0, 1)
    for worker in range(0, 100, 2):
        (action,) = scheduler.handle(Lost(worker, "died", ready=False), 1.0)
        assert action == Warn("a worker died while it started; another one is started")
        scheduler.handle(Joined(worker + 1, DESCRIPTION), 1.0)


def test_an_error_that_a_worker_reports_ends_the_run_and_is_not_tried_again() -> None:
    error = InvalidArgument("no such environment")
    assert Scheduler(RangeRule(), now=0.0).handle(Failed(1, error), 1.0) == [Stop(error)]


def differing(**changes: object) -> WorkerDescription:
    return replace(DESCRIPTION, engine=replace(DESCRIPTION.engine, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (differing(name="envpool", version="2.0"), "one runs gymnasium 1.0, another envpool 2.0"),
        (differing(version="1.1"), "one runs gymnasium 1.0, another gymnasium 1.1"),
        (replace(DESCRIPTION, network=Network(2, 1, (8,))), "workers differ"),
    ],
)
def test_workers_that_would_compute_something_else_are_refused(other: WorkerDescription, message: str) -> None:
    scheduler = Scheduler(RangeRule(), now=0.0)
    assert scheduler.handle(Joined(1, DESCRIPTION), 1.0) == []
    assert scheduler.handle(Joined(2, differing(reason="it was there")), 2.0) == []
    (action,) = scheduler.handle(Joined(3, other), 3.0)
    assert isinstance(action, Stop)
    assert message in str(action.error)


ONE, OTHER = Fingerprint("aa", "bb"), Fingerprint("aa", "cc")


def test_a_worker_that_rounds_differently_ends_the_run_unless_that_is_accepted_and_noted() -> None:
    strict, mixed = (Scheduler(RangeRule(), now=0.0, mixed_arithmetic=accepted) for accepted in (False, True))
    for scheduler in (strict, mixed):
        assert scheduler.handle(Joined(1, replace(DESCRIPTION, fingerprint=ONE)), 1.0) == []
        assert scheduler.handle(Joined(2, replace(DESCRIPTION, fingerprint=Fingerprint("aa", ""))), 1.0) == []
    (stop,) = strict.handle(Joined(3, replace(DESCRIPTION, fingerprint=OTHER)), 2.0)
    assert isinstance(stop, Stop)
    assert "other bits in the simulator (bb and cc); use machines of one kind, or accept" in str(stop.error)
    (warning,) = mixed.handle(Joined(3, replace(DESCRIPTION, fingerprint=OTHER)), 2.0)
    assert isinstance(warning, Warn)
    assert mixed.handle(Joined(4, replace(DESCRIPTION, fingerprint=OTHER)), 3.0) == [], "it is said once"
    assert mixed.description is not None and strict.description is not None
    assert mixed.description.notes == (warning.message,) and "cannot be repeated" in warning.message
    assert mixed.description.fingerprint == ONE and strict.description.notes == ()


def test_workers_are_forgotten_and_the_same_work_can_be_asked_for_again() -> None:
    simulation = Simulation(random.Random(5))
    for steps in range(30):
        simulation.perform(simulation.scheduler.ask(Echo("g"), 0, 8, range(8, 16)))
        for _ in range(steps):
            simulation.step()
        simulation.workers.clear()
        simulation.starting.clear()
        simulation.scheduler.forget_workers()
        assert simulation.run(Echo("g"), 0, 8) == expected(Echo("g"), 0, 8)


# -- sizes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [1.0, 1.5, 3.0])
def test_no_worker_gets_more_than_an_even_share_before_it_needs_it(share: float) -> None:
    simulation = Simulation(random.Random(1), size=2, rule=RangeRule(share=share))
    simulation.perform(simulation.scheduler.ask(Echo("a"), 0, 400))
    finished = spares = 0
    while simulation.scheduler.ready(0) < 400:
        for action in simulation.scheduler.tick(simulation.now, simulation.size):
            simulation.perform([action])
            assert isinstance(action, Assign)
            held = simulation.workers[action.worker]
            if len(held) > 1:
                spares += 1
                assert sum(map(len, held)) * len(simulation.workers) <= 400 - finished
        before = {worker: list(held) for worker, held in simulation.workers.items()}
        for event in list(simulation.events()):
            if isinstance(event, Finished):
                finished += len(before[event.worker][0])
            simulation.perform(simulation.scheduler.handle(event, simulation.now))
    assert spares


@pytest.mark.parametrize(
    ("noun", "episodes", "timeout", "size"),
    [("candidate", 1, None, 32), ("candidate", 1, 9.0, 2), ("gradient block", 0, None, 2)],
)
def test_candidates_go_in_groups_that_the_engine_likes_if_no_clock_runs(
    noun: str, episodes: int, timeout: float | None, size: int
) -> None:
    pooled = differing(name="envpool")
    simulation = Simulation(random.Random(8), size=4, episode_timeout=timeout, description=pooled)
    simulation.run(Echo("b", noun, episodes, step=1), 0, 200)
    assert len(simulation.assigned[0]) == size
    if timeout is not None:
        assert {len(assignment) for assignment in simulation.assigned} == {2}


# -- time --------------------------------------------------------------------------------------------------------------


def hang(simulation: Simulation, seconds: float) -> None:
    """Let time pass in which no worker finishes anything."""
    end = simulation.now + seconds
    while simulation.now < end:
        simulation.now += min(0.01, simulation.scheduler.patience(simulation.now))
        simulation.perform(simulation.scheduler.tick(simulation.now, simulation.size))


def test_a_worker_that_takes_too_long_is_dismissed_once_and_its_work_runs_elsewhere() -> None:
    simulation = Simulation(random.Random(4), size=1, episode_timeout=0.5)
    job = Echo("g", episodes=2)
    simulation.perform(simulation.scheduler.ask(job, 0, 8))
    hang(simulation, 1.9)
    assert not simulation.dismissed, "two candidates of two episodes may take 2 s"
    hang(simulation, 1.0)
    assert list(simulation.dismissed.values()) == ["was ended after 2 s (episode_timeout is 0.5 s)"]
    while simulation.scheduler.ready(0) < 8:
        simulation.step()
    assert simulation.collect(0, 8) == expected(job, 0, 8)


def test_the_clock_of_a_range_starts_when_the_worker_turns_to_it() -> None:
    simulation = Simulation(random.Random(4), size=1, episode_timeout=1.0)
    simulation.perform(simulation.scheduler.ask(Echo("g"), 0, 40))
    simulation.perform(simulation.scheduler.tick(simulation.now, 1))
    ((worker, held),) = simulation.workers.items()
    assert len(held) == 2, "the second range waits for the first"
    hang(simulation, 1.5)
    done = held.popleft()
    result = simulation.jobs[done.job].run(None, done.start, done.stop)
    simulation.perform(simulation.scheduler.handle(Finished(worker, result, 1.5), simulation.now))
    hang(simulation, 1.5)
    assert not simulation.dismissed
    hang(simulation, 1.0)
    assert simulation.dismissed


def test_a_candidate_that_always_hangs_ends_the_run() -> None:
    simulation = Simulation(random.Random(4), size=2, episode_timeout=0.2, slow=3)
    with pytest.raises(EnvironmentFault, match=r"^candidate 3 ended 3 workers in a row; the last one was ended after"):
        simulation.run(Echo("g"), 0, 8)


def test_a_range_of_an_earlier_job_keeps_its_own_limit() -> None:
    simulation = Simulation(random.Random(9), size=2, episode_timeout=0.05)
    simulation.perform(simulation.scheduler.ask(Echo("g", episodes=1000), 0, 4, range(4, 40)))
    simulation.perform(simulation.scheduler.tick(simulation.now, 2))
    assert all(simulation.workers.values())
    simulation.perform(simulation.scheduler.ask(Echo("h"), 0, 4))
    hang(simulation, 5.0)
    assert not simulation.dismissed
    assert simulation.run(Echo("h"), 0, 4) == expected(Echo("h"), 0, 4)


def test_a_slow_start_is_mentioned_once() -> None:
    scheduler = Scheduler(RangeRule(), now=0.0)
    assert scheduler.tick(9.9, 2) == []
    (action,) = scheduler.tick(10.1, 2)
    assert isinstance(action, Warn)
    assert "no worker is ready after 10 s" in action.message
    assert scheduler.tick(30.0, 2) == []
