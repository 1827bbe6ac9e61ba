"""``clipup resume``."""

from __future__ import annotations

import argparse

from clipup.cli.arguments import add_output_flags
from clipup.cli.running import carry_out, comment
from clipup.cli.train import add_setting_flags, given_settings
from clipup.runs.config import CHANGEABLE, settings
from clipup.training.api import change_config, check_limit, generations_made, proceed

DESCRIPTION = """Go on with a run from its newest good checkpoint, to the same bits as if it had never stopped.

Works after Ctrl-C, kill -9, a crash or a power cut. What fixes the results cannot be changed; limits and execution
can, and are kept for the next time."""

EXAMPLES = """examples:
  clipup resume runs/Walker2d-v4-1
  clipup resume runs/Walker2d-v4-1 --generations +200      (200 more than it was to have)
  clipup resume runs/Walker2d-v4-1 --generations 1000      (1000 in all)
  clipup resume runs/Walker2d-v4-1 --workers 8 --time-limit 2h"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.usage = "clipup resume RUN [flags]"
    parser.add_argument("run", metavar="RUN", help="a run directory")
    parser.add_argument("--import", dest="imports", metavar="MODULE", action="append", default=[],
                        help="module that the run's environment may import")  # fmt: skip
    add_setting_flags(parser, [name for name in settings() if name in CHANGEABLE])
    add_output_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Resume."""
    from clipup.runs.rundir import RunDirectory
    from clipup.runs.trust import check_cluster, check_import

    directory = RunDirectory(arguments.run)
    config = directory.read_config()
    more = arguments.generations
    if isinstance(more, str) and more.startswith("+") and more[1:].isdecimal():
        before = generations_made(directory) if config.generations is None else config.generations
        arguments.generations = str(before + int(more[1:]))
    given = given_settings(arguments)
    changed = change_config(config, given)
    check_limit(changed, directory)
    check_import(changed.env, named=arguments.imports, source=str(directory.config_path))
    check_cluster(changed.cluster, named="cluster" in given, source=str(directory.config_path))
    head = comment(directory.path)
    return carry_out(arguments, lambda trackers: proceed(changed, directory, trackers=trackers, comment=head))
