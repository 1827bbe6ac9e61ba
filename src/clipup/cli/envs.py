"""``clipup envs``."""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings

from clipup.cli.arguments import add_output_flags
from clipup.cli.output import print_json, say, table, terminal_width
from clipup.engines import Task, make_engine, registry
from clipup.errors import ClipUpError, MissingDependency, UnknownEnvironment
from clipup.runs.trust import check_import
from clipup.suggestions import nearest

_ENGINES = "\n".join(f"  {entry.name:<10} {entry.summary}" for entry in registry.ENTRIES)
HEADER = ("environment", "observation", "action", "engine", "preset", "")
DESCRIPTION = f"""List the environments that are known here, and the engine that runs each with --engine auto.

{_ENGINES}

Only environments that clipup can train on are listed; --all lists the others too, with the reason. Any other Gymnasium
environment works as module:EnvId, which imports the module first. With few matches, the list also says which of them
start the same whatever the seed."""
EXAMPLES = """examples:
  clipup envs                 (all that can be trained on)
  clipup envs cheetah --all   (and those that cannot, with the reason)
  clipup envs walker          (those with "walker" in their name)
  clipup envs 'Humanoid*-v5' --json"""


FEW = 20
"""Up to this many environments are looked at closely."""
PATIENCE = 2.0
"""Seconds after which progress is shown."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("pattern", nargs="?", metavar="PATTERN", help="part of a name, or a pattern with * and ?")
    parser.add_argument("--all", action="store_true", help="also those that cannot be trained on, with the reason")
    add_output_flags(parser, quiet=False)


def run(arguments: argparse.Namespace) -> int:
    """List environments."""
    from clipup.runs.presets import preset_for, presets

    ids = {entry.name: frozenset(entry.ids()) for entry in registry.ENTRIES}
    known = {env for found in ids.values() for env in found}
    if not known:
        engines = " or ".join(entry.name for entry in registry.ENTRIES)
        raise MissingDependency.of(f"a simulator ({engines})", extra="train")
    external = {task for preset in presets().values() for task in preset.tasks if ":" in task}
    names = sorted(known | external, key=str.casefold)
    found = [name for name in names if matches(name, arguments.pattern)]
    if not found:
        near = nearest(str(arguments.pattern), names)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise UnknownEnvironment(f"no environment matches {arguments.pattern!r}{hint}")
    rows: list[dict[str, object]] = []
    progress = _Progress(len(found))
    for name in found:
        progress.show()
        preset = preset_for(name)
        engines = [entry.name for entry in registry.ENTRIES if name in ids[entry.name] or entry.has(name)]
        about = describe(name, inspect=len(found) <= FEW)
        about["note"] = about["note"] or registry.difference(name)
        rows.append({"env": name, **about, "engines": engines, "preset": preset.name if preset else None})
    progress.clear()
    trainable = [row for row in rows if row["refusal"] is None]
    shown = rows if arguments.all or not trainable else trainable
    if arguments.json:
        print_json({"envs": shown, "not_trainable": len(rows) - len(trainable)})
        return 0
    names = ("env", "observation", "action", "engine", "preset")
    cells = [(*(str(row[name] or "-") for name in names), str(row["refusal"] or "")) for row in shown]
    say(table(HEADER, cells, width=terminal_width(sys.stdout)))
    for row in shown:
        if row["note"]:
            say(f"note: {row['note']}")
    if len(shown) < len(rows):
        say(f"and {len(rows) - len(shown)} that cannot be trained on (--all says why)")
    return 0


class _Progress:
    """A line at a terminal that counts, if it takes longer than `PATIENCE`."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._shown = total, 0, False
        self._next = time.monotonic() + PATIENCE if sys.stderr.isatty() else math.inf

    def show(self) -> None:
        """Count one more."""
        if time.monotonic() >= self._next:
            self._shown, self._next = True, time.monotonic() + 0.2
            # The cursor goes back: a message of the compiler then takes this line and does not go on in it.
            sys.stderr.write(f"\r\x1b[Klooked at {self._done} of {self._total} environments\r")
            sys.stderr.flush()
        self._done += 1

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def describe(name: str, *, inspect: bool) -> dict[str, object]:
    """The spaces and the engine of an environment, or why it cannot be trained on.

    With `inspect`, also what is odd about its starts.
    """
    about: dict[str, object] = {"observation": None, "action": None, "engine": None, "refusal": None, "note": None}
    try:
        check_import(name, named=(), source="this list")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = registry.describe(Task(name))
            about |= {
                "observation": f"{found.observation_size} numbers",
                "action": found.actions.describe(),
                "engine": found.name,
            }
            if inspect:
                about["note"] = _oddities(name)
    except ClipUpError as error:
        about["refusal"] = str(error)
    return about


def _oddities(name: str) -> str | None:
    engine = make_engine(Task(name), lanes=2, threads=1)
    try:
        return "; ".join(engine.inspect().notes) or None
    finally:
        engine.close()


def matches(name: str, pattern: str | None) -> bool:
    """Return whether `name` contains `pattern`, or matches its wildcards; upper and lower case count as the same."""
    from fnmatch import fnmatchcase

    if pattern is None:
        return True
    if any(sign in pattern for sign in "*?["):
        return fnmatchcase(name.casefold(), pattern.casefold())
    return pattern.casefold() in name.casefold()
