"""Evaluates a policy on the environment's own reward and episode length."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from clipup.engines import Rollout, Task, make_engine
from clipup.errors import EnvironmentFault, InvalidArgument
from clipup.policies import Policy


@dataclass(frozen=True)
class Summary:
    """Statistics of the returns of some episodes."""

    episodes: int
    mean: float
    median: float
    min: float
    max: float
    standard_deviation: float
    """Of one episode's return, with n - 1 in the denominator; nan for a single episode."""
    standard_error: float
    """Of the mean; nan for a single episode."""


def summarize(returns: ArrayLike) -> Summary:
    """Return the statistics of `returns`; all are nan if any return is not finite.

    >>> summarize([1.0, 2.0, 3.0, 6.0]).mean
    3.0
    """
    values = np.asarray(returns, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise InvalidArgument(f"returns must be a list of at least one number, got shape {values.shape}")
    if not np.isfinite(values).all():
        return Summary(values.size, *([math.nan] * 6))
    deviation = float(values.std(ddof=1)) if values.size > 1 else math.nan
    return Summary(
        episodes=values.size,
        mean=float(values.mean()),
        median=float(np.median(values)),
        min=float(values.min()),
        max=float(values.max()),
        standard_deviation=deviation,
        standard_error=deviation / math.sqrt(values.size),
    )


@dataclass(frozen=True)
class Evaluation:
    """The result of an evaluation."""

    summary: Summary
    returns: tuple[float, ...]
    interactions: int
    engine: str
    seed: int


def evaluate(
    policy: Policy, task: Task, *, episodes: int = 16, seed: int = 0, threads: int | None = None
) -> Evaluation:
    """Evaluate `policy` on `episodes` episodes of `task`, in parallel.

    Episode i starts from a seed that belongs to (`seed`, i), so the same call gives the same returns. These seeds are
    never those of training, nor those of a run's own evaluations.
    """
    if episodes < 1:
        raise InvalidArgument(f"episodes must be at least 1, got {episodes}")
    engine = make_engine(task.for_evaluation(), threads=threads)
    try:
        rows = np.tile(policy.parameters, (episodes, 1))
        outcomes = engine.evaluate(
            Rollout(policy.network, rows, seed, generation=0, statistics=policy.statistics, stream="evaluation")
        )
    finally:
        engine.close()
    if outcomes.failures:
        raise EnvironmentFault(f"{task.label}: {outcomes.failures[0].message}")
    returns = tuple(float(value) for value in outcomes.returns)
    return Evaluation(summarize(returns), returns, int(outcomes.interactions.sum()), engine.name, seed)
