"""One start and one step of a new task in plain Python, so that a mistake is found with its function and line."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import numbers
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from clipup.compilation.functions import plain, reachable
from clipup.compilation.random import STATE_WORDS
from clipup.engines.compiled import array_world, mujoco_world
from clipup.engines.compiled.episode import World
from clipup.engines.compiled.task import ArrayTask, CompiledTask, MujocoTask
from clipup.errors import InvalidArgument, one_line
from clipup.policies.actions import Actions

ARGUMENTS = {
    MujocoTask: {
        "observe": ("model", "data", "options", "observation"),
        "reward": ("model", "data", "options", "memory", "action"),
        "terminated": ("model", "data", "options", "observation"),
        "control": ("model", "data", "options", "action"),
        "before": ("model", "data", "options", "memory"),
        "start": ("generator", "model", "options"),
        "randomize": ("random", "model", "options"),
    },
    ArrayTask: {
        "reset": ("random", "state", "options"),
        "step": ("state", "action", "random", "options"),
        "observe": ("state", "options", "observation"),
        "render": ("state", "options"),
    },
}
"""What each function of a task is called with."""


def check_mujoco(
    task: MujocoTask,
    model: Any,
    data: Any,
    actions: Actions,
    start: Callable[[int], NDArray[np.float64]],
) -> None:
    """Raise `InvalidArgument`, in one line with the function and its line, where the task's functions do not work."""
    _check_arguments(task)
    functions = [*mujoco_world.user_functions(task), *([task.start] if task.start else [])]
    if actions.kind == "box" and task.control is None and actions.size != model.nu:
        raise InvalidArgument(f"{task.name} has {actions.size} actions, but its model has {model.nu} controls")
    if task.start is not None:
        begin = _checked(task, "start", _is_pair, f"{model.nq} positions and {model.nv} velocities")
        _guard(task, functions, lambda: begin(np.random.default_rng(0), model, task.options))
    begun = _guard(task, functions, lambda: start(0))
    wanted = model.nq + model.nv
    if begun.shape != (wanted,):
        raise InvalidArgument(
            f"start of {task.name}{_place(task.start)} must return {model.nq} positions and {model.nv} velocities, "
            f"got {begun.size} numbers"
        )
    job = _job(task, begun, memory_size=max(task.memory_size, 1))
    checked, own_model = _returns_checked(task), copy.copy(model)
    physics = mujoco_world.plain_physics(checked, model)
    world = mujoco_world.make_world(checked, physics, discrete=actions.kind == "discrete")
    _try(task, world, job, actions, functions, own_model, data)


def check_array(task: ArrayTask) -> None:
    """Raise `InvalidArgument`, in one line with the function and its line, where the task's functions do not work."""
    _check_arguments(task)
    world = array_world.make_world(_returns_checked(task), lambda words: task.options)
    job = _job(task, np.zeros(1), memory_size=task.state_size)
    state = job.memory[0]
    _try(task, world, job, task.actions, array_world.user_functions(task), state, job.random[0])


def _job(task: CompiledTask, start: NDArray[np.float64], *, memory_size: int) -> Any:
    """Return what a world's functions read of a job, for one slot and one candidate."""
    return SimpleNamespace(
        memory=np.zeros((1, memory_size)),
        observation=np.full((1, task.observation_size), np.nan),
        starts=start.reshape(1, 1, -1),
        seeds=np.zeros((1, 1), np.int64),
        random=np.zeros((1, STATE_WORDS), np.uint64),
        options=None,
        calls=None,
        numbers=[1] * 9,
    )


def _try(
    task: CompiledTask, world: World, job: Any, actions: Actions, functions: list[Any], one: Any, other: Any
) -> None:
    handle = _guard(task, functions, lambda: world.begin(job, 0, 0, 0, one, other))
    observation = job.observation[0]
    unset = np.flatnonzero(np.isnan(observation))
    if len(unset):
        raise InvalidArgument(
            f"observe of {task.name}{_place(task.observe)} must fill all {task.observation_size} numbers, but "
            f"observation[{unset[0]}] is not a number"
        )
    action: Any = actions.start if actions.kind == "discrete" else np.zeros(actions.size, np.float32)
    _guard(
        task,
        functions,
        lambda: world.advance(job, 0, one, handle, task.options, job.memory[0], observation, action),
    )


class _WrongReturn(Exception):
    """A function returned something that it must not."""


def _returns_checked(task: Any) -> Any:
    """Return the task with functions that raise `_WrongReturn` where a returned value cannot be used."""
    rules = {
        "reward": (_is_number, "a number"),
        "terminated": (_is_truth, "True or False"),
        "step": (_is_outcome, "two values, a number and True or False"),
    }
    changes = {
        name: _checked(task, name, *rule) for name, rule in rules.items() if getattr(task, name, None) is not None
    }
    return dataclasses.replace(task, **changes)


def _checked(task: CompiledTask, name: str, accepts: Callable[[object], bool], wanted: str) -> Callable[..., Any]:
    function = getattr(task, name)

    def call(*arguments: Any) -> Any:
        value = function(*arguments)
        if not accepts(value):
            raise _WrongReturn(f"{name} of {task.name}{_place(function)} must return {wanted}, got {value!r:.80}")
        return value

    return call


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real | np.bool_)


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple | list) and len(cast("tuple[object, ...]", value)) == 2


def _is_truth(value: object) -> bool:
    return isinstance(value, bool | np.bool_ | int | np.integer)


def _is_outcome(value: object) -> bool:
    if not isinstance(value, tuple) or not _is_pair(cast(object, value)):
        return False
    reward, terminated = cast("tuple[object, object]", value)
    return _is_number(reward) and _is_truth(terminated)


def _check_arguments(task: CompiledTask) -> None:
    """Refuse a function that cannot be called with what it is given."""
    for name, given in ARGUMENTS[type(task)].items():
        function = getattr(task, name)
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            continue
        try:
            signature.bind(*given)
        except TypeError:
            raise InvalidArgument(
                f"{name} of {task.name}{_place(function)} must take ({', '.join(given)}), got {signature}"
            ) from None


def _place(function: object) -> str:
    """Return the name of a function and where it begins, for messages."""
    inner = plain(function)
    if inner is None:
        return ""
    code = inner.__code__
    return f", {code.co_name} ({Path(code.co_filename).name}, line {code.co_firstlineno}),"


def _guard(task: CompiledTask, functions: list[Any], action: Callable[[], Any]) -> Any:
    try:
        with np.errstate(all="ignore"):
            return action()
    except _WrongReturn as error:
        raise InvalidArgument(one_line(error).partition(": ")[2]) from None
    except Exception as error:
        codes = {function.__code__ for function in reachable(functions)}
        where = ""
        for frame, line in traceback.walk_tb(error.__traceback__):
            if frame.f_code in codes:
                where = f" in {frame.f_code.co_name} ({Path(frame.f_code.co_filename).name}, line {line})"
        changed = isinstance(task, MujocoTask) and task.randomize
        if not where and changed and type(error).__name__ == "FatalError":  # MuJoCo's own
            where = f" with the model that randomize{_place(changed)} made"
        raise InvalidArgument(f"{task.name} fails{where}: {one_line(error)}") from error
