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


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None) -> str:
    """Columns of text. If they are wider than `width`, each row becomes a few short lines.

    >>> print(table(["run", "task", "seed"], [["runs/1", "CartPole-v1", "3"]]))
    run     task         seed
    runs/1  CartPole-v1  3
    >>> print(table(["run", "task", "seed"], [["runs/1", "CartPole-v1", "3"]], width=20))
    runs/1
      task CartPole-v1
      seed 3
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows]]
    lines = [line.rstrip() for line in lines]
    if width is not None and max(map(len, lines)) > width:
        lines = [line for row in rows for line in _block(header, row, width)]
    return "\n".join(lines)


def _block(header: Sequence[str], row: Sequence[str], width: int) -> list[str]:
    """A row as its first cell, and below it the others with their names, as many in a line as fit."""
    lines = [row[0]]
    room = 0
    for name, cell in zip(header[1:], row[1:], strict=True):
        if not cell or cell == "-":
            continue
        part = f"{name} {cell}".lstrip()
        if len(part) + 2 <= room:
            lines[-1] += f", {part}"
        else:
            lines += textwrap.wrap(
                part,
                width,
                initial_indent="  ",
                subsequent_indent="    ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        room = width - len(lines[-1])
    return lines


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
