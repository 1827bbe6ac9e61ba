"""What an engine is asked to evaluate, checked in one place."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from clipup.engines.outcomes import Outcomes
from clipup.engines.seeding import Stream, stream_number
from clipup.errors import InvalidArgument
from clipup.policies.normalizer import Statistics
from clipup.policies.observations import Observations
from clipup.policies.protocol import PolicyNetwork
from clipup.policies.trained import Policy


@dataclass(frozen=True)
class Rollout:
    """Candidates ``first … first + n - 1`` of a generation, to be run in a simulator.

    Parameters
    ----------
    network
        The policy that the parameters belong to.
    parameters
        One candidate per row, of shape ``(n, network.parameter_count)``.
    seed
        The run's seed, from 0 to 2**64 - 1.
    generation
        The generation's number; with `seed`, `first` and `stream` it decides the random starts.
    first
        The index within its generation of the candidate in the first row.
    statistics
        What observations are normalized by; None leaves them as they are.
    collect_moments
        Whether the outcomes hold the moments of each candidate's observations.
    stream
        ``"training"`` or ``"evaluation"``: the two have independent random starts.
    """

    network: PolicyNetwork
    parameters: NDArray[np.float32]
    seed: int
    generation: int
    first: int = 0
    statistics: Statistics | None = None
    collect_moments: bool = False
    stream: Stream = "training"

    def __post_init__(self) -> None:
        # Row by row in memory: another layout takes another way through the linear algebra, to other bits.
        object.__setattr__(self, "parameters", np.ascontiguousarray(self.parameters))

    def check(self, observation_size: int, action_size: int) -> None:
        """Raise `InvalidArgument` where this cannot be run on a task of these sizes."""
        self.network.check(self.parameters)
        check_sizes(self.network, observation_size, action_size)
        if self.statistics is not None and len(self.statistics.mean) != observation_size:
            got = len(self.statistics.mean)
            raise InvalidArgument(f"statistics must be of {observation_size} observations, got {got}")
        if not 0 <= self.seed < 2**64:
            raise InvalidArgument(f"seed must be an integer from 0 to 2**64 - 1, got {self.seed}")
        if self.generation < 0 or self.first < 0:
            raise InvalidArgument(f"generation and first must not be negative, got {self.generation} and {self.first}")
        stream_number(self.stream)

    @property
    def indices(self) -> NDArray[np.int64]:
        """Each row's candidate index within the generation."""
        return np.arange(self.first, self.first + len(self.parameters), dtype=np.int64)


def check_sizes(network: PolicyNetwork, observation_size: int, action_size: int) -> None:
    """Raise `InvalidArgument` unless `network` fits a task of these sizes."""
    if (network.observation_size, network.action_size) != (observation_size, action_size):
        raise InvalidArgument(
            f"the policy takes {network.observation_size} observations and gives {network.action_size} outputs, "
            f"but the task has {observation_size} observations and takes {action_size} outputs"
        )


def check_observations(policy: Policy, here: Observations | None) -> None:
    """Raise `InvalidArgument` if the parts of an observation are others than those that the policy was trained on."""
    if policy.observations is not None and here is not None and policy.observations != here:
        raise InvalidArgument(
            f"the policy was trained on observations of {policy.observations.describe()}, but the task gives "
            f"{here.describe()}"
        )


_Evaluate = TypeVar("_Evaluate", bound=Callable[..., Outcomes])


def takes_rollout(evaluate: _Evaluate) -> _Evaluate:
    """Let an engine's `evaluate` also take the fields of a `Rollout`, as it did in version 0.1 (deprecated)."""

    @functools.wraps(evaluate)
    def wrapper(engine: object, *arguments: Any, **fields: Any) -> Outcomes:
        given = arguments[0] if arguments else fields.get("rollout")
        if not isinstance(given, Rollout):
            text = "evaluate takes one clipup.engines.Rollout now: evaluate(Rollout(network, parameters, seed=…, …))"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            given = Rollout(*arguments, **fields)
        return evaluate(engine, given)

    return cast("_Evaluate", wrapper)
