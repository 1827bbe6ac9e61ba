"""From a configuration to the things that it describes."""

from __future__ import annotations

import math
from typing import cast

from clipup.engines import Task
from clipup.engines.task import EnvironmentMaker, EpisodeSeeds
from clipup.errors import InvalidArgument
from clipup.optimizers import Adam, ClipUp, Optimizer
from clipup.runs.config import RunConfig
from clipup.searches import PGPE

ADAM_SPEED_RATIO = 3.0
"""Adam's first steps have norm step_size * sqrt(dimension). The paper's tuned values put that at 2.3 to 3.2 times
ClipUp's max_speed on its three tasks, so this is where Adam starts unless step_size is given."""


def make_task(config: RunConfig, maker: EnvironmentMaker | None = None) -> Task:
    """The task to train on; `maker` stands in for an environment that has no id."""
    return Task(
        env=config.env if maker is None else maker,
        env_options=config.env_options,
        reward_offset=config.reward_offset,
        reward_terms=_terms(config.reward_terms),
        max_episode_steps=config.max_episode_steps,
        episodes=config.episodes,
        engine=config.engine,
        episode_seeds=cast(EpisodeSeeds, config.episode_seeds),
        rescale_actions=config.rescale_actions,
    )


def make_search(config: RunConfig, dimension: int) -> PGPE:
    """The search at its start."""
    radius = config.radius_factor * config.max_speed if config.radius is None else config.radius
    return PGPE(
        dimension=dimension,
        population_size=config.population,
        radius=radius,
        stdev_learning_rate=config.stdev_learning_rate,
        stdev_max_change=config.stdev_max_change,
        fitness_shaping=config.fitness_shaping,
        optimizer=make_optimizer(config, dimension),
        interactions=config.interactions,
        population_max=config.population_max if config.interactions is not None else None,
        seed=config.seed,
    )


def make_optimizer(config: RunConfig, dimension: int) -> Optimizer:
    """The optimizer at its start."""
    step_size = config.step_size
    if config.optimizer == "adam":
        if step_size is None:
            step_size = ADAM_SPEED_RATIO * config.max_speed / math.sqrt(dimension)
        return Adam(step_size, config.beta1, config.beta2, config.epsilon)
    if step_size is None:
        step_size = config.step_ratio * config.max_speed
    return ClipUp(step_size, config.max_speed if config.optimizer == "clipup" else None, config.momentum)


def _terms(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(term) for term in text.split(","))
    except ValueError:
        raise InvalidArgument(f"reward_terms must be whole numbers with commas, like 1,2,3, got {text!r}") from None
