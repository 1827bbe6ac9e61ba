"""What an executor is."""

from __future__ import annotations

from typing import Protocol

from clipup.engines import Outcomes
from clipup.policies import Actions, Network, Statistics
from clipup.searches.pgpe import SumBlocks
from clipup.searches.sampling import Batch, FloatArray


class Executor(Protocol):
    """Evaluates candidates somewhere.

    Results depend on the arguments and on what the executor was made for, never on where or in what order the
    candidates ran. Any call may be ended by an exception (such as the one that Ctrl-C raises) at any point; the
    executor must then still close, or take the same call again.
    """

    @property
    def network(self) -> Network:
        """The policy's network."""
        ...

    @property
    def actions(self) -> Actions:
        """How its outputs become actions."""
        ...

    @property
    def engine(self) -> str:
        """Name of the rollout engine."""
        ...

    @property
    def engine_reason(self) -> str:
        """Why that engine was taken."""
        ...

    @property
    def description(self) -> str:
        """Where evaluation runs, in a few words for people."""
        ...

    @property
    def sum_blocks(self) -> SumBlocks | None:
        """Sums the blocks of a gradient elsewhere, to the same bits; None leaves it to the search."""
        ...

    def evaluate(self, batch: Batch, statistics: Statistics | None, *, following: Batch | None = None) -> Outcomes:
        """All candidates of `batch`, in order; `EnvironmentFault` where every one of them failed.

        `following` is the batch that may be asked for next: an executor with idle workers may start on it, and must
        drop it when something else is asked for instead.
        """
        ...

    def evaluate_center(
        self, center: FloatArray, statistics: Statistics | None, *, seed: int, generation: int, episodes: int
    ) -> Outcomes:
        """The center over `episodes` episodes of the task as the environment means it, one row per episode."""
        ...

    def close(self) -> None:
        """Let go of everything; may be called more than once."""
        ...
