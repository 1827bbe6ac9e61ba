"""``clipup runs``."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from clipup.cli.arguments import add_output_flags
from clipup.cli.output import print_json, say, table, terminal_width
from clipup.errors import ClipUpError, FileFault
from clipup.runs.records import read_standing
from clipup.runs.rundir import RunDirectory, runs_below
from clipup.tracking.terminal import count, number
from clipup.tuning.directory import MARKER, TRIALS

DESCRIPTION = "List the runs below DIR: task, seed, generation, interactions, last and best score, state."
EXAMPLES = """examples:
  clipup runs
  clipup runs experiments --json"""
HEADER = ("run", "task", "seed", "generation", "interactions", "score", "best score", "state")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("directory", nargs="?", default="runs", metavar="DIR", help="where to look (default: runs)")
    parser.add_argument("--all", action="store_true", help="also the trials of clipup tune")
    add_output_flags(parser, quiet=False)


def run(arguments: argparse.Namespace) -> int:
    """List runs."""
    root = Path(arguments.directory)
    if not root.is_dir():
        raise FileFault(f"{root}: no such directory; runs are made by: clipup train ENV")
    paths = runs_below(root)
    shown = paths if arguments.all else [path for path in paths if not _is_trial(path, root)]
    hidden = len(paths) - len(shown)
    rows = [describe(path) for path in shown]
    if arguments.json:
        print_json({"runs": rows, "trials_left_out": hidden})
        return 0
    if not paths:
        say(f"no runs in {root}; make one: clipup train LunarLanderContinuous-v3")
        return 0
    say(table(HEADER, [_cells(row) for row in rows], width=terminal_width(sys.stdout)))
    if hidden:
        say(f"and {hidden} trials of clipup tune (--all lists them)")
    return 0


def _is_trial(path: Path, root: Path) -> bool:
    """Whether a run is a trial of a search that lies below `root`."""
    search = path.parent.parent
    return path.parent.name == TRIALS and (search / MARKER).is_file() and root.absolute() in search.absolute().parents


def describe(path: Path) -> dict[str, object]:
    """What is known about a run; `error` says what is wrong with it."""
    row: dict[str, object] = {"run": str(path)}
    try:
        directory = RunDirectory(path)
        config = directory.read_config()
        row |= {"env": config.env, "seed": config.seed, "generations": config.generations}
        status = directory.read_status()
        row |= dataclasses.asdict(read_standing(directory.records_path))
        if status.state == "finished" and status.score is not None:
            row["score"] = status.score
        row["state"] = status.state
    except ClipUpError as error:
        row |= {"state": "damaged", "error": str(error)}
    return row


def _cells(row: dict[str, object]) -> tuple[str, ...]:
    def value(name: str) -> float | None:
        found = row.get(name)
        return found if isinstance(found, int | float) else None

    limit = value("generations")
    generation = f"{value('generation') or 0:g}" + (f"/{limit:g}" if limit is not None else "")
    state = str(row["state"]) + (f": {row['error']}" if "error" in row else "")
    return (
        str(row["run"]),
        str(row.get("env", "?")),
        str(row.get("seed", "?")),
        generation,
        count(value("total_interactions") or 0),
        number(value("score")),
        number(value("best_score")),
        state,
    )
