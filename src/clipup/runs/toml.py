"""Reading TOML with the standard library, and writing as much of it as a configuration needs."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping

from clipup.decoding import CONFIG, decode_toml
from clipup.errors import FileFault, InvalidArgument, printable
from clipup.files import read_named
from clipup.runs.config import RunConfig, Scalar, Value, config_values, settings

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def read_toml(path: str | os.PathLike[str]) -> dict[str, object]:
    """The content of a TOML file that a person named, or FileFault in one line."""
    return decode_toml(read_named(path, CONFIG.size, "a configuration"), os.fspath(path))


def format_config(config: RunConfig, *, comment: str = "") -> str:
    """`config` as TOML, with a comment above each group; reading it back gives an equal configuration."""
    known = settings()
    # A name of a directory may hold what TOML does not allow, even in a comment.
    lines = [f"# {printable(line)}".rstrip() for line in comment.splitlines()]
    group = ""
    tables: list[tuple[str, Mapping[str, Scalar]]] = []
    for name, value in config_values(config).items():
        if isinstance(value, Mapping):
            tables.append((name, value))
            continue
        if known[name].group != group:
            group = known[name].group
            lines += ["", f"# {group}{_note(group)}"]
        lines.append(f"{name} = {format_value(value, unset=known[name].unset)}")
    for name, table in tables:
        lines += ["", f"[{name}]"]
        lines += [f"{_key(key)} = {format_value(option)}" for key, option in table.items()]
    return "\n".join(lines).lstrip("\n") + "\n"


def format_value(value: Value, *, unset: str = "none") -> str:
    """One value as TOML; None is written as the word `unset`."""
    if value is None:
        return f'"{unset}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        return str(value).replace("e+", "e")
    if isinstance(value, str):
        return _string(value)
    raise InvalidArgument(f"cannot be written as one TOML value: {value!r}")


def parse_value(text: str) -> Scalar:
    """A word of the command line as a TOML value, or as plain text where it is not one.

    >>> parse_value("true"), parse_value("3"), parse_value("1e-3"), parse_value("ant.xml")
    (True, 3, 0.001, 'ant.xml')
    """
    try:
        value = decode_toml(f"value = {text}", text)
    except FileFault:
        return text
    found = value.get("value")
    return found if len(value) == 1 and isinstance(found, str | int | float | bool) else text


def _note(group: str) -> str:
    return " (where and how fast; never changes a result)" if group == "execution" else ""


def _key(name: str) -> str:
    return name if _BARE.match(name) else _string(name)


def _string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda match: f"\\u{ord(match[0]):04x}", escaped) + '"'
