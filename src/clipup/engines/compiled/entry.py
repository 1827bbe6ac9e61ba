"""Which environments the compiled engine has, and how it is made: the built-in tasks, and tasks of one's own.

A task of one's own is a `MujocoTask` or an `ArrayTask`, or a function that returns one. `Task.env` names it as
``"my_robot:Crawler"`` (a module that Python can import) or ``"path/to/my_robot.py:Crawler"``, or is the function
itself. A function gets `Task.env_options`. It must say in its annotation that it returns such a task: other functions
make Gymnasium environments, and are not called to find that out.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from clipup.compilation import machine_code
from clipup.engines.compiled import tasks
from clipup.engines.compiled.engine import CompiledEngine
from clipup.engines.compiled.task import ArrayTask, CompiledTask, MujocoTask
from clipup.engines.task import Task
from clipup.errors import ClipUpError, InvalidArgument, UnknownEnvironment, one_line

_MODULES: dict[Path, ModuleType] = {}


class CompiledEntry:
    """What the registry needs to know of this engine.

    Attributes
    ----------
    preferred_candidates
        How many candidates a worker likes at once: enough that threads seldom wait for the last one.
    own_threads, parallelism
        Its workers are threads of one process.
    """

    name = "compiled"
    preferred_candidates = 32
    own_threads = True
    parallelism = "threads"

    def ids(self) -> Collection[str]:
        """Return the built-in tasks; none where Numba is missing."""
        return tuple(tasks.BUILT_IN) if machine_code.is_installed() else ()

    def refusal(self, task: Task) -> ClipUpError | None:
        """Return None where the engine can run `task` with every option, else the error that says why not."""
        try:
            compiled = find_task(task)
            if task.reward_terms is not None:
                raise InvalidArgument("the compiled engine does not tell the terms of a reward (reward_terms)")
            if not machine_code.is_disabled():
                machine_code.require()
            if isinstance(compiled, MujocoTask):
                _require_mujoco()
        except ClipUpError as error:
            return error
        return None

    def make(self, task: Task, *, lanes: int, threads: int | None, reason: str) -> CompiledEngine:
        """Return the engine for a task that it does not refuse; it has no lanes."""
        return CompiledEngine(task, find_task(task), threads=threads or 1, reason=reason)


def find_task(task: Task) -> CompiledTask:
    """Return the compiled task that `task.env` names; a `ClipUpError` where there is none."""
    env = task.env
    if not isinstance(env, str):
        return _make(env, task, "the environment")
    if env in tasks.BUILT_IN:
        return tasks.task(env, task.env_options)
    place, colon, name = env.rpartition(":")
    if not colon:
        raise UnknownEnvironment(f"the compiled engine has no {env}")
    found = getattr(_module(place), name, None)
    if found is None:
        raise UnknownEnvironment(f"the compiled engine finds no {name!r} in {place}")
    return _make(found, task, env)


def _make(found: object, task: Task, label: str) -> CompiledTask:
    """Return a compiled task that is one, or that a function makes which says so."""
    if isinstance(found, MujocoTask | ArrayTask):
        if task.env_options:
            raise InvalidArgument(f"{label} takes no options; make it a function that returns the task")
        return found
    if not callable(found) or not _returns_task(found):
        raise UnknownEnvironment(f"{label} is no compiled task (a MujocoTask, an ArrayTask or a function annotated so)")
    try:
        made: object = found(**task.env_options)
    except ClipUpError:
        raise
    except Exception as error:
        raise InvalidArgument(f"{label} cannot be made: {one_line(error)}") from error
    if not isinstance(made, MujocoTask | ArrayTask):
        raise InvalidArgument(f"{label} must return a MujocoTask or an ArrayTask, got {type(made).__name__}")
    return made


def _returns_task(function: Callable[..., Any]) -> bool:
    try:
        hints = get_type_hints(function if inspect.isfunction(function) else type(function).__call__)
    except (AttributeError, NameError, TypeError):
        return False
    return hints.get("return") in (MujocoTask, ArrayTask, CompiledTask)


def _module(place: str) -> ModuleType:
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        path = Path(place).resolve()
        if path not in _MODULES:
            spec = importlib.util.spec_from_file_location(path.stem, path)
            if spec is None or spec.loader is None:
                raise InvalidArgument(f"{place} is no Python file")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            _MODULES[path] = module
        return _MODULES[path]
    except ClipUpError:
        raise
    except Exception as error:
        raise UnknownEnvironment(f"{place} could not be imported: {one_line(error)}") from error


def _require_mujoco() -> None:
    from clipup.engines.compiled.mujoco_batch import require_batches
    from clipup.engines.compiled.mujoco_world import library

    require_batches(library())
