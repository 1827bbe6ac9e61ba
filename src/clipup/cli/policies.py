"""The arguments of the commands that take a trained policy, and how they find it."""

from __future__ import annotations

import argparse
from pathlib import Path

from clipup.cli.arguments import add_env_options
from clipup.cli.output import note
from clipup.engines import Task
from clipup.errors import InvalidArgument
from clipup.evaluation.trained_task import task_of
from clipup.export.policy import policy_file, read_policy
from clipup.policies import Policy
from clipup.runs.config import ENGINES
from clipup.runs.trust import check_import


def add_policy_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the policy and the flags about its environment."""
    parser.add_argument("policy", metavar="RUN_OR_POLICY", help="a run directory, or a policy file")
    parser.add_argument("--best", action="store_true", help="the best evaluated policy of a run, not the newest")
    group = add_env_options(parser)
    group.add_argument("--env", metavar="ENV", help="use this environment instead of the one it was trained on")
    group.add_argument("--engine", metavar="|".join(ENGINES), help="what runs it (default: as in training)")
    group.add_argument("--import", dest="imports", metavar="MODULE", action="append", default=[],
                       help="module that the environment or policy named in the file may import")  # fmt: skip


def load(arguments: argparse.Namespace, *, rendering: bool = False) -> tuple[Policy, Task, Path]:
    """The policy, the task to run it on, and its file."""
    path = policy_file(arguments.policy, best=arguments.best)
    policy, described = read_policy(path, imports=arguments.imports)
    env = arguments.env
    if env is None:
        env = described.env
        if not env:
            raise InvalidArgument(f"{path} names no environment; name one with --env")
        check_import(env, named=arguments.imports, source=str(path))
    check_import("", named=arguments.imports, source=str(path), wrapper=described.wrapper)
    task, text = task_of(
        described, env=env, env_options=arguments.env_options, engine=arguments.engine, rendering=rendering
    )
    if text is not None:
        note(text)
    return policy, task, path
