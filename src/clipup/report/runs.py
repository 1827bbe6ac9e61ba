"""Reading run directories as they are: whole, broken, half-written, of another version, or still growing.

The only place of the report that knows the files of a run. Nothing here raises for what a directory holds: what can be
read is returned, and what is wrong with the rest is said in `problems`, for people.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from clipup.errors import ClipUpError, FileFault
from clipup.runs.config import RunConfig, config_values
from clipup.runs.records import LINE_LIMIT, ClockRecord, Record, decode_line
from clipup.runs.rundir import RunDirectory, Status
from clipup.runs.toml import read_toml

FILE_LIMIT = 512 * 1024 * 1024
DEPTH_LIMIT = 4
RUN_LIMIT = 1000

# Cells of a record line that is whole; an older version may lack others, which are then shown as gaps.
_ESSENTIAL = ("generation",)

_R = TypeVar("_R", Record, ClockRecord)


@dataclass(frozen=True)
class LoadedRun:
    """What a run directory says, and what is wrong with it."""

    path: Path
    config: RunConfig | None
    settings: Mapping[str, object]
    """The configuration as it stands in the file, also where this version cannot use it."""
    records: tuple[Record, ...]
    clock: tuple[ClockRecord, ...]
    status: Status
    problems: tuple[str, ...]


def load_run(path: Path) -> LoadedRun:
    """Read one run directory; never raises for its content."""
    directory = RunDirectory(path)
    problems: list[str] = []
    if not path.is_dir():
        return LoadedRun(path, None, {}, (), (), Status("unknown"), (f"{path}: no such directory",))
    config: RunConfig | None = None
    settings: Mapping[str, object] = {}
    try:
        settings = read_toml(directory.config_path)
        config = directory.read_config()
        settings = config_values(config)
    except (ClipUpError, OSError) as error:
        problems.append(_say(error))
    records = _read_lines(directory.records_path, Record, problems)
    clock = _read_lines(directory.clock_path, ClockRecord, problems)
    try:
        status = directory.read_status()
    except (ClipUpError, OSError, AttributeError) as error:
        status = Status("unknown")
        problems.append(f"{directory.status_path.name}: {_say(error)}")
    if not records and not problems and status.state != "running":
        problems.append("no generation was recorded")
    return LoadedRun(path, config, settings, tuple(records), tuple(clock), status, tuple(problems))


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """The run directories among `paths` and below them; a path that holds none is kept, to be shown as wrong."""
    found: list[Path] = []
    for path in paths:
        below = sorted(_runs_below(path, DEPTH_LIMIT))
        found += below or [path]
    unique = list(dict.fromkeys(path.absolute() for path in found))
    return unique[:RUN_LIMIT]


def is_run(path: Path) -> bool:
    """Whether a directory looks like that of a run, be it a broken one."""
    return any((path / name).is_file() for name in ("config.toml", "records.jsonl"))


def _runs_below(path: Path, depth: int) -> list[Path]:
    try:
        if is_run(path):
            return [path]
        if depth == 0:
            return []
        # A link could lead anywhere, and in circles.
        inner = [entry for entry in sorted(path.iterdir()) if entry.is_dir() and not entry.is_symlink()]
    except OSError:
        return []
    return [run for entry in inner if not entry.name.startswith(".") for run in _runs_below(entry, depth - 1)]


def _read_lines(path: Path, kind: type[_R], problems: list[str]) -> list[_R]:
    quick = _read_whole(path, kind)
    if quick is not None:
        return _in_order(quick)
    lines: list[_R] = []
    bad: list[str] = []
    gaps: set[str] = set()
    try:
        with path.open("rb") as file:
            if path.stat().st_size > FILE_LIMIT:
                problems.append(f"{path.name}: larger than {FILE_LIMIT >> 20} MB, not read")
                return []
            number = 0
            while line := file.readline(LINE_LIMIT):
                number += 1
                if not line.endswith(b"\n"):
                    if len(line) < LINE_LIMIT:
                        break  # still being written, or cut short by a crash: what is whole comes before it
                    bad.append(f"line {number} is too long")
                    break
                try:
                    lines.append(decode_line(line, kind, f"line {number}"))
                except FileFault as error:
                    found = _partial(line, kind, gaps)
                    if found is None:
                        bad.append(_say(error))
                    else:
                        lines.append(found)
    except FileNotFoundError:
        return []
    except OSError as error:
        problems.append(f"{path.name}: cannot be read: {error.strerror or error}")
    if gaps:
        problems.append(f"{path.name}: of another version of clipup, without {', '.join(sorted(gaps))}")
    if bad:
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        problems.append(f"{path.name}: {bad[0]}{more}; the other lines are shown")
    return _in_order(lines)


def _read_whole(path: Path, kind: type[_R]) -> list[_R] | None:
    """All lines in one go, ten times as fast; None when there is anything to be careful about."""
    fields = [(entry.name, "None" in str(entry.type)) for entry in dataclasses.fields(kind)]
    try:
        if path.stat().st_size > FILE_LIMIT:
            return None
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1].splitlines()
        rows: list[dict[str, float | None]] = json.loads(b"[" + b",".join(whole) + b"]")
        lines: list[_R] = []
        for row in rows:
            cells = {name: row[name] for name, _ in fields}
            for name, optional in fields:
                if not isinstance(cells[name], int | float) and not (optional and cells[name] is None):
                    return None
            lines.append(kind(**cells))  # pyright: ignore[reportArgumentType]  (checked just above)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return lines if len(lines) == len(whole) else None


def _partial(line: bytes, kind: type[_R], gaps: set[str]) -> _R | None:
    """A line that lacks fields, with nan in their place; None when it is no record at all."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    found = cast("dict[str, object]", values)
    cells: dict[str, object] = {}
    for entry in dataclasses.fields(kind):
        value = found.get(entry.name)
        if isinstance(value, int | float) and abs(value) < 1e300:
            cells[entry.name] = value
        elif value is not None or entry.name in _ESSENTIAL:
            return None
        else:
            if entry.name not in found:
                gaps.add(entry.name)
            cells[entry.name] = None if "None" in str(entry.type) else math.nan
    return kind(**cells)  # pyright: ignore[reportArgumentType]  (each cell is a number, or missing as nan)


def _in_order(lines: list[_R]) -> list[_R]:
    """One line per generation, in order; a generation written twice counts as it was written last."""
    if all(one.generation < two.generation for one, two in itertools.pairwise(lines)):
        return lines
    return [line for _, line in sorted({line.generation: line for line in lines}.items())]


def _say(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
