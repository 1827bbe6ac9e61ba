"""What a built-in task is called, which options it takes, and where its model is."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, cast

import numpy as np

from clipup.engines.compiled.task import CompiledTask, Model, Vector
from clipup.errors import InvalidArgument, MissingDependency, one_line

Value: TypeAlias = float | bool | str | tuple[float, float]


@dataclass(frozen=True)
class BuiltIn:
    """A task of Gymnasium that the compiled engine has.

    Parameters
    ----------
    id
        Gymnasium's name for it.
    max_episode_steps
        The step limit that Gymnasium registers it with.
    make
        Makes the task from its settings.
    defaults
        The options that a user may change, with Gymnasium's names and values.
    fixed
        What this version of the task does not let a user change, but another version might.
    """

    id: str
    max_episode_steps: int
    make: Callable[[Settings], CompiledTask]
    defaults: Mapping[str, Value] = field(default_factory=dict[str, Value])
    fixed: Mapping[str, Value] = field(default_factory=dict[str, Value])


class Settings:
    """The options of one task: those that a user gave, and defaults for the rest. Each is checked where it is read."""

    def __init__(self, task: BuiltIn, given: Mapping[str, object]) -> None:
        for name in given:
            if name not in task.defaults:
                known = f"its options are {', '.join(task.defaults)}" if task.defaults else "it has no options"
                raise InvalidArgument(
                    f"{task.id} has no option {name!r}{near_miss(name, task.defaults)} ({known})",
                )
        self.task = task
        self._values: dict[str, object] = {**task.fixed, **task.defaults, **given}

    def flag(self, name: str) -> bool:
        """Return an option that is true or false."""
        value = self._values[name]
        if not isinstance(value, bool):
            raise self._refusal(name, "true or false")
        return value

    def number(self, name: str) -> float:
        """Return an option that is a finite number."""
        value = self._values[name]
        if not _is_number(value) or not math.isfinite(value):
            raise self._refusal(name, "a finite number")
        return float(value)

    def scale(self, name: str) -> float:
        """Return an option that is a finite number and not negative."""
        value = self.number(name)
        if value < 0:
            raise self._refusal(name, "a finite number of at least 0")
        return value

    def count(self, name: str) -> int:
        """Return an option that is a whole number of at least 1."""
        value = self._values[name]
        if not _is_whole(value) or value < 1:
            raise self._refusal(name, "a whole number of at least 1")
        return int(value)

    def bounds(self, name: str) -> tuple[float, float]:
        """Return an option that is two numbers, which may be infinite."""
        value = self._values[name]
        members = cast("list[object] | tuple[object, ...]", value) if isinstance(value, list | tuple) else ()
        numbers = [float(member) for member in members if _is_number(member) and not math.isnan(member)]
        if len(members) != 2 or len(numbers) != 2:
            raise self._refusal(name, "two numbers, the lower and the upper bound")
        return numbers[0], numbers[1]

    def model(self) -> tuple[Path, Model]:
        """Return the path of the MJCF file that the option xml_file names, and the model in it."""
        name = self._values["xml_file"]
        if not isinstance(name, str | Path) or not str(name):
            raise self._refusal("xml_file", "the path of a model")
        path = model_path(str(name))
        if not path.is_file():
            raise InvalidArgument(f"option xml_file of {self.task.id}: there is no file {path}")
        try:
            return path, _mujoco().MjModel.from_xml_path(str(path))
        except ValueError as error:
            raise InvalidArgument(f"MuJoCo cannot load {path}: {one_line(error)}") from error

    def body(self, model: Model, name: str) -> int:
        """Return the number of the body that the option `name` gives by its number or its name."""
        value = self._values[name]
        if isinstance(value, str):
            return body_number(self.task.id, model, value)
        if not _is_whole(value) or not 0 <= value < model.nbody:
            raise self._refusal(name, f"the name of a body or its number, below {model.nbody}")
        return int(value)

    def _refusal(self, name: str, expected: str) -> InvalidArgument:
        return InvalidArgument(f"option {name} of {self.task.id} must be {expected}, got {self._values[name]!r}")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def near_miss(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the nearest known word, or nothing if none is near."""
    by_folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word.casefold(), by_folded, n=1)
    return f"; did you mean {by_folded[near[0]]!r}?" if near else ""


def model_path(name: str) -> Path:
    """Return the path that Gymnasium means by the name of a model.

    A name that begins with ``.`` or ``/`` is a path, one that begins with ``~`` is a path from the user's directory,
    and any other is a file among Gymnasium's own models. They are found without an import of Gymnasium.
    """
    if name.startswith((".", "/")):
        return Path(name).absolute()
    if name.startswith("~"):
        return Path(name).expanduser()
    found = importlib.util.find_spec("gymnasium")
    if found is None or found.origin is None:
        raise MissingDependency.of("gymnasium", extra="train")
    return Path(found.origin).parent / "envs" / "mujoco" / "assets" / name


def _mujoco() -> Any:
    """Return MuJoCo's library, which has no types."""
    try:
        return importlib.import_module("mujoco")
    except ImportError as error:
        raise MissingDependency.of("mujoco", extra="train") from error


def body_number(task: str, model: Model, name: str) -> int:
    """Return the number of the body called `name`."""
    mujoco = _mujoco()
    number = int(mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name))
    if number < 0:
        raise InvalidArgument(f"{task} needs a body named {name!r}, and its model has none")
    return number


def need(task: str, model: Model, **least: int) -> None:
    """Refuse a model that has fewer positions (nq), velocities (nv), controls (nu) or sites than a task reads."""
    for name, count in {"nu": 1, **least}.items():
        if getattr(model, name) < count:
            raise InvalidArgument(f"{task} needs a model with {name} of at least {count}, got {getattr(model, name)}")


def uniform_start(generator: np.random.Generator, model: Model, options: Any) -> tuple[Vector, Vector]:
    """Start near the model's pose: uniform noise on positions, then on velocities."""
    noise = float(options.reset_noise_scale)
    qpos: Vector = model.qpos0 + generator.uniform(-noise, noise, int(model.nq))
    return qpos, generator.uniform(-noise, noise, int(model.nv))


def normal_start(generator: np.random.Generator, model: Model, options: Any) -> tuple[Vector, Vector]:
    """Start near the model's pose: uniform noise on positions, normal noise on velocities."""
    noise = float(options.reset_noise_scale)
    qpos: Vector = model.qpos0 + generator.uniform(-noise, noise, int(model.nq))
    return qpos, noise * generator.standard_normal(int(model.nv))
