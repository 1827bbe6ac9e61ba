"""Evaluating a policy on the environment as it is: its own reward, its own length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clipup.engines import Task, make_engine
from clipup.errors import EnvironmentFault, InvalidArgument
from clipup.evaluation.statistics import Summary, summarize
from clipup.policies import Policy

LANES = 256


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation found."""

    summary: Summary
    returns: tuple[float, ...]
    interactions: int
    engine: str
    seed: int


def evaluate(
    policy: Policy, task: Task, *, episodes: int = 16, seed: int = 0, threads: int | None = None
) -> Evaluation:
    """Run `policy` for some episodes of `task`, one after the other in number, side by side in time.

    Episode i starts from a seed that belongs to (`seed`, i), so the same call gives the same returns; its seeds are
    never those of training, nor of a run's own evaluations.
    """
    if episodes < 1:
        raise InvalidArgument(f"episodes must be at least 1, got {episodes}")
    engine = make_engine(task.for_evaluation(), lanes=LANES, threads=threads)
    try:
        if engine.observation_size != policy.network.observation_size or engine.actions.size != policy.actions.size:
            raise InvalidArgument(
                f"the policy takes {policy.network.observation_size} observations and gives {policy.actions.size} "
                f"outputs, but {task.label} has {engine.observation_size} and {engine.actions.size}"
            )
        outcomes = engine.evaluate(
            policy.network,
            np.tile(policy.parameters, (episodes, 1)),
            seed=seed,
            generation=0,
            statistics=policy.statistics,
            stream="evaluation",
        )
    finally:
        engine.close()
    if outcomes.failures:
        raise EnvironmentFault(f"{task.label}: {outcomes.failures[0].message}")
    returns = tuple(float(value) for value in outcomes.returns)
    return Evaluation(summarize(returns), returns, int(outcomes.interactions.sum()), engine.name, seed)
