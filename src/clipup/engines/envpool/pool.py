"""EnvPool behind the few calls that a rollout needs; its public calls do much more Python at each step."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from clipup.engines.images import MOST_CHOICES, is_image
from clipup.engines.protocol import is_installed, registered_score
from clipup.engines.seeding import int31, seed_words
from clipup.engines.task import STEP_CAP, Task
from clipup.errors import EnvironmentFault, InvalidArgument, one_line
from clipup.policies.act import Actor
from clipup.policies.actions import Actions
from clipup.policies.observations import ObservationPart, Observations

IMAGE_FAMILY = "envpool.atari"
"""The tasks that show nothing but images; to specify one of them takes a tenth of a second."""
REPLAYABLE_FAMILY = "envpool.mujoco.gym"
"""The tasks that draw random numbers when they are reset, and never while they step (tests/contract proves it)."""


def registered() -> Mapping[str, tuple[str, ...]]:
    """Return EnvPool's registry: for each id, the import path of its family, and more; empty if not installed."""
    if not is_installed("envpool"):
        return {}
    from envpool.registration import registry

    return cast("Mapping[str, tuple[str, ...]]", cast(Any, registry).specs)


@dataclass(frozen=True)
class Layout:
    """What EnvPool says about a task: its sizes and actions, and the places of values in the lists that it returns."""

    task: Task
    observation_size: int
    actions: Actions
    observation_indices: tuple[int, ...]
    reward_index: int
    done_index: int
    step_limit: int
    endless: bool
    replayable: bool
    own_limit: bool = True
    solved_score: float | None = None
    observations: Observations | None = None
    """The parts of an observation, where it is not a vector by itself."""

    def observed(self, states: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return the observations in what EnvPool returned, one in each row."""
        if self.observations is None:
            return states[self.observation_indices[0]]
        return self.observations.rows([states[index] for index in self.observation_indices])


def pool_layout(task: Task) -> Layout:
    """Return the layout of an EnvPool task; `InvalidArgument` for spaces that clipup's policies cannot handle."""
    name = cast(str, task.env)
    options: dict[str, object] = dict(task.env_options)
    if task.max_episode_steps is not None:
        options["max_episode_steps"] = task.max_episode_steps
    try:
        spec = _make_spec(name, **options) if options else _plain_spec(name)
    except ImportError as error:
        raise InvalidArgument(f"EnvPool cannot load {name}: {one_line(error)}") from error
    except (TypeError, ValueError, RuntimeError, AssertionError) as error:
        given = ", ".join(f"{key}={value!r}" for key, value in options.items())
        raise InvalidArgument(f"EnvPool's {name} does not take these options: {given}") from error
    states = cast("dict[str, Any]", spec.state_array_spec)
    inputs = cast("dict[str, Any]", spec.action_array_spec)
    config = spec.config
    if len(inputs) != 3 or config.max_num_players != 1:
        raise InvalidArgument(
            f"policies give one action, but EnvPool's {name} takes {', '.join(list(inputs)[2:])} for up to "
            f"{config.max_num_players} player(s)"
        )
    observed = [key for key in states if key.startswith("obs")]
    # Of a single part EnvPool makes no dictionary, whatever its name.
    seen = {_path(key) if len(observed) > 1 else (): key for key in observed}
    paths = sorted(seen)
    parts = [_part(name, path, states[seen[path]]) for path in paths]
    is_vector = len(seen) == 1 and () in seen and _is_vector(states[seen[()]])
    layout = None if is_vector else Observations(tuple(parts))
    keys = list(states)
    limit = int(getattr(config, "max_episode_steps", STEP_CAP + 1))
    own_limit = _own_limit(name, limit, task)
    given = task.max_episode_steps or (None if own_limit else task.fallback_steps)
    return Layout(
        task,
        sum(part.size for part in parts),
        _actions(name, next(reversed(inputs.values())), rescale=task.rescale_actions),
        tuple(keys.index(seen[path]) for path in paths),
        keys.index("reward"),
        keys.index("done"),
        given or min(limit, STEP_CAP),
        given is None and limit > STEP_CAP,
        registered()[name][0] == REPLAYABLE_FAMILY,
        own_limit,
        _solved_score(name, config),
        layout,
    )


def _make_spec(name: str, **options: object) -> Any:
    import envpool

    return cast(Any, envpool).make_spec(name, **options)


@lru_cache(maxsize=4)
def _plain_spec(name: str) -> Any:
    """Return EnvPool's specification without options; making an engine asks for it twice."""
    return _make_spec(name)


def _path(key: str) -> tuple[str, ...]:
    """Return where a part of an observation is: ``obs:a.b`` and ``obs:a:b`` are ``observation["a"]["b"]``."""
    return tuple(part for part in re.split("[:.]", key.removeprefix("obs")) if part)


def _is_vector(spec: Any) -> bool:
    return len(spec.shape) == 1 and int(spec.shape[0]) >= 1 and np.dtype(spec.dtype) != np.bool_


def _part(name: str, path: tuple[str, ...], spec: Any) -> ObservationPart:
    """Return how one array of an observation becomes numbers; `InvalidArgument` for images."""
    shape, dtype = tuple(int(size) for size in spec.shape), np.dtype(spec.dtype)
    if shape == (-1,):  # one for each player, and there is one
        if np.issubdtype(dtype, np.integer) and int(spec.maximum) - int(spec.minimum) < MOST_CHOICES:
            first, last = int(spec.minimum), int(spec.maximum)
            return ObservationPart(path, last - first + 1, (last - first + 1,), (first,))
        shape = ()
    if min(shape, default=1) < 1 or is_image(shape, dtype):
        kind = "images" if min(shape, default=1) > 0 else "arrays"
        raise InvalidArgument(
            f"observations must be numbers, but EnvPool's {name} gives {kind} of shape {shape}, and clipup has no "
            "policies for these"
        )
    return ObservationPart(path, math.prod(shape))


def _own_limit(name: str, limit: int, task: Task) -> bool:
    """Return whether EnvPool limits the episodes of a task; `limit` is that of its configuration."""
    if task.max_episode_steps is None:
        return limit <= STEP_CAP
    own = _make_spec(name, **task.env_options).config
    return int(getattr(own, "max_episode_steps", STEP_CAP + 1)) <= STEP_CAP


def _solved_score(name: str, config: Any) -> float | None:
    """Return the score that EnvPool, or Gymnasium for the same id, calls solved."""
    value = getattr(config, "reward_threshold", None)
    if value is None:
        value = registered_score(name)
    return None if value is None or not math.isfinite(value) else float(value)


def _actions(name: str, spec: Any, *, rescale: bool) -> Actions:
    shape = tuple(int(size) for size in spec.shape if size != -1)
    dtype = np.dtype(spec.dtype)
    if np.issubdtype(dtype, np.integer) and shape == () and np.ndim(spec.minimum) == 0:
        first, last = int(spec.minimum), int(spec.maximum)
        if last - first < 2**16:
            return Actions.discrete(last - first + 1, start=first, dtype=dtype.name)
    if np.issubdtype(dtype, np.integer) and len(shape) == 1:
        first, last = (np.broadcast_to(np.asarray(ends, np.int64), shape) for ends in (spec.minimum, spec.maximum))
        if int((last - first + 1).sum()) <= MOST_CHOICES:
            choices = [
                Actions.discrete(int(high - low) + 1, start=int(low)) for low, high in zip(first, last, strict=True)
            ]
            return Actions.of_parts([((place,), choice) for place, choice in enumerate(choices)], dtype=dtype.name)
    if np.issubdtype(dtype, np.floating) and len(shape) == 1:
        low = np.broadcast_to(np.asarray(spec.minimum, dtype=dtype), shape)
        high = np.broadcast_to(np.asarray(spec.maximum, dtype=dtype), shape)
        return Actions.box(low, high, rescale=rescale, dtype=dtype.name)
    raise InvalidArgument(
        f"actions must be a vector of real numbers or of choices, but EnvPool's {name} takes {dtype} of shape {shape}"
    )


class Pool:
    """Environments of one task, stepped as a subset at a time: each has a lane and a seed.

    `resets` counts how often each environment was reset since the pool was made.
    """

    def __init__(self, layout: Layout, lanes: NDArray[np.int64], seeds: Sequence[int], threads: int) -> None:
        import envpool

        self.layout = layout
        self.lanes = lanes
        self.resets = np.zeros(len(lanes), np.int64)
        try:
            self._pool: Any = cast(Any, envpool).make(
                layout.task.env,
                env_type="gymnasium",
                num_envs=len(lanes),
                seed=list(seeds),
                num_threads=max(1, min(threads, len(lanes))),
                max_episode_steps=layout.step_limit,
                **layout.task.env_options,
            )
        except Exception as error:
            raise EnvironmentFault(f"EnvPool cannot make {layout.task.label}: {one_line(error)}") from error
        self._sent: list[NDArray[Any]] = []

    def reset(self, slots: NDArray[np.int32]) -> None:
        """Ask for a reset of the environments at `slots`; `receive` brings their observations."""
        self.resets[slots] += 1
        self._pool._reset(slots)

    def send(self, slots: NDArray[np.int32], actions: NDArray[Any]) -> None:
        """Step the environments at `slots`; one that has ended is reset instead, and its action ignored."""
        # Kept until the next call: the threads still read these arrays after `_send` returns.
        self._sent = [slots, slots, actions]
        self._pool._send(self._sent)

    def receive(self) -> list[NDArray[Any]]:
        """Wait for the environments that were sent to, and return their states in the order sent."""
        return self._pool._recv()

    def advance_to(self, slots: NDArray[np.int32], resets: NDArray[np.int64]) -> None:
        """Reset environments until each was reset as often as `resets` says."""
        missing = resets - self.resets[slots]
        for done in range(int(missing.max(initial=0))):
            self.reset(np.ascontiguousarray(slots[missing > done]))
            self.receive()

    def close(self) -> None:
        """Stop the threads and free the environments."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()


class BarePool:
    """EnvPool alone, for ``clipup bench``: every environment steps at every round, and is reset as soon as it ends."""

    def __init__(self, task: Task, *, count: int, threads: int) -> None:
        words = seed_words(0, "candidate", epoch=0, stream="evaluation", indices=np.arange(count))
        self._pool = Pool(pool_layout(task), np.arange(count), int31(words), threads)

    def steps_per_second(self, actor: Actor, parameters: NDArray[np.float32], seconds: float) -> float:
        """Step all environments for about `seconds` and return the speed."""
        pool = self._pool
        ended = pool.layout.done_index
        slots, arranged = np.arange(len(parameters), dtype=np.int32), actor.arrange(parameters)
        state = actor.initial_state(len(parameters))
        pool.reset(slots)
        states = pool.receive()
        start, steps = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - start) < seconds:
            for _ in range(16):
                steps += len(slots) - int(
                    np.count_nonzero(states[ended])
                )  # an environment that ended is reset: no step
                pool.send(slots, actor.act(arranged, pool.layout.observed(states), state))
                states = pool.receive()
        return steps / elapsed

    def close(self) -> None:
        """Free the pool."""
        self._pool.close()
