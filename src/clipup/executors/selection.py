"""Chooses where evaluation runs."""

from __future__ import annotations

import logging

from clipup.engines import Task, registry
from clipup.engines.protocol import DEFAULT_LANES
from clipup.errors import InvalidArgument, NoProcesses
from clipup.executors.inline import InlineExecutor
from clipup.executors.jobs import Setup
from clipup.executors.protocol import Executor
from clipup.processors import available_threads

FEWEST_PROCESSES = 2
"""One worker means: stay in this process."""

_logger = logging.getLogger("clipup")


def make_executor(
    task: Task,
    policy: object,
    *,
    collect_moments: bool,
    lanes: int = DEFAULT_LANES,
    workers: int | None = None,
    cluster: str | None = None,
    episode_timeout: float | None = None,
    mixed_arithmetic: bool = False,
) -> Executor:
    """Return the executor for a task; the other arguments are settings of a run (`clipup.runs.config.RunConfig`).

    `workers` counts threads, processes or actors, depending on the engine and the cluster. None means one for each
    processor; one process means: stay in this process. `episode_timeout` is for environments that may hang, and needs
    processes or a cluster. `mixed_arithmetic` accepts workers that round differently.
    """
    if workers is not None and workers < 1:
        raise InvalidArgument(f"workers must be at least 1, got {workers}")
    if episode_timeout is not None and not episode_timeout > 0:
        raise InvalidArgument(f"episode_timeout must be positive seconds, got {episode_timeout}")
    setup = Setup(task, policy, collect_moments, lanes, timed=episode_timeout is not None)
    if cluster is not None:
        from clipup.executors.distributed import DistributedExecutor
        from clipup.executors.ray import RayTransport

        return DistributedExecutor(
            RayTransport(setup, cluster, workers),
            task,
            episode_timeout=episode_timeout,
            mixed_arithmetic=mixed_arithmetic,
        )
    engine, _ = registry.choose(task)
    if engine.own_threads and episode_timeout is not None:
        others = " or ".join(repr(entry.name) for entry in registry.ENTRIES if not entry.own_threads)
        raise InvalidArgument(
            f"episode_timeout ends worker processes, but {engine.title}'s environments run in threads of this process; "
            f"remove it, or choose engine {others} or a cluster"
        )
    processes = 1 if engine.own_threads else workers or available_threads()
    if processes >= FEWEST_PROCESSES or episode_timeout is not None:
        from clipup.executors.distributed import DistributedExecutor
        from clipup.executors.processes import ProcessTransport

        try:
            return DistributedExecutor(
                ProcessTransport(setup, processes),
                task,
                episode_timeout=episode_timeout,
                mixed_arithmetic=mixed_arithmetic,
            )
        except NoProcesses as error:
            if workers is not None or episode_timeout is not None:
                raise
            _logger.warning("running in one process: %s", error)
    return InlineExecutor(setup, threads=workers)
