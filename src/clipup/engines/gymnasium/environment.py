"""Makes Gymnasium environments, and reads what they observe and take."""

from __future__ import annotations

import contextlib
import importlib
import time
import warnings
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from clipup.engines.gymnasium.bullet import quicken
from clipup.engines.gymnasium.quiet_output import quiet_output
from clipup.engines.gymnasium.spaces import action_maker, actions_of, observations_of
from clipup.engines.seeding import int31, seed_words
from clipup.engines.task import EnvironmentMaker, OwnTask, Task
from clipup.errors import (
    BrokenTask,
    EnvironmentFault,
    InvalidArgument,
    MissingDependency,
    UnknownEnvironment,
    one_line,
)
from clipup.importing import load_place, names_a_file
from clipup.policies.act import Actor


def make_ready(task: Task) -> Any:
    """Return a new environment that was reset once.

    Some environments load their world at the first reset and only restore it at later ones, which is not the same to
    the last bit (Bullet's: 3e-7 in one observation). So no episode starts from the first reset.
    """
    with quiet_output():
        environment = make_environment(task)
        try:
            environment.reset(seed=0)
        except Exception as error:
            with contextlib.suppress(Exception):
                environment.close()
            raise EnvironmentFault(f"{task.label} failed in its first reset: {one_line(error)}") from error
    quicken(environment)
    return environment


def make_environment(task: Task) -> Any:
    """Return a new Gymnasium environment for `task`. Every failure is one of clipup's errors, in one line."""
    try:
        import gymnasium
    except ImportError as error:
        raise MissingDependency.of("gymnasium", extra="train") from error
    if isinstance(task.env, OwnTask):
        raise InvalidArgument(f"{task.label} is a task of the compiled engine, not an environment of Gymnasium")
    maker = named_maker(task.env) if isinstance(task.env, str) else task.env
    if maker is None:
        return _wrapped(_make_by_id(task, str(task.env)), task)
    try:
        environment = cast(Any, maker(**task.env_options))
    except Exception as error:
        raise _failed(task, error) from error
    if not isinstance(cast(object, environment), gymnasium.Env):
        kind = type(environment).__qualname__
        raise InvalidArgument(f"{task.label} must return a gymnasium.Env, got {kind}; derive it from that class")
    environment = _wrapped(environment, task)
    limit = task.max_episode_steps
    if limit is None and own_step_limit(environment) is None:
        limit = task.fallback_steps
    if limit is not None:
        environment = gymnasium.wrappers.TimeLimit(environment, limit)
    return environment


def named_maker(name: str) -> EnvironmentMaker | None:
    """Return the class or function that ``module:name`` or ``file.py:name`` is, or None for an environment's id."""
    place, _, own = name.rpartition(":")
    if not place or not own.isidentifier():
        return None
    import gymnasium

    try:
        found = cast(object, getattr(load_place(place, own), own, None))
    except BrokenTask:
        if names_a_file(name):
            raise
        return None  # making it by its id says what is wrong
    return found if callable(found) and own not in cast(Any, gymnasium).registry else None


def _id_for_gymnasium(name: str) -> str:
    """Return the id that Gymnasium can make: a file, which it cannot import, is run first."""
    if not names_a_file(name):
        return name
    place, _, own = name.rpartition(":")
    load_place(place, own)
    return own


def _wrapped(environment: Any, task: Task) -> Any:
    """Return the environment in its wrappers."""
    try:
        for wrapper in task.wrappers:
            environment = wrapper.wrap(environment)
    except BaseException:
        with contextlib.suppress(Exception):
            environment.close()
        raise
    return environment


