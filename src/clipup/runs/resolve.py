"""From what was given to one configuration: defaults < preset of the task < configuration file < flags."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from typing import cast

from clipup.engines import registry
from clipup.errors import InvalidArgument
from clipup.runs.config import RunConfig, check_name, check_value, kinds
from clipup.runs.presets import Preset, full_name, preset_for, preset_named
from clipup.runs.toml import read_toml
from clipup.runs.trust import check_cluster, check_import, check_init, check_policy_import


def resolve(
    given: Mapping[str, object],
    *,
    file: str | os.PathLike[str] | None = None,
    preset: str = "auto",
    imports: Collection[str] = (),
) -> tuple[RunConfig, Preset | None]:
    """Return the configuration, and the preset that took part in it.

    `given` are flags or keywords: settings by name. `file` is a TOML file of settings. A cluster that only the file
    names is refused, and so is a module, unless `imports` has it. `preset` is ``"auto"`` for the task's own,
    ``"none"``, or the name of one. Tables of environment options are merged key by key; everything else is replaced.
    """
    try:
        content = read_toml(file) if file is not None else {}
        from_file = {check_name(name): check_value(name, value) for name, value in content.items()}
    except InvalidArgument as error:
        raise InvalidArgument(f"{file}: {error}") from error
    explicit = {check_name(name): check_value(name, value) for name, value in given.items()}
    env = explicit.get("env", from_file.get("env"))
    if not isinstance(env, str) or not env:
        raise InvalidArgument("no environment given; name one, such as LunarLanderContinuous-v3 (see: clipup envs)")
    env = newest_version(full_name(env))
    chosen = _choose(preset, env)
    merged: dict[str, object] = {}
    for layer in (chosen.values if chosen else {}, from_file, explicit):
        for name, value in layer.items():
            if name == "env_options":
                earlier = cast("Mapping[str, object]", merged.get(name, {}))
                merged[name] = {**earlier, **cast("Mapping[str, object]", value)}
            else:
                merged[name] = value
    merged["env"] = env
    config = make_config(merged)
    if explicit.get("population_max") is not None and config.interactions is None:
        raise InvalidArgument("population_max bounds a population that grows; set interactions too, or neither")
    own_env = config.env if "env" not in explicit else ""
    own_wrapper = config.wrapper if "wrapper" not in explicit else None
    check_import(own_env, named=imports, source=str(file), wrapper=own_wrapper)
    if "policy" not in explicit:
        check_policy_import(config.policy, named=imports, source=str(file))
    check_cluster(config.cluster, named="cluster" in explicit, source=str(file))
    check_init(config.init, named="init" in explicit, source=str(file))
    return config, chosen


def newest_version(env: str) -> str:
    """The id `env`, with the newest version that an engine has where the version was left out."""
    if ":" in env or re.search(r"-v\d+\Z", env):
        return env
    known = {name for entry in registry.ENTRIES for name in entry.ids()}
    if env in known:
        return env
    versions = [int(name.rpartition("-v")[2]) for name in known if re.fullmatch(re.escape(env) + r"-v\d+", name)]
    return f"{env}-v{max(versions)}" if versions else env


def make_config(values: Mapping[str, object]) -> RunConfig:
    """A configuration from loose values, each checked under its name."""
    checked = {check_name(name): check_value(name, value) for name, value in values.items()}
    if "env" not in checked:
        raise InvalidArgument("env is missing: a configuration must name its environment")
    return RunConfig(**checked)  # pyright: ignore[reportArgumentType]  (check_value gives each its own type)


def parse_flag(name: str, text: str) -> object:
    """The value that `text` on a command line means for the field `name`."""
    kind = kinds()[check_name(name)]
    if text in ("none", "auto") or kind is str or name == "time_limit":
        return text
    if kind is bool and text in ("true", "false"):
        return text == "true"
    try:
        return int(text.replace("_", "")) if kind is int else float(text)
    except ValueError:
        pass
    if kind is int:
        try:  # people write 2e6 interactions
            number = float(text)
        except ValueError:
            number = 0.5
        if number.is_integer():
            return int(number)
    return text  # refused, with its name, by check_value


def _choose(preset: str, env: str) -> Preset | None:
    if preset == "none":
        return None
    return preset_for(env) if preset == "auto" else preset_named(preset)
