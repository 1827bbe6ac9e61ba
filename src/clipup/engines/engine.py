"""What an engine is, and which one a task gets."""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clipup.engines import registry
from clipup.engines.outcomes import Outcomes
from clipup.engines.seeding import Stream
from clipup.engines.task import Task, check_count
from clipup.errors import InvalidArgument, MissingDependency
from clipup.policies.actions import Actions
from clipup.policies.network import Network
from clipup.policies.normalizer import Statistics

DEFAULT_LANES = 256


class Engine(Protocol):
    """Runs candidates in a simulator.

    The result of candidate ``first + j`` depends on row j of the parameters, the statistics, the task and
    (seed, generation, candidate, stream) alone: not on the other rows, the number of threads, what was evaluated
    before, or how often. (With EnvPool it also depends on `lanes`, which is why that is no property of the machine.)
    """

    @property
    def name(self) -> str:
        """``"envpool"`` or ``"gymnasium"``."""
        ...

    @property
    def reason(self) -> str:
        """Why this engine was taken."""
        ...

    @property
    def observation_size(self) -> int:
        """Length of an observation."""
        ...

    @property
    def actions(self) -> Actions:
        """How outputs become actions."""
        ...

    def evaluate(
        self,
        network: Network,
        parameters: NDArray[np.float32],
        *,
        seed: int,
        generation: int,
        first: int = 0,
        statistics: Statistics | None = None,
        collect_moments: bool = False,
        stream: Stream = "training",
    ) -> Outcomes:
        """Evaluate candidates ``first … first + n - 1`` of a generation, whose parameters are the rows given.

        Parameters
        ----------
        network
            The policy that the parameters are of.
        parameters
            One candidate a row, of shape ``(n, network.parameter_count)``.
        seed
            The run's, from 0 to 2**64 - 1.
        generation
            The generation's number; with `seed`, `first` and `stream` it decides the random starts.
        first
            The index within its generation of the candidate in the first row.
        statistics
            What observations are normalized by; None leaves them as they are.
        collect_moments
            Whether the outcomes hold the moments of each candidate's observations.
        stream
            ``"training"`` or ``"evaluation"``: their random starts have nothing to do with each other.
        """
        ...

    def close(self) -> None:
        """Let the simulators go; the engine can be used again and makes new ones."""
        ...


def available_threads() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make_engine(task: Task, *, lanes: int = DEFAULT_LANES, threads: int | None = None) -> Engine:
    """Return the engine for `task`.

    Parameters
    ----------
    task
        What is run; its `engine` says which engine, or ``"auto"``.
    lanes
        How many simulators EnvPool holds at most (twice as many while a population is larger). It is part of what is
        computed (a candidate beyond the lanes starts where the one before it on its lane left the random numbers), so
        it must not follow the machine. Even, for ``episode_seeds="pair"``. Best equal to the population size, where
        memory allows.
    threads
        Threads of EnvPool; None takes all processors. Results do not depend on it.
    """
    check_count("lanes", lanes)
    if threads is not None:
        check_count("threads", threads)
    from clipup.engines.gymnasium import GymnasiumEngine

    if task.engine == "gymnasium":
        return GymnasiumEngine(task, reason="asked for")
    refusal = registry.envpool_refusal(task)
    if refusal is None:
        from clipup.engines.envpool import EnvPoolEngine

        reason = "asked for" if task.engine == "envpool" else f"EnvPool has {task.label} and honours every option"
        return EnvPoolEngine(task, lanes=lanes, threads=threads or available_threads(), reason=reason)
    if task.engine == "envpool":
        raise refusal
    try:
        return GymnasiumEngine(task, reason=str(refusal))
    except MissingDependency:
        raise
    except InvalidArgument as error:
        if registry.envpool_has(task):
            raise type(refusal)(f"{refusal}; nor can Gymnasium run it: {error}") from error
        raise
