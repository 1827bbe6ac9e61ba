"""Progress as plain lines, for logs and pipes, and the words that both displays share."""

from __future__ import annotations

import contextlib
import time
from typing import TextIO

from clipup.engines import registry
from clipup.errors import printable
from clipup.runs.config import RunConfig
from clipup.runs.names import NAMES, TIME_LEFT
from clipup.runs.records import ClockRecord, Record
from clipup.tracking.protocol import RunInfo, Tracker


class PlainDisplay(Tracker):
    """Shows every evaluation, and otherwise a generation every `interval` seconds, as one line each."""

    def __init__(self, stream: TextIO, *, interval: float = 2.0) -> None:
        self._stream = stream
        self._interval = interval
        self._shown = -float("inf")
        self._config: RunConfig | None = None

    def begin(self, info: RunInfo) -> None:
        """Say what is being trained."""
        self._config = info.config
        write_line(self._stream, headline(info))

    def generation(self, record: Record, clock: ClockRecord) -> None:
        """Show a generation."""
        if record.score is None and time.monotonic() - self._shown < self._interval:
            return
        self._shown = time.monotonic()
        limit = self._config.generations if self._config is not None else None
        values = {
            "generation": f"{record.generation}" + (f"/{limit}" if limit else ""),
            "population": f"{record.population}",
            "total_interactions": count(record.total_interactions),
            "score": score(record),
            "best": number(record.best),
            "fitness_mean": number(record.fitness_mean),
            "speed": f"{record.speed:.3g}" + (f"/{record.max_speed:.3g}" if record.max_speed else ""),
            "stdev_norm": f"{record.stdev_norm:.3g}",
            "steps_per_second": count(clock.steps_per_second),
            "seconds": duration(clock.seconds),
        }
        if self._config is not None:
            values[TIME_LEFT] = remaining(self._config, record, clock)
        if record.nonfinite:
            values["nonfinite"] = f"{record.nonfinite}"
        parts = [f"{NAMES.get(key, key)} {value}" for key, value in values.items()]
        write_line(self._stream, "  ".join(parts))

    def message(self, text: str) -> None:
        """Show a message."""
        write_line(self._stream, text)


class WarningDisplay(Tracker):
    """Shows messages only, for `--quiet`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def message(self, text: str) -> None:
        """Show a message."""
        write_line(self._stream, text)


def write_line(stream: TextIO, line: str) -> None:
    """Write and flush a line. A closed terminal or pipe must not end a run."""
    with contextlib.suppress(OSError, ValueError):
        stream.write(printable(line) + "\n")
        stream.flush()


def headline(info: RunInfo) -> str:
    """One line about what is being trained."""
    config = info.config
    start = f", going on from generation {info.generation}" if info.generation else ""
    place = f" -> {info.path}" if info.path is not None else ""
    as_ever = info.engine_reason == registry.ASKED or info.engine_reason.endswith(registry.HONOURED)
    fell_back = config.engine == registry.AUTO and not as_ever
    engine = f"{info.engine} ({info.engine_reason})" if fell_back else info.engine
    if config.physics is not None:
        engine += f" (training physics: {config.physics})"
    return (
        f"{config.env}: {info.policy}, {info.parameter_count} parameters, max_speed {config.max_speed:g}, "
        f"seed {config.seed}, {engine}, {info.executor}{start}{place}"
    )


def number(value: float | None) -> str:
    """A fitness or a score as short text."""
    if value is None:
        return "-"
    return f"{value:.4g}" if abs(value) < 0.1 else f"{value:,.2f}"


def score(record: Record) -> str:
    """The center's score with its standard error."""
    if record.score is None:
        return "-"
    error = record.score_standard_error
    if error is None:
        return number(record.score)
    return f"{number(record.score)} ± " + (f"{error:.2g}" if error < 99.5 else f"{error:,.0f}")


def count(value: float) -> str:
    """A large number as short text: 1.2M."""
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g}{suffix}"
    return f"{value:.0f}"


def duration(seconds: float) -> str:
    """A time, short.

    >>> duration(45), duration(200), duration(7500)
    ('45s', '3m20s', '2h05m')
    """
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def remaining(config: RunConfig, record: Record, clock: ClockRecord) -> str:
    """How long the run would go on at its pace so far, until it reaches the first of its limits."""
    estimates: list[float] = []
    if config.time_limit is not None:
        estimates.append(config.time_limit - clock.seconds)
    if config.generations is not None and record.generation:
        estimates.append(clock.seconds / record.generation * (config.generations - record.generation))
    if config.total_interactions is not None and record.total_interactions:
        missing = config.total_interactions - record.total_interactions
        estimates.append(clock.seconds / record.total_interactions * missing)
    return duration(min(estimates)) if estimates else "?"
