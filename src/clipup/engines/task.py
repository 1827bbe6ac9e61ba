"""What a policy is asked to do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, cast, get_args

from clipup.errors import InvalidArgument

EngineName = Literal["auto", "envpool", "gymnasium"]
EpisodeSeeds = Literal["independent", "pair", "shared"]
EnvironmentMaker = Callable[..., object]


@dataclass(frozen=True)
class Task:
    """An environment, and how a candidate is scored in it.

    Parameters
    ----------
    env
        The id of an environment (``"LunarLanderContinuous-v3"``; ``"module:EnvId"`` imports the module first, as
        Gymnasium does), or a callable that takes `env_options` and returns a Gymnasium environment.
    env_options
        Keyword arguments of the environment.
    reward_offset
        Added to the reward of each step, in the fitness only: -1.0 takes away an alive bonus of 1.0.
    reward_terms
        For environments that keep a list of the terms of their last reward as ``env.unwrapped.rewards`` (Bullet's
        locomotion tasks): the indices of the terms whose sum replaces the reward in the fitness. The alive bonus of
        those tasks is term 0 and changes its value, so that no offset can remove it: ``(1, 2, 3, 4)`` does.
    max_episode_steps
        Where episodes are cut; None leaves the environment's own limit.
    episodes
        Episodes of each candidate; the fitness is their mean.
    engine
        ``"envpool"``, ``"gymnasium"``, or ``"auto"``: EnvPool where it has the task and honours every option.
    episode_seeds
        ``"independent"``: each candidate has its own starts; ``"pair"``: candidates 2i and 2i+1 share theirs;
        ``"shared"``: all candidates of a generation do.
    rescale_actions
        Whether outputs in [-1, 1] are stretched over the bounds of the actions, instead of clipped to them.
    """

    env: str | EnvironmentMaker
    env_options: Mapping[str, object] = field(default_factory=dict[str, object])
    reward_offset: float = 0.0
    reward_terms: tuple[int, ...] | None = None
    max_episode_steps: int | None = None
    episodes: int = 1
    engine: EngineName = "auto"
    episode_seeds: EpisodeSeeds = "independent"
    rescale_actions: bool = False

    def __post_init__(self) -> None:
        if not (isinstance(self.env, str) and self.env.strip()) and not callable(self.env):
            raise InvalidArgument(f"env must be an environment's id or a callable, got {self.env!r}")
        if not isinstance(cast(object, self.env_options), Mapping):
            raise InvalidArgument(f"env_options must be a table of keyword arguments, got {self.env_options!r}")
        object.__setattr__(self, "env_options", dict(self.env_options))
        if not isinstance(cast(object, self.reward_offset), int | float) or not math.isfinite(self.reward_offset):
            raise InvalidArgument(f"reward_offset must be a finite number, got {self.reward_offset!r}")
        if self.reward_terms is not None:
            terms = self.reward_terms
            if not isinstance(cast(object, terms), tuple | list) or not terms or not all(map(_is_index, terms)):
                raise InvalidArgument(f"reward_terms must be indices of at least 0, got {terms!r}")
            object.__setattr__(self, "reward_terms", tuple(terms))
        if self.max_episode_steps is not None:
            check_count("max_episode_steps", self.max_episode_steps)
        check_count("episodes", self.episodes)
        if self.engine not in get_args(EngineName):
            raise InvalidArgument(f"engine must be 'auto', 'envpool' or 'gymnasium', got {self.engine!r}")
        if self.episode_seeds not in get_args(EpisodeSeeds):
            raise InvalidArgument(
                f"episode_seeds must be 'independent', 'pair' or 'shared', got {self.episode_seeds!r}"
            )

    @property
    def label(self) -> str:
        """The environment's name, for messages."""
        return self.env if isinstance(self.env, str) else getattr(self.env, "__qualname__", repr(self.env))

    def for_evaluation(self) -> Task:
        """Return the task as the environment means it: its own reward and length, one episode per row."""
        return replace(
            self,
            reward_offset=0.0,
            reward_terms=None,
            max_episode_steps=None,
            episodes=1,
            episode_seeds="independent",
        )


def check_count(name: str, value: object) -> None:
    """Raise `InvalidArgument` unless `value` is an integer of at least 1."""
    if not _is_index(value) or value == 0:
        raise InvalidArgument(f"{name} must be an integer of at least 1, got {value!r}")


def _is_index(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
