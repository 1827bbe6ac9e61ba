"""What commands print."""

from __future__ import annotations

import json
import math
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import TextIO

from clipup.errors import printable
from clipup.tracking import Tracker


def print_json(values: Mapping[str, object]) -> None:
    """Print one JSON object; numbers that JSON cannot spell become null."""
    _write(sys.stdout, json.dumps(_plain(values), allow_nan=False) + "\n")


def _plain(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}  # pyright: ignore
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]  # pyright: ignore
    return value


def say(text: str) -> None:
    """Print lines on standard output. What files brought into them cannot drive the terminal."""
    _write(sys.stdout, printable(text, lines=True))


def note(text: str) -> None:
    """Print one line on standard error."""
    _write(sys.stderr, printable(text))


def _write(stream: TextIO, text: str) -> None:
    stream.write(fitted(text, stream) + "\n")
    stream.flush()


def fitted(text: str, stream: TextIO) -> str:
    """`text` with its sentences wrapped between words to the width of a terminal; unchanged where there is none.

    Indented lines stay as they are: commands to copy, and tables.
    """
    width = terminal_width(stream)
    if width is None:
        return text
    lines = [
        line
        if line.startswith(" ") or len(line) <= width
        else textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False, subsequent_indent="  ")
        for line in text.split("\n")
    ]
    return "\n".join(lines)


def terminal_width(stream: TextIO) -> int | None:
    """The columns of the terminal that `stream` writes to; None where it is none."""
    try:
        return max(20, os.get_terminal_size(stream.fileno()).columns) if stream.isatty() else None
    except (OSError, ValueError):
        return None


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of text."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows]]
    return "\n".join(line.rstrip() for line in lines)


def displays(*, quiet: bool, json_output: bool) -> list[Tracker]:
    """The display for a run: live at a terminal, lines elsewhere, messages only when quiet.

    With `json_output` it goes to standard error, so that standard output holds the JSON alone.
    """
    if quiet:
        from clipup.tracking.terminal import WarningDisplay

        return [WarningDisplay(sys.stderr)]
    stream = sys.stderr if json_output else sys.stdout
    if stream.isatty():
        from clipup.errors import MissingDependency
        from clipup.tracking.live import LiveDisplay

        try:
            return [LiveDisplay(stream)]
        except MissingDependency:
            pass
    from clipup.tracking.terminal import PlainDisplay

    return [PlainDisplay(stream)]
