"""The optimizers that settings can name. A new one is a file beside this one and a line in `_MAKERS`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from clipup.errors import InvalidArgument
from clipup.optimizers.adam import BETA1, BETA2, EPSILON, Adam
from clipup.optimizers.ascent import GradientAscent
from clipup.optimizers.clipup import STEP_RATIO, ClipUp
from clipup.optimizers.protocol import MOMENTUM, Optimizer

ADAM_SPEED_RATIO = 3.0
"""The norm of Adam's first step over `max_speed`, where no step size is given.

That norm is ``step_size * sqrt(dimension)``. With the paper's tuned values it is 2.3 to 3.2 times ClipUp's max_speed on
its three tasks.
"""


@dataclass(frozen=True, kw_only=True)
class OptimizerSettings:
    """The settings from which any optimizer in the registry can be made; each takes those that it knows.

    A `step_size` of None means: derive it from `max_speed`.
    """

    max_speed: float
    step_size: float | None = None
    step_ratio: float = STEP_RATIO
    momentum: float = MOMENTUM
    beta1: float = BETA1
    beta2: float = BETA2
    epsilon: float = EPSILON


def _step_size(settings: OptimizerSettings) -> float:
    return settings.step_ratio * settings.max_speed if settings.step_size is None else settings.step_size


def _adam_step_size(settings: OptimizerSettings, dimension: int) -> float:
    default = ADAM_SPEED_RATIO * settings.max_speed / math.sqrt(dimension)
    return default if settings.step_size is None else settings.step_size


_MAKERS: Mapping[str, Callable[[OptimizerSettings, int], Optimizer]] = {
    "clipup": lambda given, _: ClipUp(_step_size(given), given.max_speed, given.momentum),
    "adam": lambda given, dimension: Adam(_adam_step_size(given, dimension), given.beta1, given.beta2, given.epsilon),
    "noclip": lambda given, _: ClipUp(_step_size(given), None, given.momentum),
    "ascent": lambda given, _: GradientAscent(_step_size(given)),
}
OPTIMIZERS: tuple[str, ...] = tuple(_MAKERS)
"""The names, the default first."""


def make_optimizer(name: str, settings: OptimizerSettings, dimension: int) -> Optimizer:
    """Return the optimizer of that name, at its start, for a search over `dimension` parameters.

    >>> make_optimizer("clipup", OptimizerSettings(max_speed=0.3), dimension=16)
    ClipUp(step_size=0.15, max_speed=0.3, momentum=0.9)
    """
    if name not in _MAKERS:
        raise InvalidArgument(f"optimizer must be one of {', '.join(OPTIMIZERS)}, got {name!r}")
    return _MAKERS[name](settings, dimension)
