"""Code of the user's own by name: ``module:Name``, or ``path/to/file.py:Name``.

To find a name runs the code of its module. Whoever calls `load_place` has made sure that the user named it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType

from clipup.errors import BrokenTask, one_line


def names_a_file(text: str) -> bool:
    """Return whether `text` has the form ``path/to/file.py:Name``."""
    return text.rpartition(":")[0].endswith(".py")


def load_place(place: str, name: str) -> ModuleType:
    """Import a module, or run a file, that is to have something called `name`; `BrokenTask` where that fails."""
    return _load_file(place) if place.endswith(".py") else _import(place, name)


def absolute(text: str) -> str:
    """Return a name for another process, which may be in another directory: the path of a file is absolute."""
    if not names_a_file(text):
        return text
    place, _, name = text.rpartition(":")
    return f"{Path(place).absolute()}:{name}"


def short_path(file: str) -> str:
    """Return the path of a file from the current directory, where it is below it."""
    path = Path(file).resolve()
    return os.path.relpath(path) if path.is_relative_to(Path.cwd().resolve()) else str(path)


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
