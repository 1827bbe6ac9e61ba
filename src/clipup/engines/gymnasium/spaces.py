"""Gymnasium's spaces: observations as vectors, and outputs as actions.

Spaces of parts (Dict, Tuple, MultiDiscrete, MultiBinary, Discrete observations, arrays of several dimensions) are
flattened in the order that `clipup.policies.observations` documents. Images are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clipup.engines.images import MOST_CHOICES, is_image
from clipup.engines.task import Task
from clipup.errors import InvalidArgument
from clipup.policies import Actions, ObservationPart, Observations

Path = tuple[str | int, ...]


def observations_of(task: Task, space: Any) -> tuple[int, Observations | None]:
    """Return the length of an observation, and its parts where it is not a vector by itself."""
    from gymnasium.spaces import Box

    if isinstance(space, Box) and len(space.shape) == 1 and space.shape[0] >= 1:
        return int(space.shape[0]), None
    try:
        layout = Observations(tuple(_parts(space, ())))
    except InvalidArgument as error:
        raise InvalidArgument(f"observations of {task.label} are not usable: {error}") from error
    return layout.size, layout


def _parts(space: Any, path: Path) -> list[ObservationPart]:
    from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

    fields: Any = space  # Gymnasium leaves the types of these open
    if isinstance(space, Dict):
        return [part for key in sorted(fields.spaces) for part in _parts(fields[key], (*path, key))]
    if isinstance(space, Tuple):
        return [part for place, inner in enumerate(fields.spaces) for part in _parts(inner, (*path, place))]
    if isinstance(space, Box):
        if is_image(fields.shape, fields.dtype):
            raise InvalidArgument(
                f"{_name(path)} is an image, of shape {fields.shape}; clipup has no policies that see: "
                "wrap it (--wrapper) into a few numbers"
            )
        return [ObservationPart(path, math.prod(fields.shape))] if 0 not in fields.shape else []
    if isinstance(space, MultiBinary):
        return [ObservationPart(path, math.prod(fields.shape))]
    if isinstance(space, Discrete):
        return [_choices(path, np.array([fields.n]), np.array([fields.start]))]
    if isinstance(space, MultiDiscrete):
        starts = getattr(fields, "start", np.zeros_like(fields.nvec))
        return [_choices(path, np.ravel(fields.nvec), np.ravel(starts))]
    raise InvalidArgument(
        f"{_name(path)} is {space}, which has no fixed number of numbers; wrap it (--wrapper) into a Box"
    )


def _choices(path: Path, sizes: NDArray[Any], starts: NDArray[Any]) -> ObservationPart:
    total = int(sizes.sum())
    if total > MOST_CHOICES:
        raise InvalidArgument(f"{_name(path)} has {total} choices; at most {MOST_CHOICES} fit a policy")
    return ObservationPart(path, total, tuple(map(int, sizes)), tuple(map(int, starts)))


def _name(path: Path) -> str:
    return "/".join(map(str, path)) or "it"


def actions_of(task: Task, space: Any) -> Actions:
    """Return how outputs become actions of `space`; `InvalidArgument` where they cannot."""
    parts = list(_actions(task, space, ()))
    if len(parts) == 1 and not parts[0][0]:
        return parts[0][1]
    if not parts:
        raise InvalidArgument(f"{task.label} takes no action: {space}")
    return Actions.of_parts(parts)


def _actions(task: Task, space: Any, path: Path) -> list[tuple[Path, Actions]]:
    from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

    fields: Any = space  # Gymnasium leaves the types of these open
    if isinstance(space, Dict):
        return [part for key in sorted(fields.spaces) for part in _actions(task, fields[key], (*path, key))]
    if isinstance(space, Tuple):
        return [part for place, inner in enumerate(fields.spaces) for part in _actions(task, inner, (*path, place))]
    if isinstance(space, Discrete):
        return [(path, Actions.discrete(_few(task, int(fields.n)), start=int(fields.start)))]
    if isinstance(space, MultiDiscrete):
        sizes = np.ravel(fields.nvec)
        _few(task, int(sizes.sum()))
        starts = np.ravel(getattr(fields, "start", np.zeros_like(fields.nvec)))
        return [
            ((*path, place), Actions.discrete(int(size), start=int(start)))
            for place, (size, start) in enumerate(zip(sizes, starts, strict=True))
        ]
    if isinstance(space, MultiBinary):
        return [(path, Actions.binary(tuple(fields.shape), dtype=np.dtype(fields.dtype).name))]
    if isinstance(space, Box) and np.issubdtype(fields.dtype, np.floating) and len(space.shape) >= 1:
        low, high = np.asarray(fields.low), np.asarray(fields.high)
        return [(path, Actions.box(low, high, rescale=task.rescale_actions, dtype=np.dtype(fields.dtype).name))]
    raise InvalidArgument(
        f"actions must be real numbers (Box), choices (Discrete, MultiDiscrete, MultiBinary) or several of them (Dict, "
        f"Tuple), but {task.label} takes {space}"
    )


def _few(task: Task, choices: int) -> int:
    if choices > MOST_CHOICES:
        raise InvalidArgument(f"{task.label} has {choices} choices of actions; at most {MOST_CHOICES} fit a policy")
    return choices


def action_maker(space: Any, actions: Actions) -> Callable[[Any], Any]:
    """Return what turns one action, as `Actions.apply` gives it, into the one that the environment takes."""
    if actions.kind == "discrete":
        return int
    if not actions.parts:
        return _as_it_is
    return lambda row: _Row(row).take(space)


def _as_it_is(action: Any) -> Any:
    return action


class _Row:
    """The numbers of several actions, taken from the first on."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._values, self._next = values, 0

    def take(self, space: Any) -> Any:
        """Return the action of `space` that the next numbers are."""
        from gymnasium.spaces import Dict, Discrete, Tuple

        fields: Any = space
        if isinstance(space, Dict):
            return {key: self.take(fields[key]) for key in sorted(fields.spaces)}
        if isinstance(space, Tuple):
            return tuple(self.take(inner) for inner in fields.spaces)
        if isinstance(space, Discrete):
            return int(self._cut(1)[0])
        shape = tuple(fields.shape)
        return self._cut(math.prod(shape)).astype(fields.dtype).reshape(shape)

    def _cut(self, count: int) -> NDArray[Any]:
        self._next += count
        return self._values[self._next - count : self._next]
