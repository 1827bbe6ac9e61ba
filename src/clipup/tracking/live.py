"""Progress as a live display, for people at a terminal (rich)."""

from __future__ import annotations

import math
import time
from typing import Any, TextIO

from clipup.errors import MissingDependency, printable
from clipup.runs.names import NAMES, TIME_LEFT
from clipup.runs.records import ClockRecord, Record
from clipup.runs.rundir import Status
from clipup.tracking.protocol import RunInfo, Tracker
from clipup.tracking.terminal import count, duration, headline, number, remaining, score

_BARS = "▁▂▃▄▅▆▇█"
_HISTORY = 60
ROOM = 80
"""Columns that two pairs of a name and a value need beside each other; with fewer, they stand below each other."""
MARGIN = 16
"""Columns that the names and the space after them take, before the curve."""
_LABELS = {**NAMES, "speed": f"{NAMES['speed']} / max"}


class LiveDisplay(Tracker):
    """A small table that is redrawn in place, with the curve of the score below it."""

    def __init__(self, stream: TextIO) -> None:
        try:
            from rich.console import Console
            from rich.live import Live
        except ImportError as error:
            raise MissingDependency.of("rich", extra="train") from error
        self._info: RunInfo | None = None
        self._record: Record | None = None
        self._clock: ClockRecord | None = None
        self._score = "-"
        self._scores: list[float] = []
        self._heard = time.monotonic()
        self._console = Console(file=stream)
        self._live = Live(console=self._console, refresh_per_second=4, get_renderable=self._render, transient=False)

    def begin(self, info: RunInfo) -> None:
        """Start drawing."""
        self._info = info
        self._heard = time.monotonic()
        self._console.print(printable(headline(info)), highlight=False, markup=False)
        self._live.start()

    def generation(self, record: Record, clock: ClockRecord) -> None:
        """Show a generation."""
        self._heard = time.monotonic()
        if record.score is not None:
            self._score = f"{score(record)} (generation {record.generation})"
            if math.isfinite(record.score):  # others cannot be drawn
                self._scores.append(record.score)
        self._record, self._clock = record, clock

    def message(self, text: str) -> None:
        """Show a message above the table."""
        self._console.print(printable(text), highlight=False, markup=False)

    def end(self, status: Status) -> None:
        """Draw one last time and stop."""
        if self._info is not None:
            self._live.stop()
            self._info = None

    def _render(self) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        info, record, clock = self._info, self._record, self._clock
        if info is None or record is None or clock is None:
            waited = time.monotonic() - self._heard
            return Text(f"first generation … {duration(waited)}", style="dim")
        config = info.config
        elapsed = clock.seconds + (time.monotonic() - self._heard)
        limit = f" / {config.generations}" if config.generations is not None else ""
        speed = f"{record.speed:.4g}"
        if record.max_speed is not None:
            speed += f" / {record.max_speed:.4g}" + (" (clipped)" if record.clipped else "")
        gradient = f"{record.gradient_norm:.3g}" if math.isfinite(record.gradient_norm) else "-"
        narrow = self._console.width < ROOM
        table = Table.grid(padding=(0, 3))
        for _ in range(2 if narrow else 4):
            table.add_column(no_wrap=True)
        rows = [
            ("generation", f"{record.generation}{limit}", "score", self._score),
            ("population", f"{record.population}", "best", number(record.best)),
            ("total_interactions", count(record.total_interactions), "fitness_mean", number(record.fitness_mean)),
            ("steps_per_second", count(clock.steps_per_second), "speed", speed),
            ("seconds", duration(elapsed), "stdev_norm", f"{record.stdev_norm:.4g}"),
            (TIME_LEFT, remaining(config, record, clock), "gradient_norm", gradient),
        ]
        pairs = [[row[:2] for row in rows], [row[2:] for row in rows]]
        for line in [[pair] for part in pairs for pair in part] if narrow else zip(*pairs, strict=True):
            named = ((Text(_LABELS.get(key, key), style="dim"), value) for key, value in line)
            table.add_row(*(cell for pair in named for cell in pair))
        if len(self._scores) < 2:
            return table
        # Not in the table, whose columns it would widen.
        curve = sparkline(self._scores, self._console.width - MARGIN)
        return Group(table, Text.assemble((f"{'curve':<{MARGIN}}", "dim"), (curve, "green")))


def sparkline(values: list[float], length: int = _HISTORY) -> str:
    """A curve through the last `length` values, as one line of block characters.

    >>> sparkline([0.0, 1.0, 2.0])
    '▁▅█'
    """
    shown = values[-max(1, min(length, _HISTORY)) :]
    low, high = min(shown), max(shown)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[int((value - low) * scale + 0.5)] for value in shown)
