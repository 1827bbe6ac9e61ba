"""What workers are told once, so that ranges of indices are all that needs to follow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clipup.engines import Engine, Rollout, Task
from clipup.executors import wire
from clipup.policies import Network, Statistics
from clipup.searches.gradient import GradientWork
from clipup.searches.sampling import FloatArray, candidates


@dataclass(frozen=True)
class Setup:
    """What a worker is made for: it lasts as long as the worker."""

    task: Task
    policy: str
    lanes: int
    collect_moments: bool
    timed: bool = False
    """Whether a clock runs during episodes: nothing is then made in them that can be made before."""


class Bench(Protocol):
    """What a worker has at hand."""

    @property
    def network(self) -> Network:
        """The policy's network."""
        ...

    @property
    def collect_moments(self) -> bool:
        """Whether observation statistics are wanted."""
        ...

    def engine(self, *, evaluation: bool) -> Engine:
        """The engine for training, or for evaluation."""
        ...


class Subject(Protocol):
    """Something that can be done index by index, anywhere, from nothing but itself and the indices."""

    @property
    def noun(self) -> str:
        """What one index stands for."""
        ...

    @property
    def episodes(self) -> int:
        """Episodes of one index; 0 where nothing is simulated."""
        ...

    @property
    def step(self) -> int:
        """Indices that are better kept together."""
        ...

    def run(self, bench: Bench, start: int, stop: int) -> bytes:
        """Do the indices ``start … stop - 1`` and return the result, packed by `clipup.executors.wire`."""
        ...


@dataclass(frozen=True, eq=False)
class Population:
    """A generation's candidates: their number is open, which is what makes speculation possible."""

    seed: int
    generation: int
    center: FloatArray
    stdev: FloatArray
    statistics: Statistics | None
    episodes: int = 1

    noun: str = field(default="candidate", init=False)
    step: int = field(default=2, init=False)  # the noise of a mirrored pair is made once

    def run(self, bench: Bench, start: int, stop: int) -> bytes:
        """Make the candidates and evaluate them."""
        rows = candidates(self.center, self.stdev, self.seed, self.generation, start, stop)
        outcomes = bench.engine(evaluation=False).evaluate(
            Rollout(
                bench.network,
                rows,
                seed=self.seed,
                generation=self.generation,
                first=start,
                statistics=self.statistics,
                collect_moments=bench.collect_moments,
            )
        )
        return wire.pack_outcomes(outcomes)

    def same(self, other: object) -> bool:
        """Compare by value: a batch that looks like the one speculated on, but is not, gets its own results."""
        return (
            isinstance(other, Population)
            and (self.seed, self.generation) == (other.seed, other.generation)
            and _equal(self.center, other.center)
            and _equal(self.stdev, other.stdev)
            and _equal_statistics(self.statistics, other.statistics)
        )


@dataclass(frozen=True, eq=False)
class Center:
    """One policy over many episodes, as the environment means them."""

    seed: int
    generation: int
    center: FloatArray
    statistics: Statistics | None

    noun: str = field(default="evaluation episode", init=False)
    episodes: int = field(default=1, init=False)
    step: int = field(default=1, init=False)

    def run(self, bench: Bench, start: int, stop: int) -> bytes:
        """Run one episode for each index."""
        outcomes = bench.engine(evaluation=True).evaluate(
            Rollout(
                bench.network,
                np.tile(self.center, (stop - start, 1)),
                seed=self.seed,
                generation=self.generation,
                first=start,
                statistics=self.statistics,
                stream="evaluation",
            )
        )
        return wire.pack_outcomes(outcomes)


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of a generation's gradient."""

    work: GradientWork

    noun: str = field(default="gradient block", init=False)
    episodes: int = field(default=0, init=False)
    step: int = field(default=1, init=False)

    def run(self, bench: Bench, start: int, stop: int) -> bytes:
        """Sum the directions of each block; the blocks themselves are added by the search, in order."""
        with np.errstate(over="ignore", invalid="ignore"):
            return wire.pack_sums([self.work.block(number) for number in range(start, stop)])


def _equal(one: NDArray[np.generic], other: NDArray[np.generic]) -> bool:
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def _equal_statistics(one: Statistics | None, other: Statistics | None) -> bool:
    if one is None or other is None:
        return one is other
    return _equal(one.mean, other.mean) and _equal(one.stdev, other.stdev)
