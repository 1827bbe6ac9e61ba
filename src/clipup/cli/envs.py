"""``clipup envs``."""

from __future__ import annotations

import argparse

from clipup.cli.arguments import add_output_flags
from clipup.cli.output import print_json, say, table
from clipup.engines import registry
from clipup.errors import MissingDependency, UnknownEnvironment
from clipup.suggestions import nearest

_ENGINES = "\n".join(f"  {entry.name:<10} {entry.summary}" for entry in registry.ENTRIES)
DESCRIPTION = f"""List the environments that are known here, and the engine that runs each with --engine auto.

{_ENGINES}

Any other Gymnasium environment works as module:EnvId, which imports the module first. Training needs observations that
are a vector of numbers; clipup train refuses others (images, dictionaries) before it begins."""
EXAMPLES = """examples:
  clipup envs                 (all)
  clipup envs walker          (those with "walker" in their name)
  clipup envs 'Humanoid*-v5' --json"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("pattern", nargs="?", metavar="PATTERN", help="part of a name, or a pattern with * and ?")
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
    for name in found:
        preset = preset_for(name)
        engines = [entry.name for entry in registry.ENTRIES if entry.has(name)]
        rows.append(
            {
                "env": name,
                "engine": engines[0],
                "engines": engines,
                "preset": preset.name if preset else None,
                "note": registry.difference(name),
            }
        )
    if arguments.json:
        print_json({"envs": rows})
    else:
        cells = [(str(row["env"]), str(row["engine"]), str(row["preset"] or "")) for row in rows]
        say(table(("environment", "engine", "preset"), cells))
        for text in filter(None, (registry.difference(name) for name in found)):
            say(f"note: {text}")
    return 0


def matches(name: str, pattern: str | None) -> bool:
    """Return whether `name` contains `pattern`, or matches its wildcards; upper and lower case count as the same."""
    from fnmatch import fnmatchcase

    if pattern is None:
        return True
    if any(sign in pattern for sign in "*?["):
        return fnmatchcase(name.casefold(), pattern.casefold())
    return pattern.casefold() in name.casefold()
