"""A crew that does anything but the same thing twice: what comes out is always the same."""

from __future__ import annotations

import logging
import random
import time
from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clipup.errors import EnvironmentFault, InvalidArgument
from clipup.executors.crew import Assignment, Event, Failed, Finished, Joined, Lost
from clipup.executors.foreman import Foreman
from clipup.executors.work import Bench, Subject
from clipup.executors.worker import Description
from clipup.policies import Actions, Network

DESCRIPTION = Description(
    Network(2, 1), Actions.box(np.full(1, -1, np.float32), np.ones(1, np.float32)), "gymnasium", "asked for"
)


@dataclass
class Echo:
    """Each index gives itself, next to the name of its subject."""

    name: str
    noun: str = "candidate"
    episodes: int = 1
    step: int = 2

    def run(self, bench: Bench | None, start: int, stop: int) -> bytes:
        return b"".join(f"{self.name}{index} ".encode() for index in range(start, stop))


@dataclass
class WildCrew:
    """Workers that join, answer, die and are replaced as dice decide."""

    dice: random.Random
    deaths: float
    size: int = 3
    depth: int = 2
    share: float = 3.0
    message: float = 0.0004
    longest: float = 3.0
    description: str = "a wild crew"
    poison: int | None = None
    count: int = 0
    closed: bool = False
    restarts: int = 0
    subject: Subject | None = None
    job: int = 0
    starting: list[int] = field(default_factory=list[int])
    members: dict[int, deque[Assignment]] = field(default_factory=dict[int, deque[Assignment]])
    prepared: dict[int, int] = field(default_factory=dict[int, int])
    log: list[Assignment] = field(default_factory=list[Assignment])

    def publish(self, job: int, subject: Subject) -> None:
        self.job, self.subject = job, subject

    def assign(self, member: int, assignment: Assignment) -> None:
        held = self.members[member]
        assert len(held) < self.depth
        if self.prepared.get(member) != assignment.job:
            assert not held, "a subject may be sent to an idle worker only"
            self.prepared[member] = assignment.job
        held.append(assignment)
        self.log.append(assignment)

    def wait(self, seconds: float) -> list[Event]:
        while len(self.members) + len(self.starting) < self.size:
            self.count += 1
            self.starting.append(self.count)
        events: list[Event] = []
        for member in [*self.starting, *self.members]:
            if self.dice.random() < 0.5:
                continue
            if member in self.starting:
                self.starting.remove(member)
                if self.dice.random() < self.deaths / 2:
                    events.append(Lost(member, "died", ready=False))
                else:
                    self.members[member] = deque()
                    events.append(Joined(member, DESCRIPTION))
                continue
            held = self.members[member]
            if held and self.poison is not None and held[0].start <= self.poison < held[0].stop:
                del self.members[member]
                events.append(Lost(member, "met its poison", ready=True))
            elif self.dice.random() < self.deaths:
                del self.members[member]
                events.append(Lost(member, "died", ready=True))
            elif held:
                done = held.popleft()
                assert self.subject is not None
                subject = self.subject if done.job == self.job else Echo("stale")
                data = subject.run(None, done.start, done.stop)  # pyright: ignore[reportArgumentType]
                events.append(Finished(member, done, data, self.dice.random() * 0.01 * len(done)))
        return events

    def dismiss(self, member: int, reason: str) -> None:
        raise NotImplementedError

    def restart(self) -> None:
        self.restarts += 1
        self.members.clear()
        self.starting.clear()

    def close(self) -> None:
        self.closed = True


def text(parts: list[bytes]) -> list[str]:
    return b"".join(parts).decode().split()


