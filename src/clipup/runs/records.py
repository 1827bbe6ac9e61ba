"""One JSON line per generation.

``records.jsonl`` holds what the search did. It is a function of the configuration alone, so two equal runs have equal
bytes. What a clock says goes to ``clock.jsonl``. Lines are only ever appended. A run that goes on from a checkpoint
first cuts off the lines that are newer than it, and then writes them again, byte for byte.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

from clipup.errors import FileFault, reason
from clipup.runs.files import is_own, open_own

LINE_LIMIT = 64 * 1024
FILE_LIMIT = 512 * 1024 * 1024
LARGEST = 1e300
"""Numbers beyond this count as unknown: sums and differences of them would not be finite."""


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
    figures: Mapping[str, float] = field(default_factory=dict[str, float])
    """What callbacks added, by name."""


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
    values: dict[str, object] = {name: _finite(value) for name, value in dataclasses.asdict(record).items()}
    figures = values.pop("figures", None)
    if isinstance(figures, Mapping) and figures:
        added = cast("Mapping[str, float]", figures)
        values["figures"] = {name: _finite(value) for name, value in added.items()}
    return json.dumps(values, separators=(", ", ": "), allow_nan=False).encode("ascii") + b"\n"


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_records(path: Path) -> list[Record]:
    """Every record in a file, or FileFault where one is damaged; a file that is not there has none."""
    return _all_or_fault(path, Record)


def read_clock(path: Path) -> list[ClockRecord]:
    """Every line of a clock file, or FileFault where one is damaged."""
    return _all_or_fault(path, ClockRecord)


def _all_or_fault(path: Path, kind: type[_R]) -> list[_R]:
    lines, problems = read_lines(path, kind)
    if problems:
        raise FileFault(f"{path}: {problems[0]}")
    return lines


def read_lines(path: Path, kind: type[_R]) -> tuple[list[_R], list[str]]:
    """Return every line of a file that can be read, in order, and what is wrong with the rest, in words.

    Nothing raises for what the file holds. A last line that is not whole is left out without a word: a crash cut it
    short, or it is being written. A field that a line lacks, as in a file of another version, is None, or nan where
    the field is never None. Of a generation that stands there twice, the later line counts.
    """
    try:
        if not is_own(path):
            return [], ["cannot be read: a link, or not a regular file"]
        if path.stat().st_size > FILE_LIMIT:
            return [], [f"larger than {FILE_LIMIT >> 20} MB, not read"]
        whole, ended, rest = path.read_bytes().rpartition(b"\n")
    except FileNotFoundError:
        return [], []
    except OSError as error:
        return [], [f"cannot be read: {reason(error)}"]
    lines = whole.split(b"\n") if ended else []
    problems: list[str] = []
    found = _decode_at_once(lines, kind)
    if found is None:
        found, problems = _decode_each(lines, kind)
    if len(rest) >= LINE_LIMIT:
        problems.append(f"line {len(lines) + 1}: longer than {LINE_LIMIT} bytes; the file is damaged")
    if any(one.generation >= two.generation for one, two in itertools.pairwise(found)):
        found = [line for _, line in sorted({line.generation: line for line in found}.items())]
    return found, problems


def _decode_at_once(lines: list[bytes], kind: type[_R]) -> list[_R] | None:
    """All lines in one go, ten times as fast; None when there is anything to be careful about."""
    found: list[_R] = []
    try:
        rows: list[dict[str, float | None]] = json.loads(b"[" + b",".join(lines) + b"]")
        if len(rows) != len(lines) or max(map(len, lines), default=0) > LINE_LIMIT:
            return None
        for row in rows:
            cells = {name: row[name] for name, _ in _fields(kind)}
            if type(cells["generation"]) is not int:
                return None
            if not all(
                is_sound(cells[name]) or (cells[name] is None and "None" in form) for name, form in _fields(kind)
            ):
                return None
            found.append(kind(**cells, **_figures(kind, row)))  # pyright: ignore[reportArgumentType]  (checked above)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return found


def _decode_each(lines: list[bytes], kind: type[_R]) -> tuple[list[_R], list[str]]:
    found: list[_R] = []
    gaps: set[str] = set()
    bad: list[str] = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append(decode_line(line, kind, f"line {number}", gaps))
        except FileFault as fault:
            bad.append(str(fault))
    problems = [f"of another version of clipup, without {', '.join(sorted(gaps))}"] if gaps else []
    if bad:
        problems.append(bad[0] + (f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""))
    return found, problems


def decode_line(line: bytes, kind: type[_R], where: str, gaps: set[str] | None = None) -> _R:
    """One line as a record of that kind, or FileFault. Unknown keys are ignored.

    The names of missing fields are added to `gaps`; without `gaps` a missing field is an error.
    """
    if len(line) > LINE_LIMIT:
        raise FileFault(f"{where}: longer than {LINE_LIMIT} bytes; the file is damaged")
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FileFault(f"{where}: not a JSON line") from error
    if not isinstance(values, dict):
        raise FileFault(f"{where}: not a JSON object")
    found = cast("dict[str, object]", values)
    if "generation" in found and type(found["generation"]) is not int:
        raise FileFault(f"{where}: generation is not a whole number")
    cells: dict[str, object] = {}
    for name, form in _fields(kind):
        value = found.get(name)
        if value is not None and not isinstance(value, int | float):
            raise FileFault(f"{where}: {name} is not a number")
        if name not in found or (value is None and form in ("int", "bool")):
            if gaps is None or name == "generation":
                raise FileFault(f"{where}: {name} is missing")
            gaps.add(name)
        cells[name] = value if is_sound(value) else None if "None" in form else math.nan
    cells |= _figures(kind, found)
    return kind(**cells)  # pyright: ignore[reportArgumentType]  (each cell is a number, or missing as nan)


def is_sound(value: object) -> bool:
    """Whether a value from a file is a number to compute with: finite, and so are its sums and differences."""
    return isinstance(value, int | float) and abs(value) < LARGEST


@functools.cache
def _fields(kind: type[Record] | type[ClockRecord]) -> tuple[tuple[str, str], ...]:
    return tuple((entry.name, str(entry.type)) for entry in dataclasses.fields(kind) if entry.name != "figures")


def _figures(kind: type[Record] | type[ClockRecord], row: Mapping[str, object]) -> dict[str, dict[str, float]]:
    """What callbacks added to a line, as an argument of `Record`; what is not a number is left out."""
    found = row.get("figures")
    if kind is not Record or not isinstance(found, dict):
        return {}
    numbers = cast("dict[str, float]", found)
    return {"figures": {name: value for name, value in numbers.items() if is_sound(value)}}


class LineFile:
    """A file of lines open for appending, whose size is known to the byte."""

    def __init__(self, path: Path) -> None:
        """Open `path`, making it when it is not there."""
        self.path = path
        try:
            self._file = open_own(path, "ab", buffering=0)
            self.size = path.stat().st_size
        except OSError as error:
            raise FileFault.of(path, "written", error) from error

    def append(self, line: bytes) -> None:
        """Add one line, in one write."""
        try:
            written = self._file.write(line)
            if written != len(line):
                raise OSError(28, "no space left for a whole line")
        except OSError as error:
            raise FileFault.of(self.path, "written", error) from error
        self.size += len(line)

    def cut(self, size: int) -> None:
        """Drop everything after the first `size` bytes."""
        if size > self.size:
            raise FileFault(f"{self.path}: {self.size} bytes, but {size} were written; lines are missing")
        try:
            os.ftruncate(self._file.fileno(), size)
        except OSError as error:
            raise FileFault.of(self.path, "written", error) from error
        self.size = size

    def sync(self) -> None:
        """Wait until everything is on the disk."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise FileFault.of(self.path, "written", error) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def size_up_to(path: Path, generation: int) -> int:
    """How many bytes of a clock file belong to generations up to `generation`, up to the first damaged line."""
    size = 0
    try:
        with path.open("rb") as file:
            while (line := file.readline(LINE_LIMIT)).endswith(b"\n"):
                if decode_line(line, ClockRecord, str(path)).generation > generation:
                    break
                size += len(line)
    except FileNotFoundError:
        pass
    except FileFault:
        pass  # what the clock says is for people; damage in it must not stop a run
    except OSError as error:
        raise FileFault.of(path, "read", error) from error
    return size
