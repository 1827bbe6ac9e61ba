"""The only reader of JSON and TOML that may come from someone else.

Python's own readers accept numbers of any length and nesting of any depth. Both make trouble later, far from the file:
a number of 400 digits does not fit a float, and a list in a list in a list … ends the interpreter's stack when it is
shown. So everything is bounded here: bytes, depth, digits, and the number of values. What exceeds a bound is an error
of one line; a number that is too long for a float becomes an infinity, which every reader treats as unknown.
"""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import dataclass
from typing import cast

from clipup.errors import FileFault

WHOLE_DIGITS = 20
"""Digits of a whole number that are kept; the largest seed, 2**64 - 1, has 20. A longer one becomes a float."""


@dataclass(frozen=True)
class FileLimits:
    """What a file of some kind may hold at most."""

    size: int
    """Bytes."""
    depth: int = 8
    """Tables in tables, lists in lists."""
    count: int = 100_000
    """Values, those in lists and tables included."""


STATUS = FileLimits(size=64 * 1024, depth=2, count=100)
LINE = FileLimits(size=64 * 1024, depth=6, count=1000)
"""One line of records, of a clock or of a journal."""
CONFIG = FileLimits(size=64 * 1024, depth=4, count=2000)
WORDS = FileLimits(size=1024 * 1024, depth=6, count=10_000)
"""JSON inside the metadata of a tensor file."""
HEADER = FileLimits(size=16 * 1024 * 1024, depth=4, count=200_000)
RESULTS = FileLimits(size=64 * 1024 * 1024, depth=8, count=5_000_000)


def decode_json(data: bytes | str, source: str, limits: FileLimits, *, repeated_names: bool = True) -> object:
    """Return the value that `data` spells, or FileFault in one line that begins with `source`.

    Without `repeated_names`, an object that has a name twice is an error.
    """
    if len(data) > limits.size:
        raise FileFault(f"{source}: longer than {limits.size} bytes; the file is damaged")
    hook = None if repeated_names else _distinct
    try:
        value: object = json.loads(data, parse_int=_whole, object_pairs_hook=hook)
    except (ValueError, RecursionError) as error:
        raise FileFault(f"{source}: not valid JSON ({_short(error)})") from error
    return _measured(value, source, limits)


def decode_object(
    data: bytes | str, source: str, limits: FileLimits, *, repeated_names: bool = True
) -> dict[str, object]:
    """Return the object that `data` spells, or FileFault; see `decode_json`."""
    value = decode_json(data, source, limits, repeated_names=repeated_names)
    if not isinstance(value, dict):
        raise FileFault(f"{source}: not a JSON object")
    return cast("dict[str, object]", value)


def decode_toml(data: bytes | str, source: str, limits: FileLimits = CONFIG) -> dict[str, object]:
    """Return the tables that `data` spells, or FileFault in one line that begins with `source`."""
    if len(data) > limits.size:
        raise FileFault(f"{source}: larger than {limits.size} bytes; this is not a configuration")
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileFault(f"{source}: not valid TOML: {_short(error)}") from error
    _measured(values, source, limits)
    return values


def _whole(text: str) -> int | float:
    return int(text) if len(text.lstrip("-")) <= WHOLE_DIGITS else float(text)


def _measured(value: object, source: str, limits: FileLimits) -> object:
    """Return `value` if it is within its limits, or raise FileFault."""
    level: list[object] = [value]
    count = depth = 0
    while level:
        count += len(level)
        depth += 1
        if count > limits.count:
            raise FileFault(f"{source}: more than {limits.count} values in it")
        if depth > limits.depth + 1:
            raise FileFault(f"{source}: nested more than {limits.depth} deep")
        below: list[object] = []
        for item in level:
            if isinstance(item, dict):
                below += cast("dict[str, object]", item).values()
            elif isinstance(item, list):
                below += cast("list[object]", item)
            elif isinstance(item, int) and abs(item) > 10**WHOLE_DIGITS:
                raise FileFault(f"{source}: holds a number of more than {WHOLE_DIGITS} digits")
        level = below
    return value


def is_number(value: object) -> bool:
    """Return whether a value from a file is a finite number, and not true or false."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name occurs twice")
    return result


def _short(error: BaseException) -> str:
    return str(error).splitlines()[0][:80] if str(error) else type(error).__name__
