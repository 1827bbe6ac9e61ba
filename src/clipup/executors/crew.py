"""Workers that come and go: what `Foreman` needs to know of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from clipup.errors import ClipUpError
from clipup.executors.work import Subject
from clipup.executors.worker import Description


@dataclass(frozen=True)
class Assignment:
    """Indices ``start … stop - 1`` of the subject published as `job`."""

    job: int
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def __str__(self) -> str:
        return str(self.start) if len(self) == 1 else f"{self.start}..{self.stop - 1}"


@dataclass(frozen=True)
class Joined:
    """A worker is ready."""

    member: int
    description: Description


@dataclass(frozen=True)
class Finished:
    """A worker has done the oldest of its assignments, in so many seconds."""

    member: int
    assignment: Assignment
    data: bytes
    seconds: float


@dataclass(frozen=True)
class Lost:
    """A worker is gone and will not come back under this number; `ready` says whether it had joined."""

    member: int
    reason: str
    ready: bool


@dataclass(frozen=True)
class Failed:
    """A worker raised an error, which would come again anywhere: evaluation is a pure function."""

    member: int
    error: ClipUpError


Event = Joined | Finished | Lost | Failed


class Crew(Protocol):
    """Some workers, each known by a number that is never used twice. A lost one is replaced without being asked for."""

    @property
    def depth(self) -> int:
        """How many assignments a worker may hold, the one it works on included."""
        ...

    @property
    def share(self) -> float:
        """How much smaller than an even share of what is left an assignment is."""
        ...

    @property
    def message(self) -> float:
        """How many seconds an assignment costs the trainer."""
        ...

    @property
    def longest(self) -> float:
        """How many seconds an assignment should last at most."""
        ...

    @property
    def size(self) -> int:
        """How many workers there are meant to be."""
        ...

    @property
    def description(self) -> str:
        """What the workers are, in a few words for people."""
        ...

    def publish(self, job: int, subject: Subject) -> None:
        """Make `subject` known: the assignments that follow belong to it."""
        ...

    def assign(self, member: int, assignment: Assignment) -> None:
        """Give a worker something to do; the first assignment of a job goes only to a worker that holds none."""
        ...

    def wait(self, seconds: float) -> Sequence[Event]:
        """Return what has happened, waiting for at most so long for something to happen."""
        ...

    def dismiss(self, member: int, reason: str) -> None:
        """End a worker that took too long; `Lost` follows."""
        ...

    def restart(self) -> None:
        """End all workers, forget what they did, and start others."""
        ...

    def close(self) -> None:
        """End all workers; may be called more than once."""
        ...
