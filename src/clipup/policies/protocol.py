"""What the rest of clipup needs to know about a policy network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Piece:
    """An array within the flat parameter vector: its name in files, its shape, and its first place."""

    name: str
    shape: tuple[int, ...]
    start: int

    @property
    def place(self) -> slice:
        """Where it lies."""
        return slice(self.start, self.start + math.prod(self.shape))


class PolicyNetwork(Protocol):
    """A policy whose parameters are one flat vector per candidate, with a memory or without.

    It computes outputs only. `clipup.policies.act.Actor` normalizes its inputs and bounds its outputs. What it
    remembers is a vector of float32 that is zero when an episode starts, and that only `step` changes.

    A network may also have a `kernel` (`clipup.policies.stepping.Kernel`): one step of one candidate in machine code.
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

    @property
    def state_size(self) -> int:
        """How many numbers it remembers from step to step; 0 without a memory."""
        ...

    def describe(self) -> str:
        """Return the short form, such as ``mlp:64,64``."""
        ...

    def check(self, parameters: NDArray[np.float32]) -> None:
        """Raise `InvalidArgument` unless `parameters` has one row per candidate of this network's length."""
        ...

    def initial_center(self, seed: int) -> NDArray[np.float32]:
        """Return the parameters that a search starts from, which may be random."""
        ...

    def arrange(self, parameters: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return rows of parameters in the order in which `step` takes them."""
        ...

    def step(
        self, arranged: NDArray[np.float32], state: NDArray[np.float32], inputs: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return the outputs (n, action_size) of row i's parameters on row i's inputs, in a new array.

        `arranged` has a row for each row of inputs, or one for all. The rows of `state` (n, state_size) are changed.
        The bits of a row must not depend on the other rows, nor on how many there are.
        """
        ...
