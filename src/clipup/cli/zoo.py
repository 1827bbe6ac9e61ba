"""``clipup zoo``."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from clipup.cli.arguments import add_output_flags, seed_number, whole_number
from clipup.cli.output import print_json, say, table, terminal_width
from clipup.errors import InvalidArgument
from clipup.zoo import Trained, catalog, trained_on

DESCRIPTION = """List trained policies that come with clipup, play one, or repeat its training.

A score is the mean over 100 fresh episodes of the environment's own reward, with its standard error."""
EXAMPLES = """examples:
  clipup zoo
  clipup zoo play CartPole-v1
  clipup zoo play Swimmer-v5 -o swimmer.mp4 --max-seconds 8
  clipup zoo train Pendulum-v1 --run runs/pendulum
  clipup zoo train Pendulum-v1 --dry-run > pendulum.toml     (its settings; then with another seed:)
  clipup train --config pendulum.toml --seed 2"""

ACTIONS = ("list", "play", "train")
PLAY_FLAGS, TRAIN_FLAGS = ("episodes", "seed", "output", "max_seconds"), ("run", "dry_run")
"""By the names of their values."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.usage = "clipup zoo [play|train NAME] [flags]"
    parser.add_argument("action", nargs="?", default="list", metavar="ACTION", help="play or train (default: list)")
    parser.add_argument("name", nargs="?", metavar="NAME", help="a policy of the list")
    play = parser.add_argument_group("play")
    play.add_argument("--episodes", type=whole_number, metavar="N", help="how many (default: 16, or 1 in a video)")
    play.add_argument("--seed", type=seed_number, metavar="N", help="fixes the episodes (default: 0)")
    play.add_argument("-o", "--output", metavar="FILE", help="record video.mp4 or video.gif instead of evaluating")
    play.add_argument("--max-seconds", type=float, metavar="X", help="cut each recorded episode after X seconds")
    train = parser.add_argument_group("train")
    train.add_argument("--run", metavar="DIR", help="run directory (default: runs/ENV-1, or the next free number)")
    train.add_argument("--dry-run", action="store_true", help="print the settings of the training and stop")
    add_output_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """List, play or train."""
    if arguments.action not in ACTIONS:
        meant = f"play {arguments.action}" if any(entry.name == arguments.action for entry in catalog()) else "--help"
        raise InvalidArgument(f"expected play or train, got {arguments.action!r} (see: clipup zoo {meant})")
    _check_flags(arguments)
    if arguments.action == "list":
        return _list(json_output=arguments.json)
    if arguments.name is None:
        raise InvalidArgument(f"clipup zoo {arguments.action} needs the name of a policy (see: clipup zoo)")
    entry = trained_on(arguments.name)
    return _train(entry, arguments) if arguments.action == "train" else _play(entry, arguments)


def _check_flags(arguments: argparse.Namespace) -> None:
    """Refuse the flags of another action, which would do nothing."""
    for action, names in (("play", PLAY_FLAGS), ("train", TRAIN_FLAGS)):
        values = {name: getattr(arguments, name) for name in names}
        given = [name for name, value in values.items() if value is not None and value is not False]
        if given and action != arguments.action:
            flag = f"--{given[0].replace('_', '-')}"
            raise InvalidArgument(
                f"{flag} is a flag of clipup zoo {action}; clipup zoo {arguments.action} has no use for it"
            )


def _list(*, json_output: bool) -> int:
    if json_output:
        print_json({entry.name: dataclasses.asdict(entry) for entry in catalog()})
        return 0
    from clipup.export.policy import read_policy
    from clipup.tracking.terminal import duration

    rows = [
        [
            entry.name,
            read_policy(entry.path)[0].network.describe(),
            f"{entry.score:.1f} ± {entry.standard_error:.1f}",
            f"{entry.interactions / 1e6:.2f} million",
            duration(max(1.0, entry.seconds)),
        ]
        for entry in catalog()
    ]
    header = ["name", "policy", "score", "interactions", "training"]
    say(table(header, rows, width=terminal_width(sys.stdout)))
    return 0


def _play(entry: Trained, arguments: argparse.Namespace) -> int:
    from clipup.cli import evaluate, record

    command = evaluate if arguments.output is None else record
    parser = argparse.ArgumentParser()
    command.configure(parser)
    episodes = arguments.episodes or (16 if arguments.output is None else 1)
    words = [str(entry.path), "--episodes", str(episodes), "--seed", str(arguments.seed or 0)]
    words += ["--output", str(Path(arguments.output))] if arguments.output is not None else []
    if arguments.max_seconds is not None:
        if arguments.output is None:
            raise InvalidArgument("--max-seconds cuts a video; give -o FILE, or leave it out")
        words += ["--max-seconds", str(arguments.max_seconds)]
    words += [word for module in entry.imports for word in ("--import", module)]
    words += [flag for flag, given in (("--json", arguments.json), ("--quiet", arguments.quiet)) if given]
    return command.run(parser.parse_args(words))


def _train(entry: Trained, arguments: argparse.Namespace) -> int:
    if arguments.dry_run:
        from clipup.runs.toml import format_config

        say(format_config(entry.config).rstrip("\n"))
        return 0
    from clipup.cli.running import carry_out
    from clipup.training.api import train

    return carry_out(
        arguments,
        lambda trackers: train(
            run=True if arguments.run is None else arguments.run, trackers=trackers, **entry.settings
        ),
    )
