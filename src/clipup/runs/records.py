"""One JSON line per generation.

``records.jsonl`` holds what the search did. It is a function of the configuration alone, so two equal runs have equal
bytes. What a clock says goes to ``clock.jsonl``. `line_file` writes both.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar, cast

from clipup.decoding import LINE, FileLimits, decode_json, decode_object
from clipup.errors import FileFault, reason
from clipup.files import Directory

LINE_LIMIT = LINE.size
FILE_LIMIT = 512 * 1024 * 1024
BAD_LIMIT = 10_000
"""Damaged lines after which a file is not read any further: each takes time, and a short one takes two bytes."""
ALONE_LIMIT = 100_000
"""The same for lines that are not quite as this version writes them. Each is read alone, in some 20 µs."""
_PIECE = 256 * 1024
_PIECE_LIMITS = FileLimits(size=_PIECE + LINE_LIMIT, depth=2, count=_PIECE)
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
    """What the clock said after one generation. In the file, a running digest follows: `line_file.encode_clock`."""

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


def read_last(path: Path, kind: type[_R]) -> _R | None:
    """The last whole line of a file, or FileFault if it is damaged; None if there is none. The rest is not read."""
    try:
        directory = Directory(path.parent)
    except FileFault:
        return None
    with directory:
        return last_line(directory, path.name, kind)


def last_line(directory: Directory, name: str, kind: type[_R]) -> _R | None:
    """The last whole line of the file `name`; see `read_last`."""
    try:
        with directory.open(name) as file:
            # A line that is not whole may follow it.
            file.seek(max(0, os.fstat(file.fileno()).st_size - 2 * LINE_LIMIT))
            tail = file.read(2 * LINE_LIMIT)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileFault.of(directory.path / name, "read", error) from error
    line = tail[: tail.rfind(b"\n") + 1].rstrip(b"\n").rpartition(b"\n")[2]
    return decode_line(line, kind, f"{directory.path / name}: its last line") if line else None


@dataclass(frozen=True)
class Standing:
    """How far a run has come, by its records."""

    generation: int = 0
    total_interactions: int = 0
    score: float | None = None
    """The newest."""
    best_score: float | None = None


def read_standing(path: Path) -> Standing:
    """How far the records in a file go, read in a stream; FileFault where one is damaged."""
    reader, standing = LineReader(path, Record), Standing()
    for batch in reader.batches():
        for record in batch:
            score = standing.score if record.score is None else record.score
            best = max((value for value in (standing.best_score, record.score) if value is not None), default=None)
            standing = Standing(record.generation, record.total_interactions, score, best)
    if reader.problems:
        raise FileFault(f"{path}: {reader.problems[0]}")
    return standing


def read_lines(path: Path, kind: type[_R], *, limit: int | None = None) -> tuple[list[_R], list[str]]:
    """Return every line of a file that can be read, in order, and what is wrong with the rest, in words.

    Nothing raises for what the file holds. A last line that is not whole is left out without a word: a crash cut it
    short, or it is being written. A field that a line lacks, as in a file of another version, is None, or nan where
    the field is never None. Of a generation that stands there twice, the later line counts.

    With a `limit`, a file of more lines is thinned while it is read, so that memory is bounded: lines are evenly
    spread, between half of the limit and the limit. Besides them, the last line is kept, and those with a score as far
    as a quarter of the limit has room for them. What callbacks added to a line is left out.
    """
    reader = LineReader(path, kind)
    found: list[_R] = []
    sample = None if limit is None else _Sample[_R](limit)
    ordered, last = True, -1
    for batch in reader.batches():
        if batch:
            ordered &= last < batch[0].generation
            ordered &= all(one.generation < two.generation for one, two in itertools.pairwise(batch))
            last = batch[-1].generation
        if sample is None:
            found += batch
        else:
            sample.add(batch)
    if sample is not None:
        found = sample.lines()
        if sample.is_thinned:
            reader.problems.append("many generations: only some of them are shown")
    if not ordered:
        found = [line for _, line in sorted({line.generation: line for line in found}.items())]
    return found, reader.problems


class _EveryNth(Generic[_R]):
    """Every n-th line that it is given, with its place; n doubles whenever there are more than `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = max(2, limit)
        self._count = 0
        self.stride = 1
        self.kept: list[tuple[int, _R]] = []

    def add(self, place: int, line: _R) -> None:
        if self._count % self.stride == 0:
            self.kept.append((place, line))
            if len(self.kept) > self._limit:
                self.kept = self.kept[::2]
                self.stride *= 2
        self._count += 1


class _Sample(Generic[_R]):
    """Some of the lines of a stream: evenly spread ones, those with a score, and the last."""

    def __init__(self, limit: int) -> None:
        self._spread = _EveryNth[_R](limit)
        self._scored = _EveryNth[_R](limit // 4)
        self._place = -1
        self._last: _R | None = None

    def add(self, lines: Sequence[_R]) -> None:
        for line in lines:
            kept = dataclasses.replace(line, figures={}) if isinstance(line, Record) and line.figures else line
            self._place += 1
            self._last = kept
            self._spread.add(self._place, kept)
            if getattr(kept, "score", None) is not None:
                self._scored.add(self._place, kept)

    @property
    def is_thinned(self) -> bool:
        return self._spread.stride > 1

    def lines(self) -> list[_R]:
        places = dict(self._spread.kept)
        places.update(self._scored.kept)
        if self._last is not None:
            places[self._place] = self._last
        return [line for _, line in sorted(places.items(), key=lambda item: item[0])]


def thin(lines: Sequence[_R], limit: int) -> list[_R]:
    """Return about `limit` of the lines, evenly spread; those with a score are kept if they leave room for others.

    >>> [line.generation for line in thin([ClockRecord(number, 0.0, 0.0) for number in range(10)], 4)]
    [0, 3, 6, 9]
    """
    stride = max(1, -(-len(lines) // max(1, limit)))
    scored = sum(getattr(line, "score", None) is not None for line in lines)
    keep_scores = scored <= limit // 2
    last = len(lines) - 1
    return [
        line
        for place, line in enumerate(lines)
        if place % stride == 0 or place == last or (keep_scores and getattr(line, "score", None) is not None)
    ]


class LineReader(Generic[_R]):
    """Reads a file of lines in pieces, so that its size does not matter. `problems` says what could not be read."""

    def __init__(self, path: Path, kind: type[_R]) -> None:
        """Name the file; it is opened when it is read."""
        self._path, self._kind = path, kind
        self._read = 0
        self._gaps: set[str] = set()
        self._first_bad = ""
        self._alone = 0
        self._bad = 0
        self.problems: list[str] = []

    def batches(self) -> Generator[list[_R]]:
        """Yield the lines that can be read, some hundred at a time."""
        try:
            with Directory(self._path.parent) as directory, directory.open(self._path.name) as file:
                if os.fstat(file.fileno()).st_size > FILE_LIMIT:
                    self.problems.append(f"larger than {FILE_LIMIT >> 20} MB, not read")
                    return
                yield from self._batches(file)
        except (FileNotFoundError, FileFault):
            return
        except OSError as error:
            self.problems.append(f"cannot be read: {reason(error)}")
        finally:
            if self._gaps:
                self.problems.append(f"of another version of clipup, without {', '.join(sorted(self._gaps))}")
            if self._bad:
                more = f" (and {self._bad - 1} more)" if self._bad > 1 else ""
                self.problems.append(self._first_bad + more)

    def _note(self, problem: str) -> None:
        self._first_bad = self._first_bad or problem
        self._bad += 1

    def _batches(self, file: BinaryIO) -> Generator[list[_R]]:
        rest, total = b"", 0
        while piece := file.read(_PIECE):
            total += len(piece)
            if total > FILE_LIMIT:  # it grows while it is read, or is no file of the usual kind
                self._note(f"more than {FILE_LIMIT >> 20} MB, the rest is not read")
                return
            if self._bad > BAD_LIMIT:
                self.problems.append(f"more than {BAD_LIMIT} damaged lines, the rest is not read")
                return
            if self._alone > ALONE_LIMIT:
                self.problems.append(f"more than {ALONE_LIMIT} lines of another version, the rest is not read")
                return
            whole, ended, rest = (rest + piece).rpartition(b"\n")
            if ended:
                yield self._decoded(whole.split(b"\n"))
            if len(rest) > LINE_LIMIT:
                self._note(f"line {self._read + 1}: longer than {LINE_LIMIT} bytes; the file is damaged")
                rest = self._skip(file)
                self._read += 1

    def _skip(self, file: BinaryIO) -> bytes:
        """Read to the end of a line; return what comes after it."""
        while piece := file.read(_PIECE):
            if b"\n" in piece:
                return piece.partition(b"\n")[2]
        return b""

    def _decoded(self, lines: list[bytes]) -> list[_R]:
        found: list[_R] | None = _decode_at_once(lines, self._kind)
        if found is None:
            found = []
            self._alone += len(lines)
            for number, line in enumerate(lines, start=self._read + 1):
                try:
                    found.append(decode_line(line, self._kind, f"line {number}", self._gaps))
                except FileFault as fault:
                    self._note(str(fault))
                    if self._bad > BAD_LIMIT:
                        break
        self._read += len(lines)
        return found


def _decode_at_once(lines: list[bytes], kind: type[_R]) -> list[_R] | None:
    """All lines in one go, several times as fast; None when there is anything to be careful about."""
    if max(map(len, lines), default=0) > LINE_LIMIT:
        return None
    joined = b"[" + b",".join(lines) + b"]"
    if joined.count(b"{") != len(lines) or joined.count(b"[") != 1:
        return None  # deeper than a line of ours
    found: list[_R] = []
    try:
        rows = cast("list[dict[str, float | None]]", decode_json(joined, "lines", _PIECE_LIMITS))
        if len(rows) != len(lines):
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
    except (FileFault, KeyError, TypeError):
        return None
    return found


def decode_line(line: bytes, kind: type[_R], where: str, gaps: set[str] | None = None) -> _R:
    """One line as a record of that kind, or FileFault. Unknown keys are ignored.

    The names of missing fields are added to `gaps`; without `gaps` a missing field is an error.
    """
    try:
        found = decode_object(line, where, LINE)
    except FileFault as fault:
        if fault.__cause__ is None:  # it is JSON, but not a line of ours
            raise
        raise FileFault(f"{where}: not a JSON line") from fault
    if "generation" in found and (type(found["generation"]) is not int or not 0 <= found["generation"] < 2**63):
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
