"""Everything that decides what a run does, in one frozen record.

Each field is a key of the TOML configuration, a flag of ``clipup train`` (with dashes) and a keyword of
`clipup.train`. Fields under *execution* decide only where and how fast a run goes. All others may change its results,
and together they fix every bit of them.
"""

from __future__ import annotations

import dataclasses
import math
import secrets
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict, TypeVar, Unpack

import numpy as np

from clipup.engines import registry
from clipup.engines.physics import parse_physics
from clipup.engines.protocol import DEFAULT_LANES
from clipup.engines.task import EpisodeSeeds
from clipup.engines.wrappers import parse_wrappers
from clipup.errors import InvalidArgument
from clipup.optimizers import BETA1, BETA2, EPSILON, MOMENTUM, OPTIMIZERS, STEP_RATIO
from clipup.policies.named import check_policy
from clipup.runs.keywords import RunChanges, Scalar
from clipup.searches import RADIUS_FACTOR, SEARCHES, SHAPINGS, unused_settings
from clipup.searches.schedules import parse_schedules
from clipup.suggestions import did_you_mean

Value = Scalar | None | Mapping[str, Scalar]

MANY = 10**9
"""More of anything than a machine could hold. Beyond it, an array cannot even be asked for."""
ENGINES = registry.names()
"""The engines that can be chosen: "auto" first, then in the order in which it tries them."""
_PARALLELISM = " or ".join(f"{entry.parallelism} ({entry.title})" for entry in registry.ENTRIES)
STOPS = ("solved",)
EPISODE_SEEDS: tuple[str, ...] = typing.get_args(EpisodeSeeds)

_T = TypeVar("_T")


@dataclass(frozen=True)
class Setting:
    """What is known about one field besides its type."""

    group: str
    help: str
    choices: tuple[str, ...] = ()
    at_least: float = -math.inf
    above: float = -math.inf
    at_most: float = math.inf
    unset: str = "none"
    """The word that stands for None in TOML and on the command line."""


class _Rules(TypedDict, total=False):
    at_least: float
    above: float
    at_most: float
    unset: str


