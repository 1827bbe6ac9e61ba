"""One start and one step of a new task in plain Python, so that a mistake is found with its function and line."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clipup.compilation.functions import reachable
from clipup.compilation.random import STATE_WORDS
from clipup.engines.compiled import array_world, mujoco_world
from clipup.engines.compiled.episode import World
from clipup.engines.compiled.task import ArrayTask, CompiledTask, MujocoTask
from clipup.errors import InvalidArgument, one_line
from clipup.policies.actions import Actions


def check_mujoco(
    task: MujocoTask,
    world: World,
    model: Any,
    data: Any,
    actions: Actions,
    start: Callable[[int], NDArray[np.float64]],
) -> None:
    """Raise `InvalidArgument`, in one line with the function and its line, where the task's functions do not work."""
    functions = [*mujoco_world.user_functions(task), *([task.start] if task.start else [])]
    if actions.kind == "box" and task.control is None and actions.size != model.nu:
        raise InvalidArgument(f"{task.name} has {actions.size} actions, but its model has {model.nu} controls")
    begun = _guard(task, functions, lambda: start(0))
    wanted = model.nq + model.nv
    if begun.shape != (wanted,):
        raise InvalidArgument(
            f"start of {task.name} must return {model.nq} positions and {model.nv} velocities, got {begun.size} numbers"
        )
    job = _job(task, begun, memory_size=max(task.memory_size, 1))
    _try(task, world, job, actions, functions, model, data)


def check_array(task: ArrayTask, world: World) -> None:
    """Raise `InvalidArgument`, in one line with the function and its line, where the task's functions do not work."""
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
            f"observe of {task.name} must fill all numbers, but observation[{unset[0]}] is not a number"
        )
    action: Any = actions.start if actions.kind == "discrete" else np.zeros(actions.size, np.float32)
    _guard(
        task,
        functions,
        lambda: world.advance(job, 0, one, handle, task.options, job.memory[0], observation, action),
    )


def _guard(task: CompiledTask, functions: list[Any], action: Callable[[], Any]) -> Any:
    try:
        with np.errstate(all="ignore"):
            return action()
    except Exception as error:
        codes = {function.__code__ for function in reachable(functions)}
        where = ""
        for frame, line in traceback.walk_tb(error.__traceback__):
            if frame.f_code in codes:
                where = f" in {frame.f_code.co_name} ({Path(frame.f_code.co_filename).name}, line {line})"
        raise InvalidArgument(f"{task.name} fails{where}: {one_line(error)}") from error
