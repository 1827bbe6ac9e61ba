"""``clipup envs``."""

from __future__ import annotations

import argparse
import sys
import warnings

from clipup.cli.arguments import add_output_flags
from clipup.cli.output import note, print_json, say, table
from clipup.engines import Task, make_engine, registry
from clipup.errors import ClipUpError, MissingDependency, UnknownEnvironment
from clipup.runs.trust import check_import
from clipup.suggestions import nearest

_ENGINES = "\n".join(f"  {entry.name:<10} {entry.summary}" for entry in registry.ENTRIES)
DESCRIPTION = f"""List the environments that are known here, and the engine that runs each with --engine auto.

{_ENGINES}

Only environments that clipup can train on are listed; --all lists the others too, with the reason. Any other Gymnasium
environment works as module:EnvId, which imports the module first. With few matches, the list also says which of them
start the same whatever the seed."""
EXAMPLES = """examples:
  clipup envs                 (all that can be trained on; this takes a while)
  clipup envs atari --all     (and those that cannot, with the reason)
  clipup envs walker          (those with "walker" in their name)
  clipup envs 'Humanoid*-v5' --json"""


HEADER = ("environment", "observation", "action", "engine", "preset", "")
FEW, MANY = 20, 200
"""Up to FEW environments are looked at closely. Beyond MANY, that it takes a while is said first."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("pattern", nargs="?", metavar="PATTERN", help="part of a name, or a pattern with * and ?")
    parser.add_argument("--all", action="store_true", help="also those that cannot be trained on, with the reason")
    add_output_flags(parser, quiet=False)


def run(arguments: argparse.Namespace) -> int:
    """List environments."""
    from clipup.runs.presets import preset_for, presets

    known = {env for entry in registry.ENTRIES for env in entry.ids()}
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
    if len(found) > MANY and sys.stderr.isatty():
        note(f"looking at {len(found)} environments …")
    for name in found:
        preset = preset_for(name)
        engines = [entry.name for entry in registry.ENTRIES if entry.has(name)]
        about = describe(name, inspect=len(found) <= FEW)
        about["note"] = about["note"] or registry.difference(name)
        rows.append({"env": name, **about, "engines": engines, "preset": preset.name if preset else None})
    trainable = [row for row in rows if row["refusal"] is None]
    shown = rows if arguments.all or not trainable else trainable
    if arguments.json:
        print_json({"envs": shown, "not_trainable": len(rows) - len(trainable)})
        return 0
    names = ("env", "observation", "action", "engine", "preset")
    cells = [(*(str(row[name] or "-") for name in names), str(row["refusal"] or "")) for row in shown]
    say(table(HEADER, cells))
    for row in shown:
        if row["note"]:
            say(f"note: {row['note']}")
    if len(shown) < len(rows):
        say(f"and {len(rows) - len(shown)} that cannot be trained on (--all says why)")
    return 0


def describe(name: str, *, inspect: bool) -> dict[str, object]:
    """The spaces and the engine of an environment, or why it cannot be trained on.

    With `inspect`, also what is odd about its starts.
    """
    about: dict[str, object] = {"observation": None, "action": None, "engine": None, "refusal": None, "note": None}
    try:
        check_import(name, named=(), source="this list")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            engine = make_engine(Task(name), lanes=2, threads=1)
    except ClipUpError as error:
        return {**about, "refusal": str(error)}
    try:
        actions = engine.actions
        kind = f"{actions.size} choices" if actions.kind == "discrete" else f"{actions.size} numbers"
        about |= {"observation": f"{engine.observation_size} numbers", "action": kind, "engine": engine.name}
        if inspect:
            about["note"] = "; ".join(engine.inspect().notes) or None
    except ClipUpError as error:
        about["refusal"] = str(error)
    finally:
        engine.close()
    return about


def matches(name: str, pattern: str | None) -> bool:
    """Return whether `name` contains `pattern`, or matches its wildcards; upper and lower case count as the same."""
    from fnmatch import fnmatchcase

    if pattern is None:
        return True
    if any(sign in pattern for sign in "*?["):
        return fnmatchcase(name.casefold(), pattern.casefold())
    return pattern.casefold() in name.casefold()