def _setting(default: _T, group: str, help: str, choices: tuple[str, ...] = (), **rules: Unpack[_Rules]) -> _T:
    return field(default=default, metadata={"setting": Setting(group, help, choices, **rules)})


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The whole configuration of a run, checked when it is made. `clipup train --help` explains each field."""

    env: str = field(metadata={"setting": Setting("task", "environment: an id, or module:id")})
    env_options: Mapping[str, Scalar] = field(
        default_factory=dict[str, Scalar],
        metadata={"setting": Setting("task", "options handed to the environment (--env.KEY VALUE)")},
    )
    engine: str = _setting(ENGINES[0], "task", "what runs the environment", ENGINES)
    wrapper: str | None = _setting(
        None, "task", "wrap the environment: module:Class or module:Class(key=value, …); several with semicolons"
    )
    reward_offset: float = _setting(0.0, "task", "added to each training reward; -1 removes an alive bonus of 1")
    reward_terms: str | None = _setting(
        None, "task", "train on the sum of these terms of the reward only, like 1,2,3 (Bullet's tasks)"
    )
    reward_cap: float | None = _setting(
        None, "task", "most that a step counts in training, on average over an episode (docs/faster.md)"
    )
    max_episode_steps: int | None = _setting(None, "task", "cut training episodes after this many steps", at_least=1)
    physics: str | None = _setting(
        None, "task", "train on cheaper physics of MuJoCo, like 'integrator=Euler, iterations=10' (docs/faster.md)"
    )
    episodes: int = _setting(1, "task", "training episodes per candidate", at_least=1, at_most=MANY)
    episode_seeds: str = _setting(
        EPISODE_SEEDS[0], "task", "which candidates start alike: none, the two of a pair, or all", EPISODE_SEEDS
    )
    rescale_actions: bool = _setting(
        False, "task", "stretch policy outputs from -1..1 to the action range, instead of clipping them to it"
    )
    lanes: int = _setting(
        DEFAULT_LANES, "task", "simulators that step together; part of what is computed", at_least=1, at_most=MANY
    )

    policy: str = _setting(
        "linear-bias", "policy", "linear, linear-bias, mlp:64,64, gru:32, mlp:64+lstm:32 (docs/policies.md)"
    )
    normalize: bool = _setting(True, "policy", "normalize observations by their running mean and stdev")

    search: str = _setting(SEARCHES[0], "search", "which search (docs/searches.md)", SEARCHES)
    max_speed: float = _setting(0.05, "search", "THE number to tune: longest step in a generation", above=0)
    step_ratio: float = _setting(STEP_RATIO, "search", "step_size = step_ratio * max_speed", above=0)
    step_size: float | None = _setting(
        None, "search", "step size of the optimizer, instead of step_ratio * max_speed", above=0, unset="auto"
    )
    radius_factor: float = _setting(RADIUS_FACTOR, "search", "radius = radius_factor * max_speed", above=0)
    radius: float | None = _setting(
        None, "search", "norm of the initial stdev, instead of radius_factor * max_speed", above=0, unset="auto"
    )
    stdev: float | None = _setting(
        None, "search", "initial stdev of each parameter, instead of a radius", above=0, unset="auto"
    )
    momentum: float = _setting(MOMENTUM, "search", "momentum of clipup and noclip, less than 1", at_least=0, at_most=1)
    population: int = _setting(200, "search", "candidates per generation (even)", at_least=2, at_most=MANY)
    population_max: int | None = _setting(
        None, "search", "where a generation stops growing; auto: 8 * population", at_least=2, at_most=MANY, unset="auto"
    )
    interactions: int | None = _setting(None, "search", "grow a generation to this many environment steps", at_least=1)
    optimizer: str = _setting(
        OPTIMIZERS[0], "search", "optimizer (noclip: clipup without clipping; ascent: plain steps)", OPTIMIZERS
    )
    beta1: float = _setting(BETA1, "search", "adam: decay of the first moment", at_least=0, at_most=1)
    beta2: float = _setting(BETA2, "search", "adam: decay of the second moment", at_least=0, at_most=1)
    epsilon: float = _setting(EPSILON, "search", "adam: added to the denominator", above=0)
    stdev_learning_rate: float = _setting(0.1, "search", "learning rate of the stdev; 0 leaves it as it is", at_least=0)
    stdev_max_change: float | None = _setting(
        0.2, "search", "largest relative change of the stdev per generation, less than 1", above=0, at_most=1
    )
    fitness_shaping: str = _setting(SHAPINGS[0], "search", "how fitnesses become weights of the gradient", SHAPINGS)
    weight_decay: float = _setting(0.0, "search", "openai-es: pulls the center towards zero", at_least=0)
    top: int | None = _setting(None, "search", "ars: how many directions are kept; none: all", at_least=1, at_most=MANY)
    schedule: str | None = _setting(
        None, "search", "what changes, like 'max_speed: cosine 1 to 0.1 over 500 generations' (docs/searches.md)"
    )
    fitness_scale: float = _setting(1.0, "search", "multiplies the training fitness", above=0)
    init: str | None = _setting(None, "search", "start from this policy file or run: parameters and statistics")
    seed: int = _setting(
        0, "search", "fixes everything that is random; none takes a new one", at_least=0, at_most=2**63 - 1
    )

    generations: int | None = _setting(200, "stopping", "stop after this many generations", at_least=0)
    total_interactions: int | None = _setting(None, "stopping", "stop after this many environment steps", at_least=1)
    time_limit: float | None = _setting(
        None, "stopping", "stop after this training time: seconds, or like 30m, 8h", above=0
    )
    target_score: float | None = _setting(None, "stopping", "stop when an evaluation of the center reaches this mean")

    stop: str | None = _setting(None, "stopping", "solved: stop at the score that is registered as solved", STOPS)
    patience: int | None = _setting(None, "stopping", "stop after N evaluations without a better score", at_least=1)

    evaluate_every: int = _setting(5, "evaluation", "evaluate every N generations; 0: only at the end", at_least=0)
    evaluation_episodes: int = _setting(16, "evaluation", "episodes in an evaluation", at_least=1, at_most=MANY)

    workers: int | None = _setting(None, "execution", _PARALLELISM, at_least=1, unset="auto")
    cluster: str | None = _setting(None, "execution", "cluster to run on: ray, or an address of Ray (auto, ray://…)")
    episode_timeout: float | None = _setting(
        None, "execution", "stop a worker whose episode takes longer than this many seconds", above=0
    )
    checkpoint_seconds: float = _setting(
        5.0, "execution", "write a checkpoint when the last one is this old; 0: after every generation", at_least=0
    )
    keep_checkpoints: int = _setting(3, "execution", "how many checkpoints to keep", at_least=1)
    mixed_arithmetic: bool = _setting(
        False, "execution", "accept processors that round differently; the run then cannot be repeated exactly"
    )
    tensorboard: bool = _setting(False, "execution", "also write TensorBoard events into the run directory")
    wandb: str | None = _setting(None, "execution", "also log to this Weights & Biases project")
    mlflow: str | None = _setting(None, "execution", "also log to this MLflow experiment")

    def __post_init__(self) -> None:
        for name, value in config_values(self).items():
            object.__setattr__(self, name, check_value(name, value))
        if not self.env:
            raise InvalidArgument("env must name an environment, such as LunarLanderContinuous-v3")
        parse_wrappers(self.wrapper)
        parse_physics(self.physics)
        check_policy(self.policy)
        if self.population % 2:
            raise InvalidArgument(f"population must be even (candidates come in mirrored pairs), got {self.population}")
        if self.population_max is not None and self.population_max < self.population:
            raise InvalidArgument(
                f"population_max must be at least population ({self.population}), got {self.population_max}"
            )
        if self.stdev is not None and self.radius is not None:
            raise InvalidArgument("stdev and radius mean the same thing; give one of them")
        for name in sorted(unused_settings(self.search)):
            if getattr(self, name) != RunConfig.__dataclass_fields__[name].default:
                raise InvalidArgument(f"{name} is not a setting of search={self.search!r}; leave it out")
        for name in parse_schedules(self.schedule) if self.schedule is not None else ():
            if ("optimizer" if name in {"max_speed", "radius"} else name) in unused_settings(self.search):
                raise InvalidArgument(f"schedule: {name} has no effect on search={self.search!r}; leave it out")
        if self.top is not None and self.top > self.population // 2:
            raise InvalidArgument(
                f"top must be at most half of population ({self.population // 2} directions), got {self.top}"
            )
        if self.episode_seeds == "pair" and self.lanes % 2:
            raise InvalidArgument(f"lanes must be even for episode_seeds='pair', got {self.lanes}")
        if all(limit is None for limit in (self.generations, self.total_interactions, self.time_limit)):
            raise InvalidArgument("nothing would end the run: set generations, total_interactions or time_limit")


def config_values(config: RunConfig) -> dict[str, Value]:
    """Every field of `config` by name, in the order of its definition."""
    return {entry.name: getattr(config, entry.name) for entry in dataclasses.fields(config)}


def settings() -> dict[str, Setting]:
    """What is known about each field, by name, in the order of their definition."""
    return {entry.name: entry.metadata["setting"] for entry in dataclasses.fields(RunConfig)}


_HINTS = typing.get_type_hints(RunConfig)


def kinds() -> dict[str, type]:
    """The type of each field, by name, without None: str, int, float, bool, or dict for env_options."""
    found = {name: (typing.get_args(hint) or (hint,))[0] for name, hint in _HINTS.items()}  # None is never the first
    return {**found, "env_options": dict}


_SETTINGS, _KINDS = settings(), kinds()
_OPTIONAL = frozenset(name for name, hint in _HINTS.items() if type(None) in typing.get_args(hint))
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", dict: "a table"}


def check_name(name: str) -> str:
    """Return `name` if it is a field, or refuse it with the nearest one."""
    if name not in _SETTINGS:
        raise InvalidArgument(f"unknown setting {name!r}{did_you_mean(name, _SETTINGS)}")
    return name


def check_value(name: str, value: object) -> Value:
    """Return `value` as the field `name` holds it, or refuse it in one line."""
    setting, kind = _SETTINGS[check_name(name)], _KINDS[name]
    if name in _OPTIONAL and (value is None or value == "none" or (value == "auto" and kind is not str)):
        return None  # for text, "auto" is a value: Ray's address of the cluster that is there
    if name == "env_options":
        return _check_options(value)
    if isinstance(value, np.bool_ | np.integer | np.floating):
        value = typing.cast("object", value.item())
    if name == "seed" and value in (None, "none"):
        value = secrets.randbits(32)  # kept in the configuration, so the run can be repeated
    if name == "time_limit" and isinstance(value, str):
        value = _seconds(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InvalidArgument(f"{name} must be below 2**63 in size, got more")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise InvalidArgument(f"{name} must be {_WORDS[kind]}, got {value!r}")
    if setting.choices and value not in setting.choices:
        raise InvalidArgument(
            f"{name} must be one of {', '.join(setting.choices)}, got {value!r}"
            f"{did_you_mean(str(value), setting.choices)}"
        )
    if isinstance(value, int | float) and not isinstance(value, bool):
        _check_range(name, value, setting)
    return typing.cast("Value", value)


def _check_range(name: str, value: int | float, setting: Setting) -> None:
    if not math.isfinite(value):
        raise InvalidArgument(f"{name} must be a finite number, got {value:g}")
    if not (setting.at_least <= value <= setting.at_most and value > setting.above):
        limits = {"at least": setting.at_least, "above": setting.above, "at most": setting.at_most}
        rules = [f"{words} {limit:g}" for words, limit in limits.items() if math.isfinite(limit)]
        raise InvalidArgument(f"{name} must be {' and '.join(rules)}, got {value:g}")


def _check_options(value: object) -> Mapping[str, Scalar]:
    if not isinstance(value, Mapping):
        raise InvalidArgument(f"env_options must be a table of options, got {value!r}")
    options: dict[str, Scalar] = {}
    for name, option in typing.cast("Mapping[object, object]", value).items():
        if not isinstance(name, str) or not isinstance(option, str | int | float | bool):
            raise InvalidArgument(f"env_options may hold text, numbers, true and false, got {name} = {option!r}")
        options[name] = option
    return dict(sorted(options.items()))


def _seconds(text: str) -> float:
    units = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    try:
        return float(number) * units[unit]
    except ValueError:
        raise InvalidArgument(f"time_limit must be seconds, or like 90s, 30m, 8h, got {text!r}") from None


CHANGEABLE = frozenset(RunChanges.__annotations__)
"""Fields that may change when a run is resumed: its limits, and where it runs."""


def identity(config: RunConfig) -> dict[str, object]:
    """The settings that decide a run's results and are not the default, so that a setting added later changes none."""
    defaults = config_values(RunConfig(env=config.env))
    changed = {name: value for name, value in config_values(config).items() if value != defaults[name]}
    return {"env": config.env, **{name: value for name, value in changed.items() if name not in CHANGEABLE}}


def differences(before: RunConfig, now: RunConfig) -> list[str]:
    """The settings that decide results and differ, by name."""
    return differing(identity(before), identity(now))


def differing(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """The names whose values differ, or that only one of the two has."""
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
