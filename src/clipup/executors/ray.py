"""A crew of Ray actors: on this machine, or on as many as a cluster has."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from clipup.errors import InvalidArgument
from clipup.executors.crew import Assignment, Event, Failed, Finished, Joined, Lost
from clipup.executors.ray_cluster import Actor, Cluster, Reference
from clipup.executors.ray_worker import unpack_reply
from clipup.executors.work import Setup, Subject
from clipup.executors.worker import Description, unpack_error

GROWTH_SECONDS = 2.0
"""How often it is looked whether the cluster has become larger or smaller."""


@dataclass
class _Member:
    actor: Actor
    start: Reference
    ready: bool = False
    job: int = 0
    calls: deque[tuple[Reference, Assignment]] = field(default_factory=deque[tuple[Reference, Assignment]])
    reason: str | None = None

    @property
    def pending(self) -> Reference | None:
        """What is waited for: calls to one actor are answered in their order."""
        if not self.ready:
            return self.start
        return self.calls[0][0] if self.calls else None


class RayCrew:
    """One actor for each processor of the cluster, or as many as asked for; never more than there is room for.

    The center, the standard deviations and the statistics reach each machine once a generation, through Ray's object
    store; ranges of indices travel as plain arguments. An actor that is lost, alone or with its machine, is replaced
    where the cluster has room, and the crew follows the cluster as it grows and shrinks.

    Parameters
    ----------
    setup
        What the actors are made for.
    address
        ``"ray"`` for this machine (or whatever Ray is connected to already, or ``RAY_ADDRESS`` says); otherwise an
        address as `ray.init` takes it: ``"auto"``, ``"host:6379"``, ``"ray://host:10001"``.
    workers
        How many actors; None for one a processor.
    """

    depth = 2
    # A call of an actor costs the trainer 2 ms and 1.6 kB beside what it carries (benchmarks/executors_overhead.py).
    share = 1.5
    message = 0.002
    longest = 10.0

    def __init__(self, setup: Setup, address: str = "ray", workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise InvalidArgument(f"workers must be at least 1, got {workers}")
        self._cluster = Cluster(address, workers)
        self._wanted = workers
        self._members: dict[int, _Member] = {}
        self._count = 0
        self._target = 1
        self._subject: Reference | None = None
        self._looked = -GROWTH_SECONDS
        self._closed = False
        try:
            self._setup = self._cluster.put(setup)
            self._fill()
        except BaseException:
            self.close()
            raise

    @property
    def size(self) -> int:
        """How many actors there are meant to be."""
        return max(self._target, len(self._members))

    @property
    def description(self) -> str:
        """How many actors on how many machines."""
        actors, machines = len(self._members), self._cluster.machines()
        return f"Ray, {actors} actor{'s' if actors > 1 else ''} on {machines} machine{'s' if machines > 1 else ''}"

    def publish(self, job: int, subject: Subject) -> None:
        """Put the subject where every machine finds it."""
        self._subject = self._cluster.put(subject)

    def assign(self, member: int, assignment: Assignment) -> None:
        """Call an actor with a range, after having told it the subject."""
        one = self._members[member]
        if one.job != assignment.job and self._subject is not None:
            one.actor.prepare(assignment.job, self._subject)
            one.job = assignment.job
        one.calls.append((one.actor.run(assignment.job, assignment.start, assignment.stop), assignment))

    def wait(self, seconds: float) -> Sequence[Event]:
        """Return what the actors answered, and which of them are gone."""
        self._fill()
        numbers = {one.pending: number for number, one in self._members.items() if one.pending is not None}
        events: list[Event] = []
        for reference in self._cluster.wait(list(numbers), min(seconds, GROWTH_SECONDS)):
            number = numbers[reference]
            events.append(self._receive(number, self._members[number], reference))
        return events

    def dismiss(self, member: int, reason: str) -> None:
        """Kill an actor; the call it was at ends with an error."""
        one = self._members[member]
        if one.reason is None:
            one.reason = reason
            one.actor.kill()

    def restart(self) -> None:
        """Kill all actors, start others."""
        self._end()
        self._looked = -GROWTH_SECONDS
        self._fill()

    def close(self) -> None:
        """Kill all actors; stop Ray where it was started for this crew."""
        if not self._closed:
            self._closed = True
            self._end()
            self._cluster.close()

    def _end(self) -> None:
        members, self._members = self._members, {}
        for one in members.values():
            one.actor.kill()

    def _fill(self) -> None:
        if time.monotonic() - self._looked < GROWTH_SECONDS:
            return
        self._looked = time.monotonic()
        room = self._cluster.processors()
        target = self._target = max(1, room if self._wanted is None else min(self._wanted, room))
        while len(self._members) < target:
            self._count += 1
            actor = self._cluster.actor()
            self._members[self._count] = _Member(actor, actor.start(self._setup))
        # Actors that no machine has room for would wait for ever.
        for number in [number for number, one in self._members.items() if not one.ready][: len(self._members) - target]:
            self._members.pop(number).actor.kill()

    def _receive(self, number: int, one: _Member, reference: Reference) -> Event:
        try:
            reply = self._cluster.get(reference)
        except self._cluster.losses as error:
            del self._members[number]
            one.actor.kill()
            self._looked = min(self._looked, time.monotonic() - GROWTH_SECONDS + 0.2)
            return Lost(number, one.reason or f"was lost ({_last_line(error)})", one.ready)
        if isinstance(reply, Description):
            one.ready = True
            return Joined(number, reply)
        packed = cast(bytes, reply)
        if not one.ready:
            return Failed(number, unpack_error(packed))
        _, assignment = one.calls.popleft()
        done, data, seconds = unpack_reply(packed)
        return Finished(number, assignment, data, seconds) if done else Failed(number, unpack_error(data))


def _last_line(error: BaseException) -> str:
    """What a loss was about: Ray puts the cause last, after a traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__
