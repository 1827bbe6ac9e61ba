"""The interface that every tracker offers."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from clipup.errors import InvalidArgument
from clipup.runs.config import RunConfig
from clipup.runs.records import ClockRecord, Record
from clipup.runs.rundir import Status


@dataclass(frozen=True)
class RunInfo:
    """What is known when a run starts or is resumed."""

    config: RunConfig
    path: Path | None
    generation: int
    """Generations already made: 0 for a new run."""
    policy: str
    parameter_count: int
    engine: str
    engine_reason: str
    executor: str


class Tracker(Protocol):
    """Told about the run as it goes. A tracker never changes a run. One that derives from this ignores the rest."""

    def begin(self, info: RunInfo) -> None:
        """The run starts or is resumed."""

    def generation(self, record: Record, clock: ClockRecord) -> None:
        """A generation ended."""

    def message(self, text: str) -> None:
        """Something happened that a person should know."""

    def end(self, status: Status) -> None:
        """The run ended, for whatever reason."""


def measurements(record: Record, clock: ClockRecord) -> dict[str, float]:
    """Every number of a generation that is known, by name; booleans as 0 and 1."""
    values = {**dataclasses.asdict(record), **dataclasses.asdict(clock)}
    return {name: float(value) for name, value in values.items() if value is not None and name != "generation"}


@contextmanager
def starting(service: str, remedy: str) -> Generator[None]:
    """Turn anything that a tracking service raises when it starts into one line."""
    try:
        yield
    except Exception as error:
        reason = str(error).strip().split("\n", maxsplit=1)[0] or type(error).__name__
        raise InvalidArgument(f"{service} did not start: {reason}; {remedy}") from error