def _make_by_id(task: Task, name: str) -> Any:
    import gymnasium
    from gymnasium import error as gymnasium_error

    options: dict[str, Any] = dict(task.env_options)
    if "max_episode_steps" in options:  # Gymnasium would take it, and shorten the episodes of evaluations too
        raise InvalidArgument("max_episode_steps is a setting of the task, not an option of the environment")
    try:
        limit = task.max_episode_steps
        if limit is None and task.fallback_steps is not None and not has_own_limit(name):
            limit = task.fallback_steps
        if limit is not None:
            options["max_episode_steps"] = limit
        with warnings.catch_warnings():
            # The user chose this version; the paper's results are for old ones.
            warnings.filterwarnings("ignore", message=".*is out of date.*")
            warnings.filterwarnings("ignore", message=".*Box (low|high|bound)'s precision.*")
            # A file that was run by its path may be imported once more by the entry point that it registers.
            warnings.filterwarnings("ignore", message=".*Overriding environment .* already in registry.*")
            # Box2D's bindings crash the interpreter if this warning of theirs is turned into an error.
            warnings.filterwarnings("ignore", message="builtin type .* has no __module__", category=DeprecationWarning)
            return cast(Any, gymnasium).make(_id_for_gymnasium(name), disable_env_checker=True, **options)
    except BrokenTask:
        raise
    except (gymnasium_error.UnregisteredEnv, gymnasium_error.DeprecatedEnv) as error:
        raise UnknownEnvironment(f"Gymnasium has no {name!r}") from error
    except gymnasium_error.DependencyNotInstalled as error:
        raise InvalidArgument(f"{name} needs a library that is not installed: {one_line(error)}") from error
    except ImportError as error:
        raise InvalidArgument(f"{name} could not be imported: {one_line(error)}") from error
    except gymnasium_error.Error as error:
        raise InvalidArgument(f"Gymnasium cannot make {name}: {one_line(error)}") from error
    except Exception as error:
        raise _failed(task, error) from error


def _failed(task: Task, error: Exception) -> EnvironmentFault | InvalidArgument:
    """Return the error for an environment that raised while it was made: its own fault, or that of its options."""
    mismatches = ("keyword argument", "positional argument", "takes no arguments")
    if isinstance(error, TypeError) and any(text in str(error) for text in mismatches):
        given = ", ".join(f"{key}={value!r}" for key, value in task.env_options.items()) or "none"
        return InvalidArgument(f"{task.label} does not take these options: {given} ({one_line(error)})")
    return EnvironmentFault(f"making {task.label} failed: {one_line(error)}")


def has_own_limit(name: str) -> bool:
    """Return whether Gymnasium's registry limits the episodes of an environment; its module or file is run.

    True for one that the registry does not have: making it says what is wrong.
    """
    import gymnasium

    module, _, own = _id_for_gymnasium(name).rpartition(":")
    if module:
        importlib.import_module(module)
    spec = cast(Any, gymnasium).registry.get(own)
    return spec is None or spec.max_episode_steps is not None


def solved_score(environment: Any) -> float | None:
    """Return the score from which on the registration calls the environment solved, if it says so."""
    value = getattr(getattr(environment, "spec", None), "reward_threshold", None)
    return None if value is None else float(value)


def own_step_limit(environment: Any) -> int | None:
    """Return where the environment cuts its own episodes, if it says so."""
    spec = getattr(environment, "spec", None)
    return getattr(spec, "max_episode_steps", None)


class BareEnvironment:
    """An environment alone, for ``clipup bench``: the policies take turns, with nothing between their episodes."""

    def __init__(self, task: Task, *, count: int) -> None:
        self._label = task.label
        self._environment = make_ready(task)
        space = self._environment.action_space
        self._action = action_maker(space, actions_of(task, space))
        _, self._observations = observations_of(task, self._environment.observation_space)
        words = seed_words(0, "candidate", epoch=0, stream="evaluation", indices=np.arange(count))
        self._seeds = int31(words)

    def steps_per_second(self, actor: Actor, parameters: NDArray[np.float32], seconds: float) -> float:
        """Step the environment for about `seconds` and return the speed."""
        start, steps, elapsed, row, ended = time.perf_counter(), 0, 0.0, -1, True
        observation: Any = None
        try:
            arranged, state = actor.arrange(parameters), actor.initial_state(1)
            while elapsed < seconds:
                if ended:
                    row = (row + 1) % len(parameters)
                    observation, _ = self._environment.reset(seed=self._seeds[row])
                    state[:] = 0.0
                layout = self._observations
                vector = np.asarray(observation) if layout is None else layout.flatten(observation)
                action = actor.act(arranged[row : row + 1], vector[np.newaxis], state)[0]
                result = self._environment.step(self._action(action))
                observation, _, terminated, truncated, _ = result
                ended = terminated or truncated
                steps += 1
                elapsed = time.perf_counter() - start
        except Exception as error:
            raise EnvironmentFault(f"{self._label} failed: {one_line(error)}") from error
        return steps / elapsed

    def close(self) -> None:
        """Close the environment."""
        self._environment.close()
