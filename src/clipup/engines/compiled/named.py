"""Tasks of one's own by name: ``module:Name``, or ``path/to/file.py:Name``.

To find such a task runs the code of its module. Whoever calls `find` has made sure that the user named it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import cast

from clipup.engines.compiled.task import UNNAMED, ArrayTask, CompiledTask, MujocoTask, option_kinds
from clipup.engines.task import names_a_file
from clipup.errors import BrokenTask, InvalidArgument, UnknownEnvironment, one_line
from clipup.suggestions import did_you_mean


def may_name_a_task(env: str) -> bool:
    """Return whether `env` has the form of a task's name. An id such as ``module:Walker-v1`` has not."""
    place, _, name = env.rpartition(":")
    return names_a_file(env) or (name.isidentifier() and all(map(str.isidentifier, place.split("."))))


def find(env: str) -> CompiledTask:
    """Import the module or the file that `env` names, and return the task in it.

    Raises `UnknownEnvironment` if the module has no task, so that it may be one of Gymnasium's environments, and
    `BrokenTask` if there is no such module or file, if its code fails, or if it has other tasks only.
    """
    place, _, name = env.rpartition(":")
    in_file = names_a_file(env)
    module = _load_file(place) if in_file else _import(place, name)
    task = cast(object, getattr(module, name, None))
    if not isinstance(task, MujocoTask | ArrayTask):
        tasks = [key for key, value in vars(module).items() if isinstance(value, MujocoTask | ArrayTask)]
        kind = BrokenTask if in_file or tasks else UnknownEnvironment
        got = f"{name!r} is of type {type(task).__name__}" if hasattr(module, name) else f"it has no {name!r}"
        known = f" (it has {', '.join(tasks)})" if tasks else ""
        raise kind(f"{env} must name a MujocoTask or an ArrayTask, and {got}{did_you_mean(name, tasks)}{known}")
    return dataclasses.replace(task, name=env) if task.name == UNNAMED else task


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
            return name if file is None else f"{_short(file)}:{name}"
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


def _import(place: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{place}.".startswith(f"{error.name}."):
            hint = f"{place.replace('.', '/')}.py:{name}"
            raise BrokenTask(f"there is no module {place!r}; a file is named by its path: path/to/{hint}") from error
        raise _broken(place, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(place, error) from error


def _load_file(place: str) -> ModuleType:
    """Run a file as a module of its own, once in a process. It can import its neighbours, as a script can."""
    path = Path(place).expanduser()
    if not path.is_file():
        raise BrokenTask(f"there is no file {place!r} here ({Path.cwd()})")
    path = path.resolve()
    # Not the file's own name: that may be the name of a module that something else needs.
    name = f"_clipup_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BrokenTask(f"{place} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    directory = str(path.parent)
    sys.path.insert(0, directory)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, Exception | SystemExit):
            raise _broken(place, error) from error
        raise
    finally:
        # Its neighbours must not stand in for modules that clipup imports later.
        sys.path.remove(directory)
        if directory not in sys.path:
            sys.path.append(directory)
    return module


def _broken(place: str, error: BaseException) -> BrokenTask:
    """Return the error for code that fails when it is imported, with the last line of it that was reached."""
    where = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if not file.startswith("<") and Path(file) != Path(__file__):
            where = f" ({Path(file).name}, line {line})"
    if isinstance(error, SyntaxError):
        where = f" ({Path(error.filename or place).name}, line {error.lineno})"
        return BrokenTask(f"{place} cannot be imported{where}: {type(error).__name__}: {error.msg}")
    return BrokenTask(f"{place} cannot be imported{where}: {one_line(error)}")


def _short(file: str) -> str:
    """Return the path of a file from the current directory, where it is below it."""
    path = Path(file).resolve()
    return os.path.relpath(path) if path.is_relative_to(Path.cwd().resolve()) else str(path)
