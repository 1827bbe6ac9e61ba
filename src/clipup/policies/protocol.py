"""What the rest of clipup needs to know about a policy network."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class PolicyNetwork(Protocol):
    """An architecture whose parameters are one flat vector per candidate.

    A network computes outputs only. `clipup.policies.act.Actor` normalizes its inputs and bounds its outputs.
    """

    @property
    def observation_size(self) -> int:
        """Length of an observation."""
        ...

    @property
    def action_size(self) -> int:
        """Number of outputs."""
        ...

    @property
    def parameter_count(self) -> int:
        """Length of the flat parameter vector."""
        ...

    def describe(self) -> str:
        """Return the short form, such as ``mlp:64,64``."""
        ...

    def check(self, parameters: NDArray[np.float32]) -> None:
        """Raise `InvalidArgument` unless `parameters` has one row per candidate of this network's length."""
        ...

    def forward(self, parameters: NDArray[np.float32], inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the outputs (n, action_size) of row i's parameters on row i's inputs, in a new array.

        The bits of a row must not depend on the other rows, nor on how many there are.
        """
        ...
