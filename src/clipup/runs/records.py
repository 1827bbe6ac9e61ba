"""One JSON line per generation.

``records.jsonl`` holds what the search did: it is a function of the configuration alone, so two equal runs have equal
bytes. What a clock says goes to ``clock.jsonl``. Lines are only ever appended; going on from a checkpoint first cuts
off the lines that are newer than it, which the resumed run then writes again, byte for byte.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from clipup.errors import FileFault
from clipup.runs.files import cannot_write, open_own

LINE_LIMIT = 64 * 1024


@dataclass(frozen=True)
class Record:
    """What happened in one generation. Scores are None when the center was not evaluated after it."""

    generation: int
    population: int
    interactions: int
    total_interactions: int
    fitness_mean: float | None
    fitness_best: float | None
    best: float | None
    """Best fitness of any candidate so far."""
    score: float | None
    """Mean return of the center over the evaluation episodes, with the environment's own reward."""
    score_standard_error: float | None
    speed: float
    max_speed: float | None
    clipped: bool
    stdev_norm: float
    gradient_norm: float
    gradient_agreement: float | None
    """Cosine between the gradients of two halves of the population."""
    nonfinite: int
    tied: float
    """Share of the candidates whose fitness equals another's."""
    population_bound: bool
    """Whether the population reached its bound before its interactions."""


@dataclass(frozen=True)
class ClockRecord:
    """What the clock said after one generation."""

    generation: int
    seconds: float
    """Training time so far, summed over all resumes."""
    steps_per_second: float


_R = TypeVar("_R", Record, ClockRecord)


def encode_line(record: Record | ClockRecord) -> bytes:
    """One line of JSON. Numbers that JSON cannot spell (nan, infinities) become null."""
    values = {name: _finite(value) for name, value in dataclasses.asdict(record).items()}
    return json.dumps(values, separators=(", ", ": "), allow_nan=False).encode("ascii") + b"\n"


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_records(path: Path) -> list[Record]:
    """Every complete record in a file; a last line cut short by a crash, or still being written, is left out."""
    return list(_read(path, Record))


def read_clock(path: Path) -> list[ClockRecord]:
    """Every complete line of a clock file."""
    return list(_read(path, ClockRecord))


def _read(path: Path, kind: type[_R]) -> Iterator[_R]:
    for number, line in enumerate(_lines(path), start=1):
        yield decode_line(line, kind, f"{path}, line {number}")


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while line := file.readline(LINE_LIMIT):
                if line.endswith(b"\n"):
                    yield line
                elif len(line) == LINE_LIMIT:
                    raise FileFault(f"{path}: a line is longer than {LINE_LIMIT} bytes; the file is damaged")
    except FileNotFoundError:
        return
    except OSError as error:
        raise FileFault(f"{path}: cannot be read: {error.strerror or error}") from error


def decode_line(line: bytes, kind: type[_R], where: str) -> _R:
    """One line as a record of that kind. Unknown keys are left aside, missing ones are an error."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FileFault(f"{where}: not a JSON line") from error
    if not isinstance(values, dict):
        raise FileFault(f"{where}: not a JSON object")
    found = cast("dict[str, object]", values)
    arguments: dict[str, object] = {}
    for entry in dataclasses.fields(kind):
        value = found.get(entry.name)
        optional = "None" in str(entry.type)
        if entry.name not in found or (value is None and not optional and "float" not in str(entry.type)):
            raise FileFault(f"{where}: {entry.name} is missing")
        if value is not None and not isinstance(value, int | float):
            raise FileFault(f"{where}: {entry.name} is not a number")
        arguments[entry.name] = math.nan if value is None and not optional else value
    return kind(**arguments)  # pyright: ignore[reportArgumentType]


class LineFile:
    """A file of lines open for appending, whose size is known to the byte."""

    def __init__(self, path: Path) -> None:
        """Open `path`, making it when it is not there."""
        self.path = path
        try:
            self._file = open_own(path, "ab", buffering=0)
            self.size = path.stat().st_size
        except OSError as error:
            raise cannot_write(path, error) from error

    def append(self, line: bytes) -> None:
        """Add one line, in one write."""
        try:
            written = self._file.write(line)
            if written != len(line):
                raise OSError(28, "no space left for a whole line")
        except OSError as error:
            raise cannot_write(self.path, error) from error
        self.size += len(line)

    def cut(self, size: int) -> None:
        """Drop everything after the first `size` bytes."""
        if size > self.size:
            raise FileFault(f"{self.path}: {self.size} bytes, but {size} were written; lines are missing")
        try:
            os.ftruncate(self._file.fileno(), size)
        except OSError as error:
            raise cannot_write(self.path, error) from error
        self.size = size

    def sync(self) -> None:
        """Wait until everything is on the disk."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def size_up_to(path: Path, generation: int) -> int:
    """How many bytes of a clock file belong to generations up to `generation`."""
    size = 0
    for line in _lines(path):
        try:
            if decode_line(line, ClockRecord, str(path)).generation > generation:
                break
        except FileFault:
            break  # the clock is a comfort; damage in it must not stop a run
        size += len(line)
    return size