@pytest.fixture(autouse=True)
def _many_tries(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("clipup.executors.foreman.TRIES", 1000)
    caplog.set_level(logging.CRITICAL, "clipup")


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**32),
    deaths=st.floats(0, 0.4),
    size=st.integers(1, 6),
    depth=st.integers(1, 3),
    batches=st.lists(st.tuples(st.integers(1, 40), st.booleans()), min_size=1, max_size=6),
)
def test_results_are_the_same_whoever_dies_and_whatever_is_speculated_on(
    seed: int, deaths: float, size: int, depth: int, batches: list[tuple[int, bool]]
) -> None:
    foreman = Foreman(WildCrew(random.Random(seed), deaths, size, depth), episode_timeout=None)
    assert foreman.meet() == DESCRIPTION
    start = 0
    for number, (length, again) in enumerate(batches):
        if number == 0 or not again:
            start = 0
            foreman.begin(Echo(f"g{number}:"))
        name = foreman.subject
        assert isinstance(name, Echo)
        ahead = range(start + length, start + 2 * length) if again else range(0)
        parts = foreman.do(start, start + length, ahead)
        assert text(parts) == [f"{name.name}{index}" for index in range(start, start + length)]
        start += length


@settings(deadline=None)
@given(seed=st.integers(0, 2**32), deaths=st.floats(0, 0.4), count=st.integers(1, 60), window=st.integers(1, 9))
def test_a_stream_comes_in_order_and_never_runs_ahead_of_its_window(
    seed: int, deaths: float, count: int, window: int
) -> None:
    crew = WildCrew(random.Random(seed), deaths)
    foreman = Foreman(crew, episode_timeout=None)
    foreman.meet()
    foreman.begin(Echo("b", step=1))
    done, seen = 0, list[str]()
    while done < count:
        done, parts = foreman.do_some(done, min(count, done + window))
        seen += text(parts)
        assert max(assignment.stop for assignment in crew.log) <= done + window
    assert seen == [f"b{index}" for index in range(count)]


def test_the_following_batch_is_begun_while_the_tail_of_this_one_runs() -> None:
    crew = WildCrew(random.Random(1), 0.0, size=4)
    foreman = Foreman(crew, episode_timeout=None)
    foreman.meet()
    foreman.begin(Echo("g"))
    foreman.do(0, 10, range(10, 20))
    begun = [assignment for assignment in crew.log if assignment.start >= 10]
    assert begun, "idle workers were left idle"
    foreman.do(10, 20)
    handed = sorted(index for assignment in crew.log for index in range(assignment.start, assignment.stop))
    assert handed == list(range(20)), "what was begun early is not done twice"


@dataclass
class CountingCrew(WildCrew):
    """Knows for each range given ahead of need what all would hold if they held as much, and what was not done."""

    finished: int = 0
    ahead: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def assign(self, member: int, assignment: Assignment) -> None:
        super().assign(member, assignment)
        held = self.members[member]
        if len(held) > 1:
            self.ahead.append((sum(map(len, held)) * len(self.members), 400 - self.finished))

    def wait(self, seconds: float) -> list[Event]:
        events = super().wait(seconds)
        self.finished += sum(len(event.assignment) for event in events if isinstance(event, Finished))
        return events


@pytest.mark.parametrize("share", [1.0, 1.5, 3.0])
def test_nobody_is_given_more_than_an_even_share_ahead_of_need(share: float) -> None:
    crew = CountingCrew(random.Random(1), 0.0, size=2, share=share)
    foreman = Foreman(crew, episode_timeout=None)
    foreman.meet()
    foreman.begin(Echo("a"))
    foreman.do(0, 400)
    assert crew.ahead
    assert all(held <= unfinished for held, unfinished in crew.ahead)


def test_a_candidate_that_ends_every_worker_ends_the_run_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clipup.executors.foreman.TRIES", 3)
    foreman = Foreman(WildCrew(random.Random(2), 0.0, poison=13), episode_timeout=None)
    foreman.meet()
    foreman.begin(Echo("g"))
    with pytest.raises(EnvironmentFault, match=r"^candidate 13 ended 3 workers in a row; the last one met its poison"):
        foreman.do(0, 40)


