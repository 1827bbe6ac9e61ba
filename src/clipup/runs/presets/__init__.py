"""Settings known to work for a task, as TOML files beside this one. ``tasks`` in each lists the ids it is for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import cast

from clipup.decoding import decode_toml
from clipup.errors import FileFault, InvalidArgument
from clipup.files import package_names, package_text
from clipup.suggestions import did_you_mean


@dataclass(frozen=True)
class Preset:
    """A named set of settings and the tasks that it is for."""

    name: str
    tasks: tuple[str, ...]
    values: dict[str, object]


@cache
def presets() -> dict[str, Preset]:
    """Every preset by its name."""
    found: dict[str, Preset] = {}
    for file in package_names(__name__, ".toml"):
        values = decode_toml(package_text(__name__, file), file)
        tasks = values.pop("tasks", None)
        if not isinstance(tasks, list):
            raise FileFault(f"preset {file}: needs a list `tasks` of environment ids")
        name = file.removesuffix(".toml")
        found[name] = Preset(name, tuple(str(task) for task in cast("list[object]", tasks)), values)
    return found


def full_name(env: str) -> str:
    """The id `env`, with the module that a preset names for it where the module was left out."""
    tasks = (task for preset in presets().values() for task in preset.tasks)
    return next((task for task in tasks if task.partition(":")[2] == env), env)


def preset_for(env: str) -> Preset | None:
    """The preset of the task `env`, if there is one."""
    return next((preset for preset in presets().values() if env in preset.tasks), None)


def preset_named(name: str) -> Preset:
    """The preset of that name, or an error that suggests one."""
    known = presets()
    if name not in known:
        raise InvalidArgument(f"unknown preset {name!r}; there are: {', '.join(known)}{did_you_mean(name, known)}")
    return known[name]
