"""How a job and a task's options reach machine code: as words of eight bytes, described as structures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clipup.compilation.structures import Field, Number, Structure, Tuple, array_structure, array_words, viewer
from clipup.engines.compiled.episode import KernelJob
from clipup.engines.compiled.task import Options, option_kinds

_ARRAYS = {
    "stop": ("int64", 1), "following": ("int64", 1), "ready": ("int64", 1), "current": ("int64", 1),
    "taken": ("int64", 1), "numbers": ("int64", 1),
    "parameters": ("float32", 2), "sizes": ("int64", 1), "mean": ("float64", 1), "scale": ("float64", 1),
    "bounds": ("float32", 2), "arranged": ("float32", 2), "values": ("float32", 3), "observation": ("float64", 2),
    "action": ("float32", 2), "memory": ("float64", 2), "state": ("float32", 2),
    "totals": ("float64", 1), "steps": ("int64", 1), "status": ("int64", 1), "counts": ("float64", 1),
    "moment_mean": ("float64", 2), "moment_m2": ("float64", 2),
    "options": ("int64", 1), "seeds": ("int64", 2), "starts": ("float64", 3), "random": ("uint64", 2),
    "calls": ("int64", 1),
}  # fmt: skip
"""Type and dimensions of every array of a `KernelJob`, in its order."""


def job_words(job: KernelJob) -> NDArray[np.int64]:
    """Return where the arrays of a job are. The job must outlive the result."""
    return array_words(_ARRAYS, job)


def job_structure() -> Structure:
    """Return how the words of a job are laid out."""
    return array_structure("KernelJob", _ARRAYS)


_OPTION_TYPES = {"float": "float64", "int": "int64", "bool": "bool"}


def option_words(options: Options) -> NDArray[np.int64]:
    """Return a task's options as words: a float64, a whole number, or one byte for a boolean."""
    words: list[int] = []
    for name, kind, length in option_kinds(options):
        value = getattr(options, name)
        for member in value if length is not None else (value,):
            words.append(int(np.float64(member).view(np.int64)) if kind == "float" else int(member))
    return np.array(words or [0], "<i8")


def option_structure(options: Options) -> Structure:
    """Return how the words of a task's options are laid out."""
    found: list[tuple[str, Field]] = []
    place = 0
    for name, kind, length in option_kinds(options):
        dtype = _OPTION_TYPES[kind]
        found.append((name, Number(8 * place, dtype) if length is None else Tuple(8 * place, dtype, length)))
        place += 1 if length is None else length
    return Structure("Options", tuple(found))


def option_viewer(options: Options) -> Callable[[Any], Any]:
    """Return a function, for machine code, that gives the options whose words are in a vector."""
    view = viewer(option_structure(options))

    def options_in(words: Any) -> Any:
        return view(words.ctypes.data, 0)

    return options_in
