"""What every search offers. Trainer, executors, records and checkpoints know a search by these names alone.

One generation goes like this. The search gives a batch of candidates, which any process can make from a few numbers.
Their fitnesses are told to it. It then either asks for more candidates of the same generation, or makes its update.
We maximize: a higher fitness is better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clipup.optimizers.protocol import State, StateValue
from clipup.optimizers.registry import OPTIMIZERS, OptimizerSettings

FloatArray = NDArray[np.float32]

RADIUS_FACTOR = 15.0
"""The initial radius over `max_speed`: the paper's rule (its section on hyperparameter tuning)."""


@runtime_checkable
class Batch(Protocol):
    """What a search wants evaluated next: candidates ``start .. stop - 1`` of one generation, not yet made.

    A batch is small and can be pickled. Each process that gets it makes the candidates that it needs.
    """

    @property
    def seed(self) -> int:
        """The seed of the search."""
        ...

    @property
    def generation(self) -> int:
        """The generation that the candidates belong to, counted from 0."""
        ...

    @property
    def start(self) -> int:
        """Index of the first candidate within its generation."""
        ...

    @property
    def stop(self) -> int:
        """One more than the index of the last candidate."""
        ...

    def __len__(self) -> int: ...

    def candidates(self, start: int | None = None, stop: int | None = None) -> FloatArray:
        """Return candidates ``start .. stop - 1``, one in each row (default: the whole batch).

        The indices count within the generation. A candidate has the same bits in every range that holds it.
        """
        ...

    def until(self, stop: int) -> Batch:
        """Return the candidates that follow this batch in its generation: ``self.stop .. stop - 1``."""
        ...

    def same_generation(self, other: object) -> bool:
        """Return whether equal indices mean equal candidates in both batches; they are compared by value."""
        ...


class BlockSum(Protocol):
    """A sum over a generation that workers can share: a block is summed anywhere, the search adds them in order.

    It is small and can be pickled.
    """

    @property
    def block_count(self) -> int:
        """How many blocks there are, numbered from 0."""
        ...

    @property
    def size(self) -> int:
        """How many numbers are drawn and added in all: this decides whether sharing the sum is worth it."""
        ...

    def block(self, number: int) -> tuple[NDArray[np.float64], ...]:
        """Return the sums of block `number`: the same bits on every machine and at every call."""
        ...


SumBlocks = Callable[[BlockSum], Iterable[tuple[NDArray[np.float64], ...]]]
"""Sums all blocks, and gives the results in the order of the blocks."""


@dataclass(frozen=True)
class Figures:
    """What a search says about its last generation, for the record; without one, speed and counts are 0.

    Parameters
    ----------
    population
        The candidates of the generation; before the first one, those of a batch.
    speed
        The norm of the center's step.
    max_speed
        The cap on `speed`; None without one.
    clipped
        Whether the step was shortened to `max_speed`.
    stdev_norm
        The norm of the standard deviations after the step.
    gradient_norm, gradient_agreement
        The norm of the gradient, and the cosine between its two halves; None for a search that estimates no gradient.
    nonfinite
        How many fitnesses were not finite.
    tied
        The share of the candidates whose fitness equalled that of another one.
    """

    population: int
    speed: float
    max_speed: float | None
    clipped: bool
    stdev_norm: float
    gradient_norm: float | None
    gradient_agreement: float | None
    nonfinite: int
    tied: float


@runtime_checkable
class Search(Protocol):
    """Asks for candidates, is told their fitnesses, and moves its center.

    Everything that changes is in the state. A search of equal settings that loads it goes on to the same bits, also
    from the middle of a generation. A call that raises leaves the search as it was.
    """

    kind: ClassVar[str]
    """The name of this search in the registry and in its saved states."""

    @property
    def dimension(self) -> int:
        """The number of parameters."""
        ...

    @property
    def seed(self) -> int:
        """The seed that fixes every candidate."""
        ...

    @property
    def generation(self) -> int:
        """The number of updates made."""
        ...

    @property
    def center(self) -> FloatArray:
        """The current solution, a copy."""
        ...

    def batch(self) -> Batch:
        """Return the candidates to evaluate next, without making them; the same until `tell` is called."""
        ...

    def following(self) -> Batch | None:
        """Return the batch that comes after `batch()` if the generation grows; None where it cannot grow."""
        ...

    def ask(self) -> FloatArray:
        """Return the candidates of `batch()`, one in each row."""
        ...

    def tell(
        self, fitnesses: ArrayLike, interactions: ArrayLike | None = None, *, sum_blocks: SumBlocks | None = None
    ) -> bool:
        """Take the fitnesses of the last batch; return True when that ended the generation.

        `interactions` are the environment steps of the batch, for a search whose generations grow by them.
        `sum_blocks` lets workers sum the blocks of the update; the result has the same bits.
        """
        ...

    def figures(self) -> Figures:
        """Return what there is to say about the last generation that ended."""
        ...

    def settings(self) -> Mapping[str, object]:
        """Return what the search was made with, for people and records."""
        ...

    def state_dict(self) -> State:
        """Return everything that changes during the search, flat: arrays, ints, floats and strings."""
        ...

    def load_state_dict(self, state: Mapping[str, StateValue]) -> None:
        """Go on from a state that `state_dict` gave; one that does not fit is refused and nothing changes."""
        ...


@runtime_checkable
class Adjustable(Protocol):
    """A search whose settings can change between two generations, as a schedule asks for."""

    def adjust(self, settings: SearchSettings, radius_scale: float = 1.0) -> None:
        """Go on with these settings. Center and velocity stay as they are.

        The standard deviations become `radius_scale` times what they would be without a schedule.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class SearchSettings(OptimizerSettings):
    """The settings from which any search in the registry can be made; each takes those that it knows.

    The names are those of `clipup.runs.config.RunConfig`, which says what each one means.
    """

    seed: int
    population: int
    population_max: int | None = None
    interactions: int | None = None
    radius: float | None = None
    radius_factor: float = RADIUS_FACTOR
    stdev: float | None = None
    optimizer: str = OPTIMIZERS[0]
    stdev_learning_rate: float
    stdev_max_change: float | None
    fitness_shaping: str
    weight_decay: float = 0.0
    top: int | None = None

    def initial_radius(self, dimension: int) -> float:
        """Return the norm of the initial standard deviations: from `stdev`, `radius`, or `max_speed`."""
        if self.stdev is not None:
            return self.stdev * math.sqrt(dimension)
        return self.radius_factor * self.max_speed if self.radius is None else self.radius
