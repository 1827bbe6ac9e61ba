"""``clipup envs``."""

from __future__ import annotations

import argparse

from clipup.cli.arguments import add_output_flags
from clipup.cli.output import print_json, say, table
from clipup.errors import MissingDependency, UnknownEnvironment
from clipup.suggestions import nearest

DESCRIPTION = """List the environments that are known here, and the engine that would run each.

EnvPool steps whole batches in C++ threads and is taken where it has the task; Gymnasium runs the rest. Any other
Gymnasium environment works as module:EnvId, which imports the module first. What is trained on must observe a vector of
numbers; clipup train refuses the others (images, dictionaries) before it begins."""
EXAMPLES = """examples:
  clipup envs                 (all)
  clipup envs walker          (those with "walker" in their name)
  clipup envs 'Humanoid*-v5' --json"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument("pattern", nargs="?", metavar="PATTERN", help="part of a name, or a pattern with * and ?")
    add_output_flags(parser, quiet=False)


def run(arguments: argparse.Namespace) -> int:
    """List environments."""
    from clipup.engines.registry import envpool_ids, gymnasium_ids
    from clipup.runs.presets import preset_for, presets

    in_envpool, in_gymnasium = set(envpool_ids()), set(gymnasium_ids())
    if not in_envpool and not in_gymnasium:
        raise MissingDependency.of("neither envpool nor gymnasium", extra="train")
    external = {task for preset in presets().values() for task in preset.tasks if ":" in task}
    names = sorted(in_envpool | in_gymnasium | external, key=str.casefold)
    found = [name for name in names if matches(name, arguments.pattern)]
    if not found:
        near = nearest(str(arguments.pattern), names)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise UnknownEnvironment(f"no environment matches {arguments.pattern!r}{hint}")
    rows: list[dict[str, object]] = []
    for name in found:
        preset = preset_for(name)
        rows.append(
            {
                "env": name,
                "engine": "envpool" if name in in_envpool else "gymnasium",
                "engines": [
                    engine
                    for engine, known in (("envpool", in_envpool), ("gymnasium", in_gymnasium | external))
                    if name in known
                ],
                "preset": preset.name if preset else None,
            }
        )
    if arguments.json:
        print_json({"envs": rows})
    else:
        cells = [(str(row["env"]), str(row["engine"]), str(row["preset"] or "")) for row in rows]
        say(table(("environment", "engine", "preset"), cells))
    return 0


def matches(name: str, pattern: str | None) -> bool:
    """Whether `name` holds `pattern`, or fits it where it has wildcards; letter case aside."""
    from fnmatch import fnmatchcase

    if pattern is None:
        return True
    if any(sign in pattern for sign in "*?["):
        return fnmatchcase(name.casefold(), pattern.casefold())
    return pattern.casefold() in name.casefold()
