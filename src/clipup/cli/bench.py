"""``clipup bench``."""

from __future__ import annotations

import argparse
import dataclasses

from clipup.cli.arguments import add_env_options, add_output_flags, whole_number
from clipup.cli.output import print_json, say
from clipup.engines import Task, registry
from clipup.training.bench import Contest, measure

DESCRIPTION = """Measure how fast this machine trains on ENV, and how fast the simulator alone is.

Both run in turns in one process. So their ratio means something even on a busy machine, where the speeds do not."""
EXAMPLES = """examples:
  clipup bench LunarLanderContinuous-v3
  clipup bench Humanoid-v4 --policy mlp:64 --workers 2 --json"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "env", metavar="ENV", help="an id, module:id, or your own environment or task: module:Name, file.py:Name"
    )
    parser.add_argument("--policy", default="linear-bias", metavar="TEXT", help="as in train (default: linear-bias)")
    parser.add_argument("--population", type=whole_number, default=200, metavar="N", help="candidates (default: 200)")
    parser.add_argument("--lanes", type=whole_number, metavar="N", help="simulators in parallel")
    parser.add_argument("--workers", type=whole_number, metavar="N", help="threads (default: all)")
    parser.add_argument("--engine", default="auto", metavar="|".join(registry.names()), help="what runs it")
    parser.add_argument("--seconds", type=float, default=4.0, metavar="X", help="of each measurement (default: 4)")
    parser.add_argument("--repeats", type=whole_number, default=3, metavar="N", help="measurements (default: 3)")
    add_env_options(parser)
    add_output_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measure."""
    contest = Contest(
        Task(arguments.env, env_options=arguments.env_options, engine=arguments.engine),
        network=arguments.policy,
        population_size=arguments.population,
        lanes=arguments.lanes,
        threads=arguments.workers,
    )
    found = measure(contest, seconds=arguments.seconds, repeats=arguments.repeats)
    if arguments.json:
        print_json(dataclasses.asdict(found))
        return 0
    if not arguments.quiet:
        threads = registry.entry(found.engine).own_threads
        place = f"{found.threads} threads, {found.lanes} lanes" if threads else "in this process"
        say(f"{found.environment} with {found.engine} ({found.reason}), {place}")
    say(f"simulator alone  {found.simulator_steps_per_second:>12,.0f} steps/s")
    say(f"training         {found.our_steps_per_second:>12,.0f} steps/s")
    say(f"ratio            {found.ratio:>12.3f}")
    return 0