def test_a_candidate_that_nobody_asked_for_yet_ends_nothing() -> None:
    # Candidate 1 is slow, so that the others get on to the batch that may follow, and to the poison in it.
    class Slow(WildCrew):
        losses: int = 0

        def wait(self, seconds: float) -> list[Event]:
            kept = {}
            if self.losses < 3:
                kept = {m: held for m, held in self.members.items() if held and held[0].start <= 1 < held[0].stop}
            self.members = {m: held for m, held in self.members.items() if m not in kept}
            self.size = 4 - len(kept)
            events = super().wait(seconds)
            self.members |= kept
            self.losses += sum(isinstance(event, Lost) for event in events)
            return events

    crew = Slow(random.Random(6), 0.0, size=4, poison=11)
    foreman = Foreman(crew, episode_timeout=None)
    foreman.meet()
    foreman.begin(Echo("g"))
    assert text(foreman.do(0, 10, range(10, 20))) == [f"g{index}" for index in range(10)]
    assert crew.losses >= 3, "the poison was met"
    with pytest.raises(EnvironmentFault, match="candidate 11 ended"):
        foreman.do(10, 20)
    foreman.begin(Echo("h"))
    assert text(foreman.do(0, 10)) == [f"h{index}" for index in range(10)]


def test_workers_that_would_compute_something_else_are_refused() -> None:
    class Mixed(WildCrew):
        def wait(self, seconds: float) -> list[Event]:
            return [Joined(1, DESCRIPTION), Joined(2, replace(DESCRIPTION, engine="envpool"))]

    with pytest.raises(EnvironmentFault, match="one runs gymnasium, another envpool"):
        Foreman(Mixed(random.Random(7), 0.0), episode_timeout=None).meet()


def test_blocks_of_a_gradient_are_shared_out_where_candidates_would_be_kept_together() -> None:
    class Pooled(WildCrew):
        def wait(self, seconds: float) -> list[Event]:
            return [
                replace(event, description=replace(DESCRIPTION, engine="envpool"))
                if isinstance(event, Joined)
                else event
                for event in super().wait(seconds)
            ]

    crew = Pooled(random.Random(8), 0.0, size=4)
    foreman = Foreman(crew, episode_timeout=None)
    foreman.meet()
    foreman.begin(Echo("b", noun="gradient block", episodes=0, step=1))
    foreman.do(0, 25)
    assert len(crew.log) > 1


def test_a_range_keeps_the_time_that_it_was_given() -> None:
    class Watched(WildCrew):
        dismissed: int = 0

        def dismiss(self, member: int, reason: str) -> None:
            self.dismissed += 1

    crew = Watched(random.Random(9), 0.0, size=2)
    foreman = Foreman(crew, episode_timeout=0.05)
    foreman.meet()
    foreman.begin(Echo("g", episodes=1000))
    foreman.do(0, 4, range(4, 40))
    foreman.begin(Echo("h", episodes=1))
    for held in foreman._held.values():
        held.append(Assignment(1, 4, 6))  # still at the batch that turned out not to be needed
    foreman._began = dict.fromkeys(foreman._held, time.monotonic() - 0.2)
    foreman._limits[1] = 50.0
    foreman._patience()
    assert crew.dismissed == 0


def test_workers_that_never_start_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clipup.executors.foreman.TRIES", 3)
    foreman = Foreman(WildCrew(random.Random(3), 2.0, size=2), episode_timeout=None)
    with pytest.raises(EnvironmentFault, match="8 workers in a row were lost while they started; the last one died"):
        foreman.meet()


def test_an_error_that_a_worker_reports_is_raised_and_not_tried_again() -> None:
    class Refusing(WildCrew):
        def wait(self, seconds: float) -> list[Event]:
            return [Failed(1, InvalidArgument("no such environment"))]

    with pytest.raises(InvalidArgument, match="no such environment"):
        Foreman(Refusing(random.Random(4), 0.0), episode_timeout=None).meet()


def test_work_that_was_interrupted_anywhere_can_be_asked_for_again() -> None:
    class Interrupted(BaseException):
        pass

    class Startled(WildCrew):
        calls: int = 0

        def wait(self, seconds: float) -> list[Event]:
            events = super().wait(seconds)
            self.calls += 1
            if self.calls % 9 == 8:
                raise Interrupted  # what happened is lost, as when a signal comes in between
            return events

    crew = Startled(random.Random(5), 0.0)
    foreman = Foreman(crew, episode_timeout=None)
    foreman.meet()
    for generation in range(5):
        for _ in range(20):
            try:
                foreman.begin(Echo(f"g{generation}:"))
                parts = foreman.do(0, 8)
            except Interrupted:
                continue
            break
        assert text(parts) == [f"g{generation}:{index}" for index in range(8)]
    assert crew.restarts
