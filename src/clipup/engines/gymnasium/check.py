"""A check for users: does an environment's seed alone decide an episode?"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clipup.engines.gymnasium.environment import make_ready
from clipup.engines.gymnasium.spaces import actions_of, observations_of
from clipup.engines.task import Task
from clipup.errors import ClipUpError, EnvironmentFault, one_line
from clipup.policies import Observations

SEEDS = (11, 12)


@dataclass(frozen=True)
class SeedCheck:
    """What `check_environment` found.

    Attributes
    ----------
    environment
        The environment's name.
    problems
        One sentence each; empty where results are reproducible.
    steps
        How many steps the check took.
    """

    environment: str
    problems: tuple[str, ...]
    steps: int

    @property
    def ok(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def __str__(self) -> str:
        if self.ok:
            return f"{self.environment}: its seed alone decides an episode ({self.steps} steps tried)"
        return f"{self.environment}: " + "; ".join(self.problems)


Trajectory = list[NDArray[np.float64]]


def check_environment(task: Task, *, steps: int = 200) -> SeedCheck:
    """Run episodes of a Gymnasium environment with the same seed and actions, and compare them bit by bit.

    It finds environments that ignore ``reset(seed=…)``, and those that carry something from one episode to the next.
    Either one makes a candidate's fitness depend on the candidates that the same process evaluated before it.

    Parameters
    ----------
    task
        The environment and its options; its `engine` is not used.
    steps
        Length of the episodes.
    """
    with _checked(task) as environment:
        _, layout = observations_of(task, environment.observation_space)
        actions_of(task, environment.action_space)
        environment.action_space.seed(SEEDS[0])
        taken = [environment.action_space.sample() for _ in range(steps)]
        first = _episode(environment, layout, SEEDS[0], taken)
        again = _episode(environment, layout, SEEDS[0], taken)
        other = _episode(environment, layout, SEEDS[1], taken[::-1])
        after = _episode(environment, layout, SEEDS[0], taken)
    with _checked(task) as environment:
        fresh = _episode(environment, layout, SEEDS[0], taken)
    # Two new environments differ: the seed does not decide all. Only later episodes differ: something is carried on.
    problems: list[str] = []
    if not _same(first[:1], fresh[:1]):
        problems.append("it starts differently with the same seed: reset(seed=…) is ignored, or not passed on")
    elif not _same(first, fresh):
        problems.append("the same seed and actions give different episodes: it uses randomness other than its seed")
    elif not (_same(first, again) and _same(first, after)):
        problems.append("an episode depends on the one before it: something is not reset")
    total = len(first) + len(again) + len(other) + len(after) + len(fresh) - 5
    return SeedCheck(task.label, tuple(problems), total)


@contextlib.contextmanager
def _checked(task: Task) -> Generator[Any]:
    """Make an environment and close it at the end; turn what it raises into one line."""
    environment = make_ready(task)
    try:
        yield environment
    except ClipUpError:
        raise
    except Exception as error:
        raise EnvironmentFault(f"{task.label} failed while it was checked: {one_line(error)}") from error
    finally:
        with contextlib.suppress(Exception):
            environment.close()


def _episode(environment: Any, layout: Observations | None, seed: int, actions: list[Any]) -> Trajectory:
    """Return the observations of an episode, each with its reward appended."""

    def vector(observation: Any) -> NDArray[np.float64]:
        return np.asarray(observation, np.float64) if layout is None else layout.flatten(observation)

    observation, _ = environment.reset(seed=seed)
    trace: Trajectory = [np.append(vector(observation), 0.0)]
    for action in actions:
        observation, reward, terminated, truncated, _ = environment.step(action)
        trace.append(np.append(vector(observation), float(reward)))
        if terminated or truncated:
            break
    return trace


def _same(left: Trajectory, right: Trajectory) -> bool:
    return len(left) == len(right) and all(
        np.array_equal(a, b, equal_nan=True) for a, b in zip(left, right, strict=True)
    )
