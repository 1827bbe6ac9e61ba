"""Evaluates a policy on the environment's own reward and episode length."""

from __future__ import annotations

import math
import os
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from clipup.engines import Rollout, Task, make_engine
from clipup.engines.rollout import check_observations
from clipup.engines.task import EnvironmentMaker
from clipup.engines.wrappers import parse_wrappers
from clipup.errors import EnvironmentFault, InvalidArgument
from clipup.evaluation.trained_task import task_of
from clipup.export.policy import PolicyTask, policy_file, read_policy
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


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The result of an evaluation."""

    summary: Summary
    returns: tuple[float, ...]
    interactions: int
    engine: str
    seed: int

    def __repr__(self) -> str:
        """Return one short line, without the single returns."""
        error = self.summary.standard_error
        more = f" ± {error:.2f}" if math.isfinite(error) else ""
        return (
            f"Evaluation(mean {self.summary.mean:.2f}{more}, {self.summary.episodes} episodes, "
            f"{self.interactions} interactions, {self.engine}, seed {self.seed})"
        )


Source = Policy | str | os.PathLike[str]
"""A policy, a policy file, or a run directory."""


def load_with_task(
    policy: Source, task: Task | str | EnvironmentMaker | None, imports: Collection[str] = ()
) -> tuple[Policy, Task]:
    """Return a policy and the task to run it on: the one given, or the one that its file names."""
    described = PolicyTask()
    if not isinstance(policy, Policy):
        path = policy_file(policy)
        policy, described = read_policy(path)
        own = described.env.rpartition(":")[0] if task is None else ""
        wrappers = () if isinstance(task, Task) else parse_wrappers(described.wrapper)
        for module in (own, *(wrapper.module for wrapper in wrappers)):
            if module and module not in imports:
                what = described.env if module == own else described.wrapper
                raise InvalidArgument(
                    f"{path} names {what!r}, which imports {module!r}; allow that with imports=[{module!r}]"
                )
        if task is None and described.env:
            task = described.env
    if task is None:
        raise InvalidArgument("no environment is named; give its id, a callable that makes it, or a Task")
    if isinstance(task, Task):
        return policy, task
    if isinstance(task, str) and task == described.env:
        return policy, task_of(described)[0]
    rescale = described.rescale_actions or policy.actions.rescale
    steps, wrappers = described.max_episode_steps, parse_wrappers(described.wrapper)
    return policy, Task(task, rescale_actions=rescale, max_episode_steps=steps, wrappers=wrappers)


def evaluate(
    policy: Source,
    task: Task | str | EnvironmentMaker | None = None,
    *,
    episodes: int = 16,
    seed: int = 0,
    threads: int | None = None,
    imports: Collection[str] = (),
) -> Evaluation:
    """Evaluate a policy on `episodes` episodes, in parallel.

    `policy` is a `Policy`, a policy file or a run directory. `task` is the id of an environment, a callable that makes
    one, or a `Task`; None takes the environment that the file names. `imports` are the modules that the file may make
    clipup import: that of its environment, and those of its wrappers.

    Episode i starts from a seed that belongs to (`seed`, i), so the same call gives the same returns. These seeds are
    never those of training, nor those of a run's own evaluations.
    """
    policy, task = load_with_task(policy, task, imports)
    if episodes < 1:
        raise InvalidArgument(f"episodes must be at least 1, got {episodes}")
    engine = make_engine(task.for_evaluation(), threads=threads)
    try:
        check_observations(policy, engine.description.observations)
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
