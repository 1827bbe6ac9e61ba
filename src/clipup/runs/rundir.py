"""The directory of a run: what lies where, whether one is a run, and that only one process works in it."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import cast

from clipup.engines import registry
from clipup.errors import FileFault, RunBusy, RunExists
from clipup.runs.config import RunConfig
from clipup.runs.files import TEMPORARY_SUFFIX, FileLock, is_own, write_atomically
from clipup.runs.records import is_sound
from clipup.runs.resolve import make_config
from clipup.runs.toml import format_config, read_toml
from clipup.runs.trust import import_flag

DEPTH_LIMIT = 6
"""How many directories deep runs are looked for."""


@dataclass(frozen=True)
class Status:
    """How a run stands, for people and for `clipup runs`. Nothing is computed from it."""

    state: str
    """running, finished, interrupted or failed; also killed and unknown when it is read."""
    reason: str = ""
    generation: int = 0
    total_interactions: int = 0
    score: float | None = None
    score_standard_error: float | None = None
    engine: str = ""
    arithmetic_changed_at: int = 0
    """The generation up to which another version of clipup computed with other roundings; 0 if none did."""


class RunDirectory:
    """Paths and the lock of one run. Opening it for work takes the lock; looking at it does not.

    Attributes
    ----------
    config_path
        The whole configuration. A directory is a run from the moment that it has one.
    records_path, clock_path
        What the search did and what the clock said, one JSON line per generation.
    checkpoints_path
        Directory of the newest checkpoints.
    policy_path, best_policy_path
        The newest policy (center and observation statistics), and that of the best evaluation so far.
    status_path, lock_path
        How the run stands, and the lock of the process that works on it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Name the directory; nothing is touched."""
        self.path = Path(path)
        self.config_path = self.path / "config.toml"
        self.records_path = self.path / "records.jsonl"
        self.clock_path = self.path / "clock.jsonl"
        self.checkpoints_path = self.path / "checkpoints"
        self.policy_path = self.path / "policy.safetensors"
        self.best_policy_path = self.path / "best-policy.safetensors"
        self.status_path = self.path / "status.json"
        self.lock_path = self.path / "lock"
        self._lock = FileLock(self.lock_path)

    def exists(self) -> bool:
        """Whether there is a run here that can be resumed."""
        return self.config_path.is_file()

    def create(self, config: RunConfig) -> None:
        """Make the directory of a new run and lock it. One that holds anything is refused and left as it is."""
        self.check_new()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._acquire()
            self.check_new()  # another process may have come, run and gone in between
        except (FileExistsError, NotADirectoryError):
            raise self._blocked() from None
        except OSError as error:
            raise FileFault.of(self.path, "written", error) from error
        # The configuration makes it a run, so it comes first: killed before, it is new; after, it can be resumed.
        self.write_config(config)
        self._make_checkpoints()

    def check_new(self) -> None:
        """Refuse a path that holds more than what a run leaves that was killed before it began."""
        leftovers = {self.lock_path.name, self.config_path.name + TEMPORARY_SUFFIX}
        try:
            if {entry.name for entry in self.path.iterdir()} <= leftovers:
                return
        except FileNotFoundError:
            return
        except NotADirectoryError:
            raise self._blocked() from None
        except OSError as error:
            raise FileFault.of(self.path, "written", error) from error
        if not self.exists():
            raise RunExists(f"{self.path} already holds files that are not a run's; choose another --run")
        resume = f"clipup resume {self.path}{self._import_flag()}"
        raise RunExists(f"{self.path} already exists; go on: {resume}, or choose another --run")

    def _import_flag(self) -> str:
        try:
            return import_flag(self.read_config().env)
        except (FileFault, OSError):
            return ""

    def _blocked(self) -> RunExists:
        """The error for a path of which some part is a file."""
        file = next((part for part in (self.path, *self.path.parents) if part.exists()), self.path)
        return RunExists(f"{file} already exists and is not a directory; choose another --run")

    def open(self) -> None:
        """Lock the directory of an existing run."""
        self._check()
        try:
            self._acquire()
        except OSError as error:
            raise FileFault.of(self.path, "written", error) from error
        self._make_checkpoints()

    def _check(self) -> None:
        if not self.path.is_dir():
            raise FileFault(f"{self.path}: no such run directory")
        if not self.exists():
            raise FileFault(f"{self.path}: not a run directory (it has no config.toml)")

    def read_config(self) -> RunConfig:
        """The configuration of the run."""
        self._check()
        values = read_toml(self.config_path)
        try:
            return make_config(values)
        except ValueError as error:
            raise FileFault(f"{self.config_path}: {error}") from error

    def write_config(self, config: RunConfig) -> None:
        """Write the configuration, as when a run begins or is given more generations."""
        write_atomically(self.config_path, format_config(config, comment=self._head(config)).encode("utf-8"))

    def _head(self, config: RunConfig) -> str:
        """The comment at the head of the configuration."""
        from importlib.metadata import PackageNotFoundError, version

        versions: list[str] = []
        for library in ("clipup", *registry.distributions(), "numpy"):
            with contextlib.suppress(PackageNotFoundError):
                versions.append(f"{library} {version(library)}")
        return (
            f"The whole configuration of this run. Repeat it: clipup train --config {self.config_path}"
            f"{import_flag(config.env)} --run NEW\n"
            f"Made with {', '.join(versions)}."
        )

    def write_status(self, status: Status) -> None:
        """Replace the status."""
        write_atomically(self.status_path, json.dumps(asdict(status)).encode("ascii") + b"\n")

    def read_status(self, problems: list[str] | None = None) -> Status:
        """How the run stands, as far as it can be read; what cannot is added to `problems`, in words.

        A run that says it is running but that no process holds was killed.
        """
        status, wrong = _decode_status(self.status_path)
        if not is_own(self.lock_path):
            wrong.append("lock: cannot be read: a link, or not a regular file")
        if problems is not None:
            problems += wrong
        if self.is_busy():
            return Status("running", "", status.generation, status.total_interactions, status.score)
        return status if status.state != "running" else Status("killed", "stopped without a word", status.generation)

    def is_busy(self) -> bool:
        """Whether a process works on the run now."""
        return self._lock.is_held()

    def check_free(self) -> None:
        """Refuse a run that a process works on now."""
        if self.is_busy():
            raise self._busy()

    def close(self) -> None:
        """Give the lock back."""
        self._lock.release()

    def _make_checkpoints(self) -> None:
        try:
            self.checkpoints_path.mkdir(exist_ok=True)
        except OSError as error:
            raise FileFault.of(self.checkpoints_path, "written", error) from error

    def _acquire(self) -> None:
        if not self._lock.acquire():
            raise self._busy()

    def _busy(self) -> RunBusy:
        return RunBusy(f"{self.path}: process {self._lock.owner()} is working on this run; wait or stop it")


def _decode_status(path: Path) -> tuple[Status, list[str]]:
    """The status in a file without what is not of its type, and what was left out."""
    if not is_own(path):
        return Status("unknown"), [f"{path.name}: cannot be read: a link, or not a regular file"]
    try:
        values: object = json.loads(path.read_bytes()[:65536])
    except FileNotFoundError:
        return Status("unknown"), []
    except (OSError, ValueError, RecursionError):
        values = None
    if not isinstance(values, dict) or "state" not in values:
        return Status("unknown"), [f"{path.name}: cannot be read"]
    found = {entry.name: cast("dict[str, object]", values).get(entry.name, entry.default) for entry in fields(Status)}
    default = asdict(Status("unknown"))
    wrong = [name for name, value in found.items() if not _is_like(value, default[name])]
    sound = {name: default[name] if name in wrong else value for name, value in found.items()}
    problems = [f"{path.name}: {', '.join(wrong)} cannot be read"] if wrong else []
    return Status(**cast("dict[str, str]", sound)), problems  # pyright: ignore[reportArgumentType]


def _is_like(value: object, default: object) -> bool:
    if default is None:
        return value is None or is_sound(value)
    return isinstance(value, str) if isinstance(default, str) else type(value) is int


def is_run(path: Path) -> bool:
    """Whether a directory looks like that of a run, even a broken one."""
    return any((path / name).is_file() for name in ("config.toml", "records.jsonl"))


def runs_below(path: Path, depth: int = DEPTH_LIMIT) -> list[Path]:
    """The run directories at `path` and below it, by name. Links and hidden directories are not followed."""
    try:
        own = [path] if is_run(path) else []
        # A configuration alone is that of a run which has just begun, or a stray file above the runs themselves.
        if depth == 0 or (path / "records.jsonl").is_file():
            return own
        inner = [entry for entry in sorted(path.iterdir()) if entry.is_dir() and not entry.is_symlink()]
    except OSError:
        return []
    below = [run for entry in inner if not entry.name.startswith(".") for run in runs_below(entry, depth - 1)]
    return below or own


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """The run directories among `paths` and below them; a path that holds none is kept, to be shown as wrong."""
    found = [run for path in paths for run in runs_below(path) or [path]]
    return list(dict.fromkeys(path.absolute() for path in found))


def directory_name(env: str) -> str:
    """The id of an environment as the name of a directory.

    >>> directory_name("my.module:Odd/Env-v0")
    'Odd-Env-v0'
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", env.rpartition(":")[2]).strip("-.") or "run"


def next_free(parent: Path, env: str) -> Path:
    """A path for a new run of `env`: its name and the first number not taken."""
    taken = set[str]()
    with contextlib.suppress(OSError):
        taken = {entry.name for entry in parent.iterdir()}
    number = 1
    while f"{directory_name(env)}-{number}" in taken:
        number += 1
    return parent / f"{directory_name(env)}-{number}"
