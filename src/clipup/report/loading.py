"""Reading run directories as they are: complete, damaged, half-written, of another version, or still growing.

Nothing here raises for what a directory contains. What can be read is returned, and `problems` says what is wrong with
the rest, in words for people.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from clipup.diagnosis import Finding, diagnose
from clipup.errors import ClipUpError, one_line, printable
from clipup.runs.config import RunConfig, config_values
from clipup.runs.records import ClockRecord, Record, read_lines, thin
from clipup.runs.rundir import RunDirectory, Status, find_runs

RUN_LIMIT = 1000
"""Runs that a page shows at most."""
LINES_AT_ONCE = 40_000
"""Records of one run that are held at once. A longer run is thinned while it is read."""
LINES_IN_ALL = 80_000
"""Records of all runs that are held together: some 60 MB, and more than a page can show (`page_data.CELL_LIMIT`).

Runs beyond it are thinned once they are diagnosed."""
LINES_EACH = 80
"""To so many at least."""


@dataclass(frozen=True)
class LoadedRun:
    """What a run directory says, and what is wrong with it."""

    path: Path
    config: RunConfig | None
    settings: Mapping[str, object]
    """The configuration as the file has it, even if this version cannot use it."""
    records: tuple[Record, ...]
    clock: tuple[ClockRecord, ...]
    status: Status
    problems: tuple[str, ...]
    diagnosis: tuple[list[Finding], list[str]] | None = None
    """What `diagnose` found before the records were thinned."""

    def diagnose(self) -> tuple[list[Finding], list[str]]:
        """The findings about the run, and why it cannot be diagnosed if damage in its records prevents it."""
        if self.diagnosis is not None:
            return self.diagnosis
        try:
            findings = diagnose(self.records, self.config, self.status.actions)
            return [*self._about_the_environment(), *findings], []
        except Exception as error:
            # Damage in one run must not hide the others.
            return [], [f"cannot be diagnosed: {one_line(error)}"]

    def _about_the_environment(self) -> list[Finding]:
        """What was odd about the environment when the run began."""
        if not self.status.warning:
            return []
        return [
            Finding(
                "environment-starts",
                "warning",
                f"{self.status.warning}.",
                "Do not compare seeds of this run as if they were independent, and test the policy from other starts.",
            )
        ]


def load_run(path: Path) -> LoadedRun:
    """Read one run directory. Never raises for its content."""
    try:
        return _load(path)
    except Exception as error:
        # Unforeseen damage in one run must not hide the others.
        return unreadable(path, f"cannot be read: {one_line(error)}")


def unreadable(path: Path, *problems: str) -> LoadedRun:
    """A run of which only its problems can be shown."""
    return LoadedRun(path, None, {}, (), (), Status("unknown"), problems)


def load_runs(paths: Iterable[Path]) -> tuple[list[LoadedRun], int]:
    """The runs at `paths` and below them, up to `RUN_LIMIT`, and the number of runs beyond it."""
    found = find_runs(paths)
    runs = [load_share(path, len(found)) for path in found[:RUN_LIMIT]]
    return runs, max(0, len(found) - RUN_LIMIT)


def load_share(path: Path, count: int) -> LoadedRun:
    """Read one of `count` runs that are held together. A long one is diagnosed, and then thinned to its share."""
    run = load_run(path)
    share = max(LINES_EACH, LINES_IN_ALL // max(1, min(count, RUN_LIMIT)))
    if len(run.records) <= share:
        return run
    kept = thin(run.records, share)
    times = {record.generation for record in kept}
    clock = tuple(line for line in run.clock if line.generation in times)
    return dataclasses.replace(run, diagnosis=run.diagnose(), records=tuple(kept), clock=clock)


def _load(path: Path) -> LoadedRun:
    directory = RunDirectory(path)
    if not path.is_dir():
        return unreadable(path, f"{path}: no such directory")
    problems: list[str] = []
    config: RunConfig | None = None
    settings: Mapping[str, object] = {}
    try:
        settings = directory.read_settings()
        config = directory.read_config()
        settings = config_values(config)
    except (ClipUpError, OSError, ValueError) as error:
        problems.append(printable(" ".join(str(error).split())))
    records, wrong = read_lines(directory.records_path, Record, limit=LINES_AT_ONCE)
    problems += _in_file(directory.records_path, wrong)
    clock, wrong = read_lines(directory.clock_path, ClockRecord, limit=LINES_AT_ONCE)
    problems += _in_file(directory.clock_path, wrong)
    status = directory.read_status(problems)
    if not records and not problems and status.state != "running":
        problems.append("no generation was recorded")
    return LoadedRun(path, config, settings, tuple(records), tuple(clock), status, tuple(problems))


def _in_file(path: Path, problems: Iterable[str]) -> list[str]:
    rest = "; the other lines are shown"
    return [f"{path.name}: {problem}{rest if problem.startswith('line') else ''}" for problem in problems]
