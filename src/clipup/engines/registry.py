"""Which engine knows which environment, and what each can honour."""

from __future__ import annotations

import difflib
import importlib.util
from typing import Any, cast

from clipup.engines.task import Task
from clipup.errors import ClipUpError, InvalidArgument, MissingDependency, UnknownEnvironment, one_line

POOL_KEYS = frozenset({
    "num_envs", "batch_size", "num_threads", "max_num_players", "thread_affinity_offset", "base_path", "seed",
    "env_seed", "gym_reset_return_info", "max_episode_steps", "reward_threshold",
})  # fmt: skip
"""Keys of an EnvPool configuration that belong to the pool or to `Task`, not to the environment."""


def envpool_ids() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Return EnvPool's registry (id → import path, …); empty where EnvPool is not installed."""
    if importlib.util.find_spec("envpool") is None:
        return {}
    from envpool.registration import registry

    return cast("dict[str, tuple[str, str, dict[str, Any]]]", cast(Any, registry).specs)


def gymnasium_ids() -> list[str]:
    """Return the ids that Gymnasium knows now; empty where it is not installed."""
    if importlib.util.find_spec("gymnasium") is None:
        return []
    import gymnasium

    return list(gymnasium.registry)


def envpool_has(task: Task) -> bool:
    """Return whether EnvPool knows the task's environment by its id."""
    return isinstance(task.env, str) and task.env in envpool_ids()


def unknown(name: str) -> UnknownEnvironment:
    """Return the error for an id that Gymnasium does not know, nor EnvPool, with the nearest ones that exist."""
    if name in envpool_ids():
        return UnknownEnvironment(f"Gymnasium has no {name!r}")
    known = sorted({*envpool_ids(), *gymnasium_ids()})
    by_fold: dict[str, str] = {key.lower(): key for key in known}
    near = difflib.get_close_matches(name.lower(), list(by_fold), n=4, cutoff=0.6)
    hint = f"; did you mean {', '.join(by_fold[key] for key in near)}?" if near else ""
    if not hint and ":" not in name:
        hint = "; an environment of your own is named 'module:EnvId'"
    return UnknownEnvironment(f"no environment {name!r} in EnvPool or Gymnasium{hint}")


def environment_options(task_id: str) -> list[str]:
    """Return the keyword arguments that EnvPool's environment of that id takes."""
    import envpool

    try:
        spec = cast(Any, envpool).make_spec(task_id)
    except ImportError as error:
        raise InvalidArgument(f"EnvPool cannot load {task_id}: {one_line(error)}") from error
    return sorted(set(cast("list[str]", spec._config_keys)) - POOL_KEYS)


def envpool_refusal(task: Task) -> ClipUpError | None:
    """Return None where EnvPool can run `task` with every option, else the error that says why not."""
    if not isinstance(task.env, str):
        return InvalidArgument("EnvPool runs its own environments only, and this one is a callable")
    if ":" in task.env:
        return InvalidArgument(f"EnvPool runs its own environments only, and {task.env} is imported from a module")
    if importlib.util.find_spec("envpool") is None:
        return MissingDependency.of("envpool", extra="train")
    if task.env not in envpool_ids():
        if task.env in gymnasium_ids():
            return UnknownEnvironment(f"EnvPool has no {task.env}, Gymnasium does (engine 'gymnasium' or 'auto')")
        return unknown(task.env)
    if task.reward_terms is not None:
        return InvalidArgument("EnvPool does not tell the terms of a reward (reward_terms)")
    from clipup.engines.pool import pool_layout

    try:
        if task.env_options:
            known = environment_options(task.env)
            for option in task.env_options:
                if option not in known:
                    return InvalidArgument(wrong_option("EnvPool", task.env, option, known))
        layout = pool_layout(task)
    except InvalidArgument as error:
        return error
    if task.episodes > 1 and task.episode_seeds != "independent" and not layout.replayable:
        return InvalidArgument(
            f"EnvPool's {task.env} starts an episode where the one before left its random numbers, so candidates can "
            f"share the start of their first episode only (episode_seeds {task.episode_seeds!r}, {task.episodes} "
            "episodes)"
        )
    return None


def wrong_option(engine: str, task_id: str, option: str, known: list[str]) -> str:
    """Return the message for a keyword argument that an environment does not take."""
    choice = f"it takes {', '.join(known)}" if known else "it takes none"
    if option in POOL_KEYS:
        choice = "it is set by the task or the engine"
    return f"{engine}'s {task_id} has no option {option!r}: {choice}"
