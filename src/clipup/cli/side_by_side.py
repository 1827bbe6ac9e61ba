"""One line about runs that go side by side, and what is said of those that did not finish."""

from __future__ import annotations

import sys
from functools import partial

from clipup.cli.output import note
from clipup.tracking.terminal import duration
from clipup.training.side_by_side import ScheduleEnd, ScheduleProgress

LINE_SECONDS = 60.0
"""How often a line is written where it cannot be updated in place."""


class ProgressLine:
    """Shows how far the runs are on standard error: updated in place at a terminal, a line a minute elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        """`quiet` shows nothing."""
        self._live = sys.stderr.isatty() and not quiet
        self.watch = None if quiet else partial(_show, live=self._live)
        self.seconds = 1.0 if self._live else LINE_SECONDS

    def clear(self) -> None:
        """Take the line away."""
        if self._live:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def exit_code(end: ScheduleEnd, *, again: str) -> int:
    """Say what did not finish, and return the exit code. `again` is what continues it, in words."""
    if end.reason == "complete":
        return 0
    for failure in end.failures:
        note(f"clipup: a run failed: {failure}")
    finished = f"{end.finished} of {end.total} runs are finished"
    if end.reason == "busy":
        note(f"{finished}; another process is working on the rest")
    elif end.reason != "failed":
        note(f"stopped ({end.reason}): {finished}, everything is saved, and {again}")
    if end.reason == "interrupted":
        return end.exit_code
    return 1 if end.failures else 0


def _show(progress: ScheduleProgress, *, live: bool) -> None:
    left = "?" if progress.remaining is None else duration(progress.remaining)
    of = "" if progress.generations_wanted is None else f" of {progress.generations_wanted}"
    line = (
        f"{progress.finished} of {progress.total} runs, generation {progress.generations}{of}, "
        f"{duration(progress.seconds)} so far, {left} left: {', '.join(progress.running)}"
    )
    sys.stderr.write(f"\r\x1b[K{line}" if live else f"{line}\n")
    sys.stderr.flush()
