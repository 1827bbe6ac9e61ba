"""The results of evaluating candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clipup.errors import EnvironmentFault
from clipup.policies.normalizer import Moments


@dataclass(frozen=True)
class Failure:
    """A candidate that could not be evaluated: its index within the generation, and why."""

    index: int
    message: str


@dataclass(frozen=True)
class Outcomes:
    """The results of consecutive candidates, in order.

    Attributes
    ----------
    fitness
        (n,) float64, mean over the episodes of what the task scores; NaN where a reward, an observation or an action
        was not finite, or where the candidate failed.
    returns
        (n,) float64, mean over the episodes of the environment's own summed reward.
    interactions
        (n,) int64, environment steps taken: resets are not steps, and nothing after the end of an episode counts.
    moments
        Each candidate's observation moments, where they were asked for; a candidate without a finite fitness counts
        no observations.
    failures
        The candidates whose environment raised, never ended or broke its interface.
    """

    fitness: NDArray[np.float64]
    returns: NDArray[np.float64]
    interactions: NDArray[np.int64]
    moments: Moments | None = None
    failures: tuple[Failure, ...] = ()

    def __len__(self) -> int:
        return len(self.fitness)

    def check(self, label: str) -> Outcomes:
        """Return these outcomes, or raise `EnvironmentFault` where all candidates failed.

        Call it for a whole population only. An engine may also get a small part of one, in which all fail by chance.
        """
        if self.failures and len(self.failures) == len(self):
            first = self.failures[0].message
            raise EnvironmentFault(f"{label} failed for all {len(self)} candidates; the first: {first}")
        return self

    @classmethod
    def concatenate(cls, parts: Sequence[Outcomes]) -> Outcomes:
        """Return the outcomes of consecutive ranges as one."""
        moments = [part.moments for part in parts if part.moments is not None]
        return cls(
            np.concatenate([part.fitness for part in parts]),
            np.concatenate([part.returns for part in parts]),
            np.concatenate([part.interactions for part in parts]),
            Moments.concatenate(moments) if len(moments) == len(parts) else None,
            tuple(failure for part in parts for failure in part.failures),
        )
