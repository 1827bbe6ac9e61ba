"""Groups of runs that differ only by seed. A group is named by the settings in which it differs within its task."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clipup.report.loading import LoadedRun
from clipup.runs.config import settings as known_settings

_KNOWN = known_settings()
# Settings that do not separate groups: where and how fast a run goes, when it ends, and its seed.
_LOOSE = frozenset(name for name, setting in _KNOWN.items() if setting.group in ("execution", "stopping")) | {"seed"}


@dataclass(frozen=True)
class RunGroup:
    """Runs of one configuration."""

    label: str
    task: str
    """The environment, empty where it is not known; runs of different tasks are never drawn into one chart."""
    settings: Mapping[str, str]
    members: tuple[int, ...]
    """Indices of its runs in the list of all runs."""


@dataclass(frozen=True)
class SettingRow:
    """One setting over all groups."""

    name: str
    help: str
    values: tuple[str, ...]
    differs: bool


def group_runs(runs: Sequence[LoadedRun]) -> list[RunGroup]:
    """Group the runs. Groups are ordered by the settings that differ, then by their first run."""
    members: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        members.setdefault(_key(run), []).append(place)
    flat = {key: _flat(runs[places[0]].settings) for key, places in members.items()}
    tasks = {key: values.get("env", "") for key, values in flat.items()}
    # Only what differs within a task tells its groups apart.
    names = {
        task: _distinguishing([values for key, values in flat.items() if values and tasks[key] == task])
        for task in tasks.values()
    }
    groups: list[RunGroup] = []

    def order(key: str) -> tuple[bool, str, list[tuple[int, float, str]]]:
        return not tasks[key], tasks[key], [_order(flat[key].get(name)) for name in names[tasks[key]]]

    for key in sorted(members, key=order):
        task, places = tasks[key], members[key]
        label = _label(flat[key], names[task], runs[places[0]])
        groups.append(RunGroup(label, task, _shared(runs, places), tuple(places)))
    return groups


def setting_rows(groups: Sequence[RunGroup]) -> list[SettingRow]:
    """Every setting with its value in each group, in the order of the configuration. Unknown settings come last."""
    names = [name for name in _KNOWN if name != "env_options"]
    present = {name for group in groups for name in group.settings}
    names = [name for name in names if name in present] + sorted(present - set(names))
    rows: list[SettingRow] = []
    with_settings = [group for group in groups if group.settings]
    for name in names:
        values = tuple(group.settings.get(name, "–") for group in groups)
        differs = len({group.settings.get(name, "–") for group in with_settings}) > 1 and name != "seed"
        unknown = "option of the environment" if "." in name else "unknown to this version of clipup"
        text = _KNOWN[name].help if name in _KNOWN else unknown
        rows.append(SettingRow(name, text, values, differs))
    return rows


def _key(run: LoadedRun) -> str:
    if not run.settings:
        return f"?{run.path}"
    return json.dumps({name: text for name, text in _flat(run.settings).items() if name not in _LOOSE}, sort_keys=True)


def _flat(values: Mapping[str, object]) -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= {f"env.{key}": _text(option) for key, option in value.items()}  # pyright: ignore
        else:
            flat[name] = _text(value)
    return flat


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "–" if value is None else str(value)


def _shared(runs: Sequence[LoadedRun], places: Sequence[int]) -> dict[str, str]:
    """The settings of a group. Where its runs differ, as in their seed, all values are listed."""
    every = [_flat(runs[place].settings) for place in places]
    shared: dict[str, str] = {}
    for name in every[0]:
        values = list(dict.fromkeys(values.get(name, "–") for values in every))
        shown = ", ".join(values[:8])
        shared[name] = shown + (f", … ({len(values)})" if len(values) > 8 else "")
    return shared


def _distinguishing(settings: Sequence[Mapping[str, str]]) -> list[str]:
    names = [name for name in dict.fromkeys(name for values in settings for name in values) if name not in _LOOSE]
    return [name for name in names if len({values.get(name) for values in settings}) > 1]


def _order(text: str | None) -> tuple[int, float, str]:
    """Sort key: numbers by size, then words, then missing values."""
    try:
        return (0, float(text or ""), "")
    except ValueError:
        return (1 if text else 2, 0.0, text or "")


def _label(values: Mapping[str, str], names: Sequence[str], run: LoadedRun) -> str:
    if not values:
        return run.path.name
    env = values.get("env", run.path.name)
    parts = [f"{name} {values.get(name, '–')}" for name in names]
    return ", ".join(parts) or env
