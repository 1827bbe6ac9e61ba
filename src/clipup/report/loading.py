"""Reading run directories as they are: whole, broken, half-written, of another version, or still growing.

The only place of the report that knows the files of a run. Nothing here raises for what a directory holds: what can be
read is returned, and what is wrong with the rest is said in `problems`, for people.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from clipup.diagnosis import Finding, diagnose
from clipup.errors import ClipUpError, FileFault, one_line
from clipup.runs.config import RunConfig, config_values
from clipup.runs.records import LINE_LIMIT, ClockRecord, Record, decode_line
from clipup.runs.rundir import RunDirectory, Status
from clipup.runs.toml import read_toml

FILE_LIMIT = 512 * 1024 * 1024
DEPTH_LIMIT = 4
RUN_LIMIT = 1000

LARGEST = 1e300

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

    def diagnose(self) -> tuple[list[Finding], list[str]]:
        """The findings about the run, and why it cannot be diagnosed if damage in its records prevents it."""
        try:
            return diagnose(self.records, self.config), []
        except Exception as error:
            # Damage in one run must not hide the others.
            return [], [f"cannot be diagnosed: {one_line(error)}"]


def load_run(path: Path) -> LoadedRun:
    """Read one run directory; never raises for its content."""
    try:
        return _load(path)
    except Exception as error:
        # The last net: damage that nobody thought of must not hide the other runs.
        return unreadable(path, f"cannot be read: {type(error).__name__}: {_say(error)}")


def unreadable(path: Path, *problems: str) -> LoadedRun:
    """A run of which nothing can be shown but what is wrong."""
    return LoadedRun(path, None, {}, (), (), Status("unknown"), problems)


def _load(path: Path) -> LoadedRun:
    directory = RunDirectory(path)
    problems: list[str] = []
    if not path.is_dir():
        return unreadable(path, f"{path}: no such directory")
    config: RunConfig | None = None
    settings: Mapping[str, object] = {}
    try:
        found = read_toml(_own(directory.config_path))
        str(found)  # raises ValueError where a number is too long to be written out
        settings = found
        config = directory.read_config()
        settings = config_values(config)
    except (ClipUpError, OSError, ValueError) as error:
        problems.append(_say(error))
    records = _read_lines(directory.records_path, Record, problems)
    clock = _read_lines(directory.clock_path, ClockRecord, problems)
    try:
        _own(directory.lock_path)
        _own(directory.status_path)
        status = _checked(directory.read_status(), problems)
    except (ClipUpError, OSError, AttributeError) as error:
        status = Status("unknown")
        problems.append(_say(error))
    if not records and not problems and status.state != "running":
        problems.append("no generation was recorded")
    return LoadedRun(path, config, settings, tuple(records), tuple(clock), status, tuple(problems))


def load_runs(paths: Iterable[Path]) -> tuple[list[LoadedRun], int]:
    """The runs among `paths` and below them, up to a limit, and how many are left out beyond it."""
    found = find_runs(paths)
    return [load_run(path) for path in found[:RUN_LIMIT]], max(0, len(found) - RUN_LIMIT)


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """The run directories among `paths` and below them; a path that holds none is kept, to be shown as wrong."""
    found: list[Path] = []
    for path in paths:
        below = sorted(_runs_below(path, DEPTH_LIMIT))
        found += below or [path]
    return list(dict.fromkeys(path.absolute() for path in found))


def is_run(path: Path) -> bool:
    """Whether a directory looks like that of a run, be it a broken one."""
    return any((path / name).is_file() for name in ("config.toml", "records.jsonl"))


def _runs_below(path: Path, depth: int) -> list[Path]:
    try:
        own = [path] if is_run(path) else []
        # A configuration alone is that of a run which has just begun, or a stray file above the runs themselves.
        if depth == 0 or (path / "records.jsonl").is_file():
            return own
        # A link could lead anywhere, and in circles.
        inner = [entry for entry in sorted(path.iterdir()) if entry.is_dir() and not entry.is_symlink()]
    except OSError:
        return []
    below = [run for entry in inner if not entry.name.startswith(".") for run in _runs_below(entry, depth - 1)]
    return below or own


def is_own(path: Path) -> bool:
    """Whether a path is a file of the run itself, or nothing: a link could lead to any file, a pipe is waited for."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return True


def _own(path: Path) -> Path:
    if not is_own(path):
        raise FileFault(f"{path.name}: cannot be read: a link, or not a regular file")
    return path


def _read_lines(path: Path, kind: type[_R], problems: list[str]) -> list[_R]:
    try:
        quick = _read_whole(_own(path), kind)
    except FileFault as error:
        problems.append(_say(error))
        return []
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
                found = _partial(line, kind, gaps)
                if found is None:
                    bad.append(_fault(line, kind, f"line {number}"))
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
            if type(cells["generation"]) is not int:
                return None
            for name, optional in fields:
                if not _is_sound(cells[name]) and not (optional and cells[name] is None):
                    return None
            lines.append(kind(**cells))  # pyright: ignore[reportArgumentType]  (checked just above)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return lines if len(lines) == len(whole) else None


def _partial(line: bytes, kind: type[_R], gaps: set[str]) -> _R | None:
    """A line with nan for fields that it lacks, or that no chart can show; None when it is no record at all."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    found = cast("dict[str, object]", values)
    if type(found.get("generation")) is not int:
        return None
    cells: dict[str, object] = {}
    for entry in dataclasses.fields(kind):
        value = found.get(entry.name)
        if _is_sound(value):
            cells[entry.name] = value
        elif not (value is None or isinstance(value, int | float)) or entry.name in _ESSENTIAL:
            return None
        else:
            if entry.name not in found:
                gaps.add(entry.name)
            cells[entry.name] = None if "None" in str(entry.type) else math.nan
    return kind(**cells)  # pyright: ignore[reportArgumentType]  (each cell is a number, or missing as nan)


def _fault(line: bytes, kind: type[_R], where: str) -> str:
    """What is wrong with a line that is no record."""
    try:
        decode_line(line, kind, where)
    except FileFault as error:
        return _say(error)
    return f"{where}: generation is not a whole number"


def _checked(status: Status, problems: list[str]) -> Status:
    """The status without what is not of its type: it stands in a file, and the page computes with it."""
    wrong: dict[str, object] = {}
    if not isinstance(status.state, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        wrong["state"] = "unknown"
    if not isinstance(status.reason, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        wrong["reason"] = ""
    for name in ("score", "score_standard_error"):
        value: object = getattr(status, name)
        if value is not None and not _is_sound(value):
            wrong[name] = None
    if wrong:
        problems.append(f"status.json: {', '.join(wrong)} cannot be read")
    return dataclasses.replace(status, **wrong)  # pyright: ignore[reportArgumentType]


def _is_sound(value: object) -> bool:
    """Whether a value from a file is a number to compute with: finite, and so are its sums and differences."""
    return isinstance(value, int | float) and abs(value) < LARGEST


def _in_order(lines: list[_R]) -> list[_R]:
    """One line per generation, in order; a generation written twice counts as it was written last."""
    if all(one.generation < two.generation for one, two in itertools.pairwise(lines)):
        return lines
    return [line for _, line in sorted({line.generation: line for line in lines}.items())]


def _say(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
