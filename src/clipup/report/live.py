"""Runs in progress, read again when their files change, and told to the page piece by piece."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clipup.report.groups import group_runs, setting_rows
from clipup.report.model import PageData, limit_notes, page_title, run_data, short_names
from clipup.report.runs import RUN_LIMIT, LoadedRun, find_runs, is_own, load_run
from clipup.runs.rundir import RunDirectory

_WATCHED = ("config.toml", "records.jsonl", "clock.jsonl", "status.json")
Signature = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Known:
    """A run as last read."""

    signature: Signature
    busy: bool
    run: LoadedRun
    epoch: int
    """Grows when lines that were told have changed or gone, as when a run is resumed from a checkpoint."""


class LiveRuns:
    """What `clipup watch` knows. Not for several threads at once: the server holds a lock."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Watch the runs in and below these directories."""
        self._folders = list(folders)
        self._known: dict[str, Known] = {}
        self._left_out = 0

    def refresh(self) -> None:
        """Look at the directories again; read only what changed."""
        fresh: dict[str, Known] = {}
        found = find_runs(self._folders)
        self._left_out = max(0, len(found) - RUN_LIMIT)
        for path in found[:RUN_LIMIT]:
            if path in (folder.absolute() for folder in self._folders) and not _signature(path):
                continue  # the watched directory itself, while it holds no run yet
            key = run_key(path)
            fresh[key] = self._read(path, self._known.get(key))
        self._known = fresh

    def answer(self, have: Mapping[str, tuple[int, int]], token: str = "") -> PageData:
        """What is new for a page that has, for each run, so many rows of an epoch, and all else as of `token`."""
        keys = list(self._known)
        runs = [self._known[key].run for key in keys]
        epochs = [self._known[key].epoch for key in keys]
        stands = {key: (epoch, len(run.records)) for key, epoch, run in zip(keys, epochs, runs, strict=True)}
        states = hashlib.sha256(
            repr([(run.status, run.problems, run.config) for run in runs] + [self._left_out]).encode("utf-8", "replace")
        ).hexdigest()
        if dict(have) == stands and states == token:
            return {"changed": False}
        groups = group_runs(runs)
        group_of = {place: number for number, group in enumerate(groups) for place in group.members}
        names = short_names(runs)
        told: list[PageData] = []
        for place, (key, run) in enumerate(zip(keys, runs, strict=True)):
            epoch, rows = have.get(key, (-1, 0))
            first = rows if epoch == epochs[place] and rows <= len(run.records) else 0
            told.append(
                {
                    **run_data(run, names[place], group_of[place], first=first),
                    "key": key,
                    "epoch": epochs[place],
                    "first": first,
                }
            )
        return {
            "changed": True,
            "token": states,
            "title": page_title(runs) if runs else "Waiting for runs",
            "notes": limit_notes(self._left_out) if runs else ["No run here yet. It appears as soon as one starts."],
            "groups": [{"label": group.label, "runs": list(group.members)} for group in groups],
            "settings": [
                {"name": row.name, "help": row.help, "values": list(row.values), "differs": row.differs}
                for row in setting_rows(groups)
            ],
            "runs": told,
        }

    def _read(self, path: Path, before: Known | None) -> Known:
        signature = _signature(path)
        directory = RunDirectory(path)
        busy = is_own(directory.lock_path) and directory.is_busy()
        if before is not None and before.signature == signature and before.busy == busy:
            return before
        run = load_run(path)
        epoch = 0
        if before is not None:
            old = before.run.records
            grown = len(run.records) >= len(old) and (not old or run.records[len(old) - 1] == old[-1])
            epoch = before.epoch if grown else before.epoch + 1
        return Known(signature, busy, run, epoch)


def run_key(path: Path) -> str:
    """A short name for a path that says nothing about the file system."""
    return hashlib.sha256(str(path.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:12]


def parse_have(text: str) -> dict[str, tuple[int, int]]:
    """What a page says that it has: ``key.epoch.rows`` with commas; anything else counts as nothing.

    >>> parse_have("ab12.0.17,nonsense,cd.x.1")
    {'ab12': (0, 17)}
    """
    found: dict[str, tuple[int, int]] = {}
    for word in text.split(","):
        parts = word.split(".")
        if len(parts) == 3 and all(part.isdecimal() and len(part) < 10 for part in parts[1:]):
            found[parts[0]] = (int(parts[1]), int(parts[2]))
    return found


def _signature(path: Path) -> Signature:
    found: list[tuple[int, int]] = []
    for name in _WATCHED:
        try:
            state = (path / name).lstat()
        except OSError:
            continue
        found.append((state.st_size, state.st_mtime_ns))
    return tuple(found)
