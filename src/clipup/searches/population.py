"""How many candidates a generation has: a fixed number, or as many batches as its interactions need."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from clipup.errors import InvalidArgument, StateMismatch
from clipup.searches.checks import is_whole

_MAX_FACTOR = 8  # as in the paper's Walker2d and Bullet settings


@dataclass(frozen=True)
class PopulationSize:
    """The paper's adaptive population, or a fixed one.

    An adaptive generation grows by `batch` candidates until its interactions reach `interactions` (T) or its candidates
    reach `maximum` (λ_max). Its last batch is cut so that λ_max is never exceeded. In a fixed population both are None,
    and a generation is one batch.

    >>> size = PopulationSize(batch=10, interactions=100, maximum=26)
    >>> size.stop(0), size.stop(10), size.stop(20), size.stop(26)
    (10, 20, 26, 26)
    >>> size.grows(candidates=10, interactions=99), size.grows(10, 100), size.grows(26, 99)
    (True, False, False)
    """

    batch: int
    interactions: int | None = None
    maximum: int | None = None

    @classmethod
    def of(
        cls,
        dimension: int,
        population_size: int | None,
        interactions: int | None,
        population_max: int | None,
        *,
        default: int | None = None,
        mirrored: bool = True,
    ) -> Self:
        """Return the size that these arguments of a search describe, or refuse them.

        Without a `population_size`, a batch has `default` candidates, or ``2 * ceil(10 + sqrt(dimension))``.
        """
        if population_size is None:
            batch = 2 * math.ceil(10 + math.sqrt(dimension)) if default is None else default
        else:
            batch = _check_size("population_size", population_size, mirrored)
        if interactions is None:
            if population_max is not None:
                raise InvalidArgument(
                    f"population_max={population_max!r} bounds an adaptive population; "
                    "give interactions=… too, or neither"
                )
            return cls(batch)
        if not is_whole(interactions) or interactions < 1:
            raise InvalidArgument(f"interactions must be a positive whole number, got {interactions!r}")
        maximum = (
            _MAX_FACTOR * batch if population_max is None else _check_size("population_max", population_max, mirrored)
        )
        if maximum < batch:
            raise InvalidArgument(f"population_max must be at least population_size={batch}, got {maximum}")
        return cls(batch, int(interactions), maximum)

    def stop(self, start: int) -> int:
        """Return where a batch that begins at candidate `start` stops: at `start` if the generation is at its limit."""
        limit = self.batch if self.maximum is None else self.maximum
        return min(start + self.batch, limit)

    def grows(self, candidates: int, interactions: int) -> bool:
        """Return whether a generation that has this much so far gets another batch."""
        return self.interactions is not None and interactions < self.interactions and candidates < self.stop(candidates)

    def count(self, interactions: ArrayLike | None, asked: int) -> int:
        """Return the total of the interactions that were told for `asked` candidates, or refuse them."""
        if self.interactions is None:
            if interactions is not None:
                raise InvalidArgument(
                    "interactions were told, but the population is not adaptive; make the search with interactions=T, "
                    "or leave them out"
                )
            return 0
        if interactions is None:
            raise InvalidArgument(
                "tell needs interactions=…, those of the batch: "
                f"the population grows until they reach {self.interactions}, got none"
            )
        counts = np.asarray(interactions)
        if counts.shape not in {(), (asked,)} or counts.dtype.kind not in "iu":
            raise InvalidArgument(
                f"interactions must be one whole number or {asked} of them, got shape {counts.shape} of {counts.dtype}"
            )
        if (counts < 0).any():
            raise InvalidArgument(f"interactions must not be negative, got {int(counts.min())}")
        return int(counts.sum())

    def check_progress(self, told: int, asked: int) -> None:
        """Refuse a saved generation that a search of this size could not have begun."""
        batch = self.stop(told) - told
        if told % self.batch or batch <= 0 or asked not in {0, batch}:
            raise StateMismatch(
                f"the saved generation ({told} fitnesses told, {asked} asked) does not fit a search with "
                f"population_size={self.batch}, population_max={self.maximum}"
            )


def _check_size(name: str, value: int, mirrored: bool) -> int:
    if mirrored and (not is_whole(value) or value < 2 or value % 2):
        raise InvalidArgument(f"{name} must be an even number of at least 2 (candidates come in pairs), got {value!r}")
    if not is_whole(value) or value < 2:
        raise InvalidArgument(f"{name} must be a whole number of at least 2, got {value!r}")
    return int(value)
