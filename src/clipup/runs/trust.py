"""A file never causes an import, a connection or a crowd of processes.

``module:EnvId`` makes Gymnasium import `module`, which runs its code; so does the name of a task or a policy of one's
own. That is fine when a person typed it. When the name only stands in a file (a policy, a run's configuration), the
person has to name the module too. The same holds for the address of a cluster: what answers there sends objects that
run code when they are read. Services that log a run elsewhere are connected to only if the person names them in that
very call. A policy that a run starts from is read only if the person names it, because it lies outside of the run.
Workers that a file asks for are at most as many as there are processors here.
"""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Callable, Collection

from clipup.engines.wrappers import parse_wrappers
from clipup.errors import InvalidArgument
from clipup.policies.named import own_name
from clipup.processors import available_threads
from clipup.runs.config import RunConfig

SERVICES = ("wandb", "mlflow")
"""Settings that make clipup connect to a service outside."""
KNOWN_CLUSTERS = (None, "ray", "auto")
"""What a file may say of a cluster: none, or the one of this machine."""
_OLD_GYM = ("GymV21Environment", "GymV26Environment")  # adapters that import whatever their option env_id names


def check_import(env: str, *, named: Collection[str], source: str, wrapper: str | None = None) -> None:
    """Refuse an environment, and wrappers, from the file `source` whose modules the user did not name."""
    for one in parse_wrappers(wrapper):
        if one.module not in named:
            raise InvalidArgument(
                f"{source} names the wrapper {str(one)!r}, which imports the module {one.module!r}; "
                f"if you trust it, say so: --import {one.module}"
            )
    module, separator, name = env.rpartition(":")
    if name.startswith(_OLD_GYM):
        module, separator = module or "gym", ":"
    if separator and module not in named:
        raise InvalidArgument(
            f"{source} names the environment {env!r}, which imports the module {module!r}; "
            f"if you trust it, say so: --import {module}"
        )


def check_policy_import(policy: str, *, named: Collection[str], source: str) -> None:
    """Refuse a policy of one's own from the file `source` whose module the user did not name."""
    own = own_name(policy)
    if own is not None and own.place not in named:
        raise InvalidArgument(
            f"{source} names the policy {policy!r}, which imports {own.place!r}; if you trust it, say so: "
            f"--import {own.place}"
        )


def check_init(init: str | None, *, named: bool, source: str) -> None:
    """Refuse a policy to start from that only the file `source` names: a file leads to no other one."""
    if init is not None and not named:
        raise InvalidArgument(f"{source} starts from the policy {init!r}; if that is meant, say so: --init {init}")


def check_same_start(init: str | os.PathLike[str] | None, config: RunConfig, source: str) -> None:
    """Refuse a policy to start from that is not the one of the run in the file `source`."""
    if init is not None and os.fspath(init) != config.init:
        started = "no policy" if config.init is None else f"the policy {config.init!r}"
        raise InvalidArgument(f"{source} starts from {started}; init may only repeat that, got {os.fspath(init)!r}")


def import_words(env: str, policy: str = "", wrapper: str | None = None) -> list[str]:
    """Return the words that let a command import what a file names: ``--import MODULE`` for each module."""
    own = own_name(policy)
    wrappers = [one.module for one in parse_wrappers(wrapper)]
    modules = dict.fromkeys([env.rpartition(":")[0], "" if own is None else own.place, *wrappers])
    return [word for module in modules if module for word in ("--import", module)]


def import_flag(config: RunConfig) -> str:
    """Return `import_words` of a configuration as text that continues a command."""
    return "".join(f" {shlex.quote(word)}" for word in import_words(config.env, config.policy, config.wrapper))


def start_flag(config: RunConfig) -> str:
    """Return the words that let a command start from the policy that a file names, as text that continues it."""
    return "" if config.init is None else f" --init {shlex.quote(config.init)}"


def check_cluster(cluster: str | None, *, named: bool, source: str) -> None:
    """Refuse the address of a cluster from the file `source` that the user did not name."""
    if cluster not in KNOWN_CLUSTERS and not named:
        raise InvalidArgument(
            f"{source} names the cluster {cluster!r}, to which clipup would connect; if you trust it, say so: "
            f"--cluster {cluster}"
        )


def trusted_execution(config: RunConfig, typed: Collection[str], warn: Callable[[str], None]) -> RunConfig:
    """Return how `config` may be executed if only the settings in `typed` are a person's own words.

    Services are left out, and `warn` is told which. Workers are bounded by the processors here, unless a cluster that
    the person named has its own. Neither changes a result.
    """
    for name in SERVICES:
        project = getattr(config, name)
        if project is not None and name not in typed:
            warn(f"not logging to {name} project {project!r}, which only a file names; to do so: --{name} {project}")
    left_out = {name: None for name in SERVICES if name not in typed}
    workers = config.workers
    if workers is not None and "workers" not in typed and (config.cluster in (None, "ray") or "cluster" not in typed):
        workers = min(workers, available_threads())
    return dataclasses.replace(config, workers=workers, **left_out)
