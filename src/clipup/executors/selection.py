"""The one place where it is decided where evaluation runs."""

from __future__ import annotations

from clipup.errors import InvalidArgument
from clipup.executors.inline import InlineExecutor
from clipup.executors.protocol import Executor
from clipup.rollout import Task


def make_executor(
    task: Task,
    policy: str,
    *,
    collect_moments: bool,
    lanes: int = 256,
    workers: int | None = None,
    cluster: str | None = None,
) -> Executor:
    """Return the executor for a task.

    Parameters
    ----------
    task, policy
        What is run, and the network as text (``linear``, ``linear-bias``, ``mlp:64,64``).
    collect_moments
        Whether observation statistics are wanted.
    lanes
        How many simulators EnvPool holds; part of what is computed.
    workers
        Threads for EnvPool, processes for Gymnasium; None takes what the machine has.
    cluster
        ``"ray"`` or ``"ray://address:port"`` to run on a cluster.
    """
    if cluster is not None:
        raise InvalidArgument(f"cluster must be none for now, got {cluster!r}")
    return InlineExecutor(task, policy, collect_moments=collect_moments, lanes=lanes, threads=workers)
