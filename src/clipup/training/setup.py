"""From a configuration to the task and the search that it describes."""

from __future__ import annotations

import dataclasses
from typing import cast

from clipup.engines import Task
from clipup.engines.task import EnvironmentMaker, EpisodeSeeds
from clipup.errors import InvalidArgument
from clipup.runs.config import RunConfig
from clipup.searches import Search, SearchSettings
from clipup.searches import make_search as make_search_of_kind


def make_task(config: RunConfig, maker: EnvironmentMaker | None = None) -> Task:
    """The task to train on; `maker` makes an environment that has no id."""
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


def make_search(config: RunConfig, dimension: int) -> Search:
    """The search at its start."""
    values = {entry.name: getattr(config, entry.name) for entry in dataclasses.fields(SearchSettings)}
    settings = SearchSettings(**values)  # fields of the same names and types
    return make_search_of_kind(config.search, settings, dimension)


def _terms(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(term) for term in text.split(","))
    except ValueError:
        raise InvalidArgument(f"reward_terms must be whole numbers with commas, like 1,2,3, got {text!r}") from None
