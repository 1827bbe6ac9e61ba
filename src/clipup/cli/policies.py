"""What the commands that take a trained policy share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import cast

from clipup.engines import Task, registry
from clipup.errors import InvalidArgument
from clipup.export.policy import PolicyTask, policy_file, read_policy
from clipup.policies import Policy
from clipup.runs.toml import parse_value
from clipup.runs.trust import check_import


def add_policy_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the policy, and what may be said about its environment."""
    parser.add_argument("policy", metavar="RUN_OR_POLICY", help="a run directory, or a policy file")
    parser.add_argument("--best", action="store_true", help="of a run: its best evaluated policy, not its newest")
    group = parser.add_argument_group("the environment")
    group.add_argument("--env", metavar="ENV", help="another environment than the one it was trained on")
    group.add_argument("--engine", metavar="|".join(registry.names()), help="what runs it (default: as in training)")
    group.add_argument("--env.KEY", metavar="VALUE", dest="unused", help="option KEY of the environment")
    group.add_argument("--import", dest="imports", metavar="MODULE", action="append", default=[],
                       help="module that the environment named in the file may import")  # fmt: skip


def load(arguments: argparse.Namespace) -> tuple[Policy, Task, Path]:
    """The policy, the task to run it on, and its file."""
    path = policy_file(arguments.policy, best=arguments.best)
    policy, described = read_policy(path)
    env = arguments.env
    if env is None:
        env = described.env
        if not env:
            raise InvalidArgument(f"{path} names no environment; name one with --env")
        check_import(env, named=arguments.imports, source=str(path))
    return policy, make_task(described, env, arguments), path


def make_task(described: PolicyTask, env: str, arguments: argparse.Namespace) -> Task:
    """The task as described, with what was given on the command line."""
    given = cast("dict[str, str]", getattr(arguments, "env_options", {}))
    options = {**described.env_options, **{name: parse_value(text) for name, text in given.items()}}
    engine = arguments.engine or described.engine
    return Task(env=env, env_options=options, rescale_actions=described.rescale_actions, engine=engine)
