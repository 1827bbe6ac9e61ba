"""``clipup resume``."""

from __future__ import annotations

import argparse
from typing import cast

from clipup.cli.arguments import add_output_flags
from clipup.cli.running import carry_out
from clipup.cli.seeds import carry_out_seeds
from clipup.cli.train import add_setting_flags, given_settings
from clipup.runs.config import CHANGEABLE, settings
from clipup.runs.keywords import RunChanges
from clipup.runs.seeds import SeedsDirectory
from clipup.training.api import resume
from clipup.training.seeds import resume_seeds

DESCRIPTION = """Go on with a run from its newest good checkpoint, to the same bits as if it had never stopped.

This works after Ctrl-C, kill -9, a crash or a power cut. Limits and execution can be changed, and the changes are kept.
Settings that decide the results cannot."""

EXAMPLES = """examples:
  clipup resume runs/Walker2d-v4-1
  clipup resume runs/Walker2d-v4-1 --generations +200      (200 more than planned)
  clipup resume runs/Walker2d-v4-1 --generations 1000      (1000 in all)
  clipup resume runs/Walker2d-v4-1 --workers 8 --time-limit 2h
  clipup resume runs/CartPole-v1-1                         (all runs of: clipup train CartPole-v1 --seeds 5)"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.usage = "clipup resume RUN [flags]"
    parser.add_argument("run", metavar="RUN", help="a run directory, or that of several seeds")
    parser.add_argument("--import", dest="imports", metavar="MODULE", action="append", default=[],
                        help="module that the run's environment may import")  # fmt: skip
    parser.add_argument("--env", metavar="MODULE:NAME",
                        help="where the function or class is that the run was trained on, if it has no id")  # fmt: skip
    parser.add_argument("--init", metavar="POLICY",
                        help="the policy that the run starts from, if it has no checkpoint yet")  # fmt: skip
    add_setting_flags(parser, [name for name in settings() if name in CHANGEABLE], default="as before")
    add_output_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Resume."""
    more: int | None = None
    text = arguments.generations or ""
    if text.startswith("+") and text[1:].isdecimal():
        more, arguments.generations = int(text[1:]), None
    own = {"env", "init"}
    given = cast(RunChanges, {name: value for name, value in given_settings(arguments).items() if name not in own})
    if SeedsDirectory(arguments.run).exists():
        return carry_out_seeds(
            arguments,
            lambda watch, seconds: resume_seeds(
                arguments.run,
                init=arguments.init,
                imports=arguments.imports,
                more_generations=more,
                watch=watch,
                watch_seconds=seconds,
                **given,
            ),
        )
    return carry_out(
        arguments,
        lambda trackers: resume(
            arguments.run,
            env=arguments.env,
            init=arguments.init,
            imports=arguments.imports,
            more_generations=more,
            trackers=trackers,
            **given,
        ),
    )
