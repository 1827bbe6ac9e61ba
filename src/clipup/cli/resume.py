"""``clipup resume``."""

from __future__ import annotations

import argparse
from typing import cast

from clipup.cli.arguments import add_output_flags
from clipup.cli.running import carry_out
from clipup.cli.train import add_setting_flags, given_settings
from clipup.runs.config import CHANGEABLE, settings
from clipup.runs.keywords import RunChanges
from clipup.training.api import resume

DESCRIPTION = """Go on with a run from its newest good checkpoint, to the same bits as if it had never stopped.

This works after Ctrl-C, kill -9, a crash or a power cut. Limits and execution can be changed, and the changes are kept.
Settings that decide the results cannot."""

EXAMPLES = """examples:
  clipup resume runs/Walker2d-v4-1
  clipup resume runs/Walker2d-v4-1 --generations +200      (200 more than planned)
  clipup resume runs/Walker2d-v4-1 --generations 1000      (1000 in all)
  clipup resume runs/Walker2d-v4-1 --workers 8 --time-limit 2h"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.usage = "clipup resume RUN [flags]"
    parser.add_argument("run", metavar="RUN", help="a run directory")
    parser.add_argument("--import", dest="imports", metavar="MODULE", action="append", default=[],
                        help="module that the run's environment may import")  # fmt: skip
    add_setting_flags(parser, [name for name in settings() if name in CHANGEABLE], default="as before")
    add_output_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Resume."""
    more: int | None = None
    text = arguments.generations or ""
    if text.startswith("+") and text[1:].isdecimal():
        more, arguments.generations = int(text[1:]), None
    given = cast(RunChanges, given_settings(arguments))
    return carry_out(
        arguments,
        lambda trackers: resume(
            arguments.run, imports=arguments.imports, more_generations=more, trackers=trackers, **given
        ),
    )
