"""The settings as typed keywords, so that an editor completes them and a type checker checks them.

Each key is a field of `clipup.runs.config.RunConfig`, of the same type; a test holds the two together.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypedDict

Scalar = str | int | float | bool


class RunChanges(TypedDict, total=False):
    """The settings that may change when a run is resumed: its limits, and where and how it is executed."""

    generations: int | str | None
    total_interactions: int | None
    time_limit: float | None
    target_score: float | None
    stop: str | None
    patience: int | None
    workers: int | None
    cluster: str | None
    episode_timeout: float | None
    checkpoint_seconds: float
    keep_checkpoints: int
    mixed_arithmetic: bool
    tensorboard: bool
    wandb: str | None
    mlflow: str | None


class RunSettings(RunChanges, total=False):
    """Every setting but the environment."""

    env_options: Mapping[str, Scalar]
    engine: str
    wrapper: str | None
    reward_offset: float
    reward_terms: str | None
    reward_cap: float | None
    max_episode_steps: int | None
    physics: str | None
    episodes: int
    episode_seeds: str
    rescale_actions: bool
    lanes: int
    policy: str | object
    normalize: bool
    search: str
    max_speed: float
    step_ratio: float
    step_size: float | None
    radius_factor: float
    radius: float | None
    stdev: float | None
    momentum: float
    population: int
    population_max: int | None
    interactions: int | None
    optimizer: str
    beta1: float
    beta2: float
    epsilon: float
    stdev_learning_rate: float
    stdev_max_change: float | None
    fitness_shaping: str
    weight_decay: float
    top: int | None
    schedule: str | None
    fitness_scale: float
    init: str | os.PathLike[str] | None
    seed: int | None
    evaluate_every: int
    evaluation_episodes: int
