"""Tasks of one's own by name: ``module:Name``, or ``path/to/file.py:Name``.

To find such a task runs the code of its module. Whoever calls `find` has made sure that the user named it.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from typing import cast

from clipup.engines.compiled.task import UNNAMED, ArrayTask, CompiledTask, MujocoTask, option_kinds
from clipup.errors import BrokenTask, InvalidArgument, UnknownEnvironment
from clipup.importing import load_place, names_a_file, short_path
from clipup.suggestions import did_you_mean


def may_name_a_task(env: str) -> bool:
    """Return whether `env` has the form of a task's name. An id such as ``module:Walker-v1`` has not."""
    place, _, name = env.rpartition(":")
    return names_a_file(env) or (name.isidentifier() and all(map(str.isidentifier, place.split("."))))


def find(env: str) -> CompiledTask:
    """Import the module or the file that `env` names, and return the task in it.

    Raises `UnknownEnvironment` where Gymnasium may have it: the name is a function, a class or a registered
    environment, or the module has no task. Raises `BrokenTask` if there is no such module or file, if its code fails,
    or if it has other tasks only.
    """
    place, _, name = env.rpartition(":")
    in_file = names_a_file(env)
    module = load_place(place, name)
    task = cast(object, getattr(module, name, None))
    if not isinstance(task, MujocoTask | ArrayTask):
        tasks = [key for key, value in vars(module).items() if isinstance(value, MujocoTask | ArrayTask)]
        got = f"{name!r} is of type {type(task).__name__}" if hasattr(module, name) else f"it has no {name!r}"
        if callable(task) or _is_registered(name) or not (in_file or tasks):
            raise UnknownEnvironment(f"{env} names no MujocoTask or ArrayTask: {got}")
        known = f" (it has {', '.join(tasks)})" if tasks else ""
        raise BrokenTask(
            f"{env} must name a MujocoTask, an ArrayTask or what makes a Gymnasium environment, and {got}"
            f"{did_you_mean(name, tasks)}{known}"
        )
    return dataclasses.replace(task, name=env) if task.name == UNNAMED else task


def _is_registered(name: str) -> bool:
    """Return whether Gymnasium has an environment with that id, if Gymnasium is in use at all."""
    gymnasium = sys.modules.get("gymnasium")
    return gymnasium is not None and name in cast("Mapping[str, object]", getattr(gymnasium, "registry", {}))


def name_of(task: CompiledTask) -> str:
    """Return the name under which `find` gives `task` again, or else what it is called.

    A task of the script that is run is named by the script's file.
    """
    functions = (task.observe, task.reward) if isinstance(task, MujocoTask) else (task.step, task.reset)
    for place in dict.fromkeys([*(str(getattr(function, "__module__", "")) for function in functions), "__main__"]):
        module = sys.modules.get(place)
        for name, value in list(vars(module).items()) if module is not None else ():
            if value is not task:
                continue
            if place != "__main__":
                return f"{place}:{name}"
            file = getattr(module, "__file__", None)
            return name if file is None else f"{short_path(file)}:{name}"
    return task.name


def named(task: CompiledTask) -> CompiledTask:
    """Return the task with a name for messages."""
    return dataclasses.replace(task, name=name_of(task)) if task.name == UNNAMED else task


def with_options(task: CompiledTask, changes: Mapping[str, object]) -> CompiledTask:
    """Return `task` with some of its options changed; `InvalidArgument` for what is not an option of it."""
    if not changes:
        return task
    kinds = {name: (kind, length) for name, kind, length in option_kinds(task.options)}
    values: dict[str, object] = {}
    for name, given in changes.items():
        if name not in kinds:
            known = f"its options are {', '.join(kinds)}" if kinds else "it has no options"
            raise InvalidArgument(f"{task.name} has no option {name!r}{did_you_mean(name, kinds)} ({known})")
        kind, length = kinds[name]
        value = tuple(cast("list[object]", given)) if isinstance(given, list) else given
        if kind == "float" and isinstance(given, int) and not isinstance(given, bool):
            value = float(given)
        values[name] = value
        changed = task.options._replace(**{name: value})
        found = {key: (now, size) for key, now, size in option_kinds(changed)}[name]
        if found != (kind, length):
            wanted = kind if length is None else f"a tuple of {length} numbers ({kind})"
            raise InvalidArgument(f"option {name!r} of {task.name} must be {wanted}, got {given!r}")
    return dataclasses.replace(task, options=task.options._replace(**values))
