"""What an executor is."""

from __future__ import annotations

from typing import Protocol

from clipup.engines import Outcomes
from clipup.executors.jobs import WorkerDescription
from clipup.policies import Statistics
from clipup.searches.protocol import Batch, FloatArray, SumBlocks


class Executor(Protocol):
    """Evaluates candidates somewhere.

    Results depend on the arguments and on what the executor was made for. They never depend on where or in what order
    the candidates ran. An exception (such as that of Ctrl-C) may end any call at any point. After that, the executor
    can still be closed, or given the same call again.
    """

    @property
    def description(self) -> WorkerDescription:
        """The engine and the policy's network."""
        ...

    @property
    def place(self) -> str:
        """Where evaluation runs, in a few words for people, such as ``"2 processes"``."""
        ...

    @property
    def sum_blocks(self) -> SumBlocks | None:
        """Has workers sum the blocks of a search's sum, to the same bits; None if the search does it by itself."""
        ...

    def evaluate(self, batch: Batch, statistics: Statistics | None, *, following: Batch | None = None) -> Outcomes:
        """Evaluate all candidates of `batch`, in order; raise `EnvironmentFault` if every one of them failed.

        `following` is the batch that may be asked for next. An executor with idle workers may start it, and must drop
        it if something else is asked for instead.
        """
        ...

    def evaluate_center(
        self, center: FloatArray, statistics: Statistics | None, *, seed: int, generation: int, episodes: int
    ) -> Outcomes:
        """Evaluate the center on `episodes` episodes with the environment's own rewards and limits, one row each."""
        ...

    def close(self) -> None:
        """Release everything; may be called more than once."""
        ...
