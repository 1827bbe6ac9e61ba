"""What an engine is asked to evaluate, checked once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clipup.engines.seeding import Stream, stream_number
from clipup.errors import InvalidArgument
from clipup.policies.network import Network
from clipup.policies.normalizer import Statistics


@dataclass(frozen=True)
class Request:
    """The arguments of `Engine.evaluate`, in one piece, the parameters row by row in memory.

    Another layout would take another way through the linear algebra, to other bits.
    """

    network: Network
    parameters: NDArray[np.float32]
    seed: int
    generation: int
    first: int
    statistics: Statistics | None
    collect_moments: bool
    stream: Stream

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", np.ascontiguousarray(self.parameters))

    def check(self, observation_size: int, action_size: int) -> None:
        """Raise `InvalidArgument` where the request cannot be run on a task of these sizes."""
        self.network.check(self.parameters)
        sizes = (self.network.observation_size, self.network.action_size)
        if sizes != (observation_size, action_size):
            raise InvalidArgument(
                f"the task has {observation_size} observations and takes {action_size} outputs, "
                f"but the network has {sizes[0]} and {sizes[1]}"
            )
        if self.statistics is not None and len(self.statistics.mean) != observation_size:
            raise InvalidArgument(
                f"statistics must be of {observation_size} observations, got {len(self.statistics.mean)}"
            )
        if not 0 <= self.seed < 2**64:
            raise InvalidArgument(f"seed must be an integer from 0 to 2**64 - 1, got {self.seed}")
        if self.generation < 0 or self.first < 0:
            raise InvalidArgument(f"generation and first must not be negative, got {self.generation} and {self.first}")
        stream_number(self.stream)

    @property
    def indices(self) -> NDArray[np.int64]:
        """Each row's candidate index within the generation."""
        return np.arange(self.first, self.first + len(self.parameters), dtype=np.int64)
