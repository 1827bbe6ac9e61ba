"""Adapters to the searches and engines of before the redesign. Temporary: the merge deletes this module.

Each name says which name of the new seams replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clipup.engines import Engine, Task
from clipup.engines.registry import envpool_refusal
from clipup.policies import Actions
from clipup.searches.gradient import GradientWork, Sums
from clipup.searches.sampling import Batch

__all__ = ["Batch"]


class BlockSum(Protocol):  # clipup.searches.protocol.BlockSum
    """A sum that workers can share."""

    block_count: int
    size: int

    def block(self, number: int) -> tuple[NDArray[np.float64], ...]:
        """Return the sums of one block."""
        ...


SumBlocks = Callable[[GradientWork], Iterable[Sums]]  # clipup.searches.protocol.SumBlocks


@dataclass(frozen=True)
class _Gradient:
    work: GradientWork

    @property
    def block_count(self) -> int:
        return self.work.block_count

    @property
    def size(self) -> int:
        return len(self.work.weights.center) * self.work.dimension

    def block(self, number: int) -> tuple[NDArray[np.float64], ...]:
        sums = self.work.block(number)
        return sums.even, sums.odd, sums.squares


def block_sum(work: GradientWork) -> BlockSum:  # the search's own object is a BlockSum
    """Return PGPE's gradient as a shared sum."""
    return _Gradient(work)  # pyright: ignore[reportReturnType]


def as_sums(blocks: Iterable[tuple[NDArray[np.float64], ...]]) -> Iterable[Sums]:  # nothing
    """Return the sums as PGPE takes them today."""
    return (Sums(*block) for block in blocks)


def until(batch: Batch, stop: int) -> Batch:  # batch.until(stop)
    """Return the candidates that follow a batch."""
    return replace(batch, start=batch.stop, stop=stop)


def same_generation(one: Batch, other: object) -> bool:  # one.same_generation(other)
    """Return whether equal indices of both give equal candidates."""
    return (
        isinstance(other, Batch)
        and (one.seed, one.generation) == (other.seed, other.generation)
        and one.center.tobytes() == other.center.tobytes()
        and one.stdev.tobytes() == other.stdev.tobytes()
    )


@dataclass(frozen=True)
class EngineDescription:  # clipup.engines.protocol.EngineDescription
    """What an engine says of itself."""

    name: str
    version: str
    reason: str
    observation_size: int
    actions: Actions


def describe(engine: Engine) -> EngineDescription:  # engine.description
    """Return what an engine says of itself."""
    return EngineDescription(engine.name, "", engine.reason, engine.observation_size, engine.actions)


def preferred_candidates(engine: str) -> int:  # registry.entry(engine).preferred_candidates
    """Return how many candidates an engine likes at once."""
    return 32 if engine == "envpool" else 2


def own_threads(engine: str) -> bool:  # registry.entry(engine).own_threads
    """Return whether an engine is parallel inside one process."""
    return engine == "envpool"


def choose(task: Task) -> str:  # registry.choose(task)[0].name
    """Return the name of the engine that runs a task."""
    return "envpool" if task.engine != "gymnasium" and envpool_refusal(task) is None else "gymnasium"
