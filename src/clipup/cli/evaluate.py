"""``clipup evaluate``."""

from __future__ import annotations

import argparse
import dataclasses
import math

from clipup.cli.arguments import add_output_flags, seed_number, whole_number
from clipup.cli.output import print_json, say
from clipup.cli.policies import add_policy_arguments, load

DESCRIPTION = """Run a trained policy and print the mean, median, min, max and standard error of its returns.

Rewards and the length of an episode are the environment's own, even where training changed them. --seed fixes the
episodes: the same command gives the same numbers."""

EXAMPLES = """examples:
  clipup evaluate runs/LunarLanderContinuous-v3-1
  clipup evaluate policy.safetensors --episodes 100 --seed 7 --json
  clipup evaluate runs/LunarLanderContinuous-v3-1 --env.enable_wind true      (how robust it is)"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_policy_arguments(parser)
    parser.add_argument("--episodes", type=whole_number, default=16, metavar="N", help="how many (default: 16)")
    parser.add_argument("--seed", type=seed_number, default=0, metavar="N", help="fixes the episodes (default: 0)")
    parser.add_argument("--workers", type=whole_number, metavar="N", help="threads (default: all)")
    add_output_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate."""
    from clipup.evaluation.evaluate import evaluate

    policy, task, path = load(arguments)
    found = evaluate(policy, task, episodes=arguments.episodes, seed=arguments.seed, threads=arguments.workers)
    summary = found.summary
    if arguments.json:
        print_json(
            {
                **dataclasses.asdict(summary),
                "env": task.label,
                "engine": found.engine,
                "seed": found.seed,
                "interactions": found.interactions,
                "policy": str(path),
                "returns": found.returns,
            }
        )
        return 0
    if not arguments.quiet:
        plural = "" if summary.episodes == 1 else "s"
        say(f"{path} on {task.label} ({found.engine}), {summary.episodes} episode{plural}, seed {found.seed}")
    error = f" ± {summary.standard_error:.2f} (standard error)" if math.isfinite(summary.standard_error) else ""
    say(f"mean {summary.mean:.2f}{error}")
    say(f"median {summary.median:.2f}, min {summary.min:.2f}, max {summary.max:.2f}")
    return 0
