"""The task that a policy is asked to do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeGuard, cast, get_args

import numpy as np
from numpy.typing import NDArray

from clipup.engines.physics import TrainingPhysics
from clipup.engines.wrappers import Wrapper
from clipup.errors import InvalidArgument
from clipup.importing import absolute

EpisodeSeeds = Literal["independent", "pair", "shared"]
EnvironmentMaker = Callable[..., object]


class OwnTask:
    """A task that is an object: `clipup.MujocoTask` or `clipup.ArrayTask`."""

    name: str


Environment = EnvironmentMaker | OwnTask
"""What stands for an environment that has no id: a callable that makes it, or a task of one's own."""

STEP_CAP = 100_000
"""An episode longer than this counts as endless, where neither the task nor the environment sets a limit."""


@dataclass(frozen=True)
class Task:
    """An environment, and how a candidate is scored in it.

    Parameters
    ----------
    env
        The id of an environment (``"LunarLanderContinuous-v3"``; ``"module:EnvId"`` imports the module first, as
        Gymnasium does), a task of one's own (`clipup.MujocoTask`, `clipup.ArrayTask`, or its name
        ``"module:Name"`` or ``"path/to/file.py:Name"``), or a callable that takes `env_options` and returns a Gymnasium
        environment.
    env_options
        Keyword arguments of the environment.
    reward_offset
        Added to the reward of each step, in the fitness only: -1.0 takes away an alive bonus of 1.0.
    reward_terms
        The indices of the terms whose sum replaces the reward in the fitness, for environments that keep a list of the
        terms of their last reward as ``env.unwrapped.rewards`` (Bullet's locomotion tasks). The alive bonus of those
        tasks is term 0. Its value changes, so no offset can remove it: ``(1, 2, 3, 4)`` does.
    reward_cap
        The most that a step counts in the fitness, on average over a candidate's episodes, after the offset. Above it,
        only longer episodes count more: a robot that falls does not make up for it by being fast before.
    max_episode_steps
        Longest episode, in steps; None leaves the environment's own limit.
    fallback_steps
        Longest episode of an environment that has no limit of its own, where `max_episode_steps` is None.
    episodes
        Episodes per candidate; the fitness is their mean.
    engine
        The name of an engine (``clipup.engines.registry.names()``), or ``"auto"``: the first one in the registry that
        has the task and honours every option. Checked when an engine is chosen.
    episode_seeds
        ``"independent"``: each candidate has its own starts; ``"pair"``: candidates 2i and 2i+1 share theirs;
        ``"shared"``: all candidates of a generation share theirs.
    rescale_actions
        True stretches outputs in [-1, 1] over the bounds of the actions. False clips outputs to the bounds.
    wrappers
        What a Gymnasium environment is wrapped in, the innermost first.
    physics
        What training changes in the physics of a MuJoCo task, to make it cheaper. Evaluations never do.
    """

    env: str | Environment
    env_options: Mapping[str, object] = field(default_factory=dict[str, object])
    reward_offset: float = 0.0
    reward_terms: tuple[int, ...] | None = None
    reward_cap: float | None = None
    max_episode_steps: int | None = None
    fallback_steps: int | None = None
    episodes: int = 1
    engine: str = "auto"
    episode_seeds: EpisodeSeeds = "independent"
    rescale_actions: bool = False
    wrappers: tuple[Wrapper, ...] = ()
    physics: TrainingPhysics | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.env, str) and self.env.strip()) and not is_environment(self.env):
            raise InvalidArgument(f"env must be an environment's id, a task or a callable, got {self.env!r}")
        if not isinstance(cast(object, self.env_options), Mapping):
            raise InvalidArgument(f"env_options must be a table of keyword arguments, got {self.env_options!r}")
        object.__setattr__(self, "env_options", dict(self.env_options))
        _check_finite("reward_offset", self.reward_offset)
        if self.reward_cap is not None:
            _check_finite("reward_cap", self.reward_cap)
        if self.reward_terms is not None:
            terms = self.reward_terms
            if not isinstance(cast(object, terms), tuple | list) or not terms or not all(map(_is_index, terms)):
                raise InvalidArgument(f"reward_terms must be indices of at least 0, got {terms!r}")
            object.__setattr__(self, "reward_terms", tuple(terms))
        if self.max_episode_steps is not None:
            check_count("max_episode_steps", self.max_episode_steps)
        if self.fallback_steps is not None:
            check_count("fallback_steps", self.fallback_steps)
        check_count("episodes", self.episodes)
        if not isinstance(cast(object, self.engine), str):
            raise InvalidArgument(f"engine must be the name of one, or 'auto', got {self.engine!r}")
        if self.episode_seeds not in get_args(EpisodeSeeds):
            choices = ", ".join(get_args(EpisodeSeeds))
            raise InvalidArgument(f"episode_seeds must be one of {choices}, got {self.episode_seeds!r}")

    @property
    def label(self) -> str:
        """The environment's name, for messages."""
        if isinstance(self.env, OwnTask):
            return self.env.name
        return self.env if isinstance(self.env, str) else getattr(self.env, "__qualname__", repr(self.env))

    def fitness(self, rewards: NDArray[np.float64], steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the fitness of candidates from the sums over their episodes: what is scored, and steps."""
        scored = rewards + self.reward_offset * steps
        if self.reward_cap is not None:
            scored = np.minimum(scored, self.reward_cap * steps)
        return scored / self.episodes

    def for_workers(self) -> Task:
        """Return the task for another process, which may be in another directory: the path of a file is absolute."""
        return replace(self, env=absolute(self.env)) if isinstance(self.env, str) else self

    def for_evaluation(self) -> Task:
        """Return the task with the environment's own reward, length and physics, and one episode per row.

        Where the environment has no limit of its own, the one of training holds: an episode must end.
        """
        return replace(
            self,
            reward_offset=0.0,
            reward_terms=None,
            reward_cap=None,
            max_episode_steps=None,
            fallback_steps=self.max_episode_steps or self.fallback_steps,
            episodes=1,
            episode_seeds="independent",
            physics=None,
        )


def _check_finite(name: str, value: float) -> None:
    if not isinstance(cast(object, value), int | float) or not math.isfinite(value):
        raise InvalidArgument(f"{name} must be a finite number, got {value!r}")


def is_environment(thing: object) -> TypeGuard[Environment]:
    """Return whether `thing` stands for an environment without an id."""
    return isinstance(thing, OwnTask) or callable(thing)


def check_count(name: str, value: object) -> None:
    """Raise `InvalidArgument` unless `value` is an integer of at least 1."""
    if not _is_index(value) or value == 0:
        raise InvalidArgument(f"{name} must be an integer of at least 1, got {value!r}")


def _is_index(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
