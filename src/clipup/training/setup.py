"""From a configuration to the task and the search that it describes."""

from __future__ import annotations

import dataclasses
from typing import cast

from clipup.engines import Task
from clipup.engines.physics import parse_physics
from clipup.engines.task import Environment, EpisodeSeeds
from clipup.engines.wrappers import parse_wrappers
from clipup.errors import InvalidArgument
from clipup.runs.config import RunConfig
from clipup.searches import Adjustable, Search, SearchSettings
from clipup.searches import make_search as make_search_of_kind
from clipup.searches.schedules import parse_schedules, scheduled


def make_task(config: RunConfig, maker: Environment | str | None = None) -> Task:
    """The task to train on; `maker` stands for an environment that has no id, or says where it is."""
    return Task(
        env=config.env if maker is None else maker,
        env_options=config.env_options,
        reward_offset=config.reward_offset,
        reward_terms=_terms(config.reward_terms),
        reward_cap=config.reward_cap,
        max_episode_steps=config.max_episode_steps,
        episodes=config.episodes,
        engine=config.engine,
        episode_seeds=cast(EpisodeSeeds, config.episode_seeds),
        rescale_actions=config.rescale_actions,
        wrappers=parse_wrappers(config.wrapper),
        physics=parse_physics(config.physics),
    )


def make_search(config: RunConfig, dimension: int) -> Search:
    """The search at its start."""
    return make_search_of_kind(config.search, search_settings(config), dimension)


def search_settings(config: RunConfig) -> SearchSettings:
    """The settings of the search: fields of the same names and types."""
    return SearchSettings(**{entry.name: getattr(config, entry.name) for entry in dataclasses.fields(SearchSettings)})


def follow_schedule(search: Search, config: RunConfig, generation: int, interactions: int) -> None:
    """Bring the search to what the schedule of a run asks for after so many generations and interactions."""
    if config.schedule is None:
        return
    if not isinstance(search, Adjustable):
        raise InvalidArgument(f"search={config.search!r} takes no schedule; leave it out")
    schedules = parse_schedules(config.schedule)
    radius_scale = schedules["radius"].factor(generation, interactions) if "radius" in schedules else 1.0
    search.adjust(scheduled(search_settings(config), schedules, generation, interactions), radius_scale)


def _terms(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(term) for term in text.split(","))
    except ValueError:
        raise InvalidArgument(f"reward_terms must be whole numbers with commas, like 1,2,3, got {text!r}") from None
