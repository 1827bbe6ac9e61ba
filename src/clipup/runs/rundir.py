"""The directory of a run: what lies where, whether one is a run, and that only one process works in it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Generator, Iterable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import cast

from clipup.decoding import CONFIG, STATUS, decode_object, decode_toml
from clipup.engines import registry
from clipup.errors import FileFault, RunBusy, RunExists
from clipup.export.policy import BEST_POLICY, POLICY
from clipup.files import Directory, is_file_below, is_unfinished, make_directories, read_below
from clipup.runs.checkpoint import list_checkpoints, read_checkpoint
from clipup.runs.config import RunConfig
from clipup.runs.lock import DirectoryLock
from clipup.runs.records import is_sound
from clipup.runs.resolve import make_config
from clipup.runs.toml import format_config
from clipup.runs.trust import import_flag, start_flag

DEPTH_LIMIT = 6
"""How many directories deep runs are looked for."""
WALK_LIMIT = 100_000
"""How many names are looked at in all to find runs."""
CHECKPOINTS = "checkpoints"
SEEDS = "seeds.toml"
"""In a directory of several runs that differ only by seed (`clipup.runs.seeds`)."""


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
    actions: str = ""
    """The kind of the actions, such as discrete or box."""
    warning: str = ""
    """What is odd about the environment, and about workers that round differently."""
    arithmetic_changed_at: int = 0
    """The generation up to which another machine or version of clipup computed with other roundings; 0 if none did."""


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
        self.checkpoints_path = self.path / CHECKPOINTS
        self.policy_path = self.path / POLICY
        self.best_policy_path = self.path / BEST_POLICY
        self.status_path = self.path / "status.json"
        self.lock_path = self.path / DirectoryLock.NAME
        self._lock = DirectoryLock(self.path)
        self._files: Directory | None = None
        self._checkpoints: Directory | None = None

    def exists(self) -> bool:
        """Whether there is a run here that can be resumed."""
        return is_file_below(self.path, self.config_path.name)

    @property
    def files(self) -> Directory:
        """The open directory, once the run is created or opened."""
        if self._files is None:
            raise FileFault(f"{self.path}: the run is not open")
        return self._files

    @property
    def checkpoints(self) -> Directory:
        """The open directory of the checkpoints, once the run is created or opened."""
        if self._checkpoints is None:
            raise FileFault(f"{self.path}: the run is not open")
        return self._checkpoints

    def newest_generation(self) -> int:
        """The generation of the newest checkpoint by its name; 0 if there is none."""
        with Directory(self.path) as files:
            if files.state(CHECKPOINTS) is None:
                return 0
            with files.child(CHECKPOINTS) as checkpoints:
                return max((generation for generation, _ in list_checkpoints(checkpoints)), default=0)

    def kept_engines(self) -> Generator[object]:
        """The engine of every checkpoint that can be read, newest first; None where it names none."""
        with Directory(self.path) as files:
            if files.state(CHECKPOINTS) is None:
                return
            with files.child(CHECKPOINTS) as checkpoints:
                for _, name in list_checkpoints(checkpoints):
                    with contextlib.suppress(FileFault):  # `newest_checkpoint` says so, or raises
                        yield read_checkpoint(checkpoints, name).counters.get("engine")

    def check_lock(self) -> None:
        """Raise FileFault if the lock was taken away while the run is open."""
        self._lock.check()

    def create(self, config: RunConfig) -> None:
        """Make the directory of a new run and lock it. One that holds anything is refused and left as it is."""
        self.check_new()
        make_directories(self.path)
        self._acquire()
        self.check_new()  # another process may have come, run and gone in between
        # The configuration makes it a run, so it comes first: killed before, it is new; after, it can be resumed.
        self.write_config(config)
        self._checkpoints = self.files.child(CHECKPOINTS, create=True)

    def check_new(self) -> None:
        """Refuse a path that holds more than what a run leaves that was killed before it began."""
        if not is_taken(self.path):
            return
        with Directory(self.path) as directory:
            names = directory.names()
        if all(name == self.lock_path.name or is_unfinished(name, self.config_path.name) for name in names):
            return
        if not self.exists():
            raise RunExists(f"{self.path} already holds files that are not a run's; choose another --run")
        resume = f"clipup resume {self.path}{self._import_flag()}"
        raise RunExists(f"{self.path} already exists; go on: {resume}, or choose another --run")

    def _import_flag(self) -> str:
        try:
            return import_flag(self.read_config())
        except (FileFault, OSError):
            return ""

    def open(self) -> None:
        """Lock the directory of an existing run."""
        self._check()
        self._acquire()
        self._checkpoints = self.files.child(CHECKPOINTS, create=True)

    def _check(self) -> None:
        if not self.path.is_dir():
            raise FileFault(f"{self.path}: no such run directory")
        if not self.exists():
            if is_file_below(self.path, SEEDS):
                raise FileFault(f"{self.path} holds runs of several seeds; name one of them: {self.path}/seed-N")
            raise FileFault(f"{self.path}: not a run directory (it has no config.toml)")

    def read_config(self) -> RunConfig:
        """The configuration of the run."""
        self._check()
        values = self.read_settings()
        try:
            return make_config(values)
        except ValueError as error:
            raise FileFault(f"{self.config_path}: {error}") from error

    def read_settings(self) -> dict[str, object]:
        """The configuration as the file has it, even if this version cannot use it."""
        data = read_below(self.path, self.config_path.name, CONFIG.size, "a configuration")
        return decode_toml(data, str(self.config_path))

    def write_config(self, config: RunConfig) -> None:
        """Write the configuration, as when a run begins or is given more generations."""
        self.files.replace(self.config_path.name, format_config(config, comment=self._head(config)).encode("utf-8"))

    def _head(self, config: RunConfig) -> str:
        """The comment at the head of the configuration."""
        from importlib.metadata import PackageNotFoundError, version

        versions: list[str] = []
        for library in ("clipup", *registry.distributions(), "numpy"):
            with contextlib.suppress(PackageNotFoundError):
                versions.append(f"{library} {version(library)}")
        return (
            f"The whole configuration of this run. Repeat it: clipup train --config {self.config_path}"
            f"{import_flag(config)}{start_flag(config)} --run NEW\n"
            f"Made with {', '.join(versions)}."
        )

    def write_status(self, status: Status) -> None:
        """Replace the status."""
        self.files.replace(self.status_path.name, json.dumps(asdict(status)).encode("ascii") + b"\n")

    def read_status(self, problems: list[str] | None = None) -> Status:
        """How the run stands, as far as it can be read; what cannot is added to `problems`, in words.

        A run that says it is running but that no process holds was killed.
        """
        status, wrong = _decode_status(self.status_path)
        if not _is_own(self.lock_path):
            wrong.append("lock: cannot be read: a link, or not a regular file")
        if problems is not None:
            problems += wrong
        if self.is_busy():
            return replace(status, state="running", reason="", score_standard_error=None)
        if status.state != "running":
            return status
        return replace(status, state="killed", reason="stopped without a word", score=None, score_standard_error=None)

    def is_busy(self) -> bool:
        """Whether a process works on the run now."""
        return self._lock.is_held()

    def check_free(self) -> None:
        """Refuse a run that a process works on now."""
        if self.is_busy():
            raise self._busy()

    def close(self) -> None:
        """Give the lock back."""
        for directory in (self._checkpoints, self._files):
            if directory is not None:
                directory.close()
        self._checkpoints = self._files = None
        self._lock.release()

    def _acquire(self) -> None:
        try:
            if not self._lock.acquire():
                raise self._busy()
        except OSError as error:
            raise FileFault.of(self.lock_path, "written", error) from error
        self._files = Directory(self.path)

    def _busy(self) -> RunBusy:
        return RunBusy(f"{self.path}: process {self._lock.owner()} is working on this run; wait or stop it")


def _decode_status(path: Path) -> tuple[Status, list[str]]:
    """The status in a file without what is not of its type, and what was left out."""
    try:
        if not _is_own(path):
            return Status("unknown"), [f"{path.name}: cannot be read: a link, or not a regular file"]
        values = decode_object(read_below(path.parent, path.name, STATUS.size, "a status"), path.name, STATUS)
    except FileFault as fault:
        if isinstance(fault.__cause__, FileNotFoundError):
            return Status("unknown"), []
        values = {}
    if "state" not in values:
        return Status("unknown"), [f"{path.name}: cannot be read"]
    found = {entry.name: values.get(entry.name, entry.default) for entry in fields(Status)}
    default = asdict(Status("unknown"))
    wrong = [name for name, value in found.items() if not _is_like(value, default[name])]
    sound = {name: default[name] if name in wrong else value for name, value in found.items()}
    problems = [f"{path.name}: {', '.join(wrong)} cannot be read"] if wrong else []
    return Status(**cast("dict[str, str]", sound)), problems  # pyright: ignore[reportArgumentType]


def _is_like(value: object, default: object) -> bool:
    if default is None:
        return value is None or is_sound(value)
    return isinstance(value, str) if isinstance(default, str) else type(value) is int


def _is_own(path: Path) -> bool:
    """Whether `path` may be read: a regular file, or nothing."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return True


def is_taken(path: Path) -> bool:
    """Whether there is a directory at `path`. Refuse one where it could not be made, because a file is in its way."""
    nearest = next((part for part in (path, *path.parents) if os.path.lexists(part)), path)
    if not nearest.is_dir():
        raise RunExists(f"{nearest} already exists and is not a directory; choose another --run")
    return nearest == path


def is_run(path: Path) -> bool:
    """Whether a directory looks like that of a run, even a broken one."""
    # Also if they are links or pipes: such a run is shown as damaged.
    return any(os.path.lexists(path / name) and not _is_directory(path / name) for name in _MARKS)


def runs_below(path: Path) -> list[Path]:
    """The run directories at `path` and below it, by name. Links and hidden directories are not followed."""
    return _runs_below(path, DEPTH_LIMIT, _Budget(WALK_LIMIT))


_MARKS = ("config.toml", "records.jsonl")


@dataclass
class _Budget:
    left: int


def _runs_below(path: Path, depth: int, budget: _Budget) -> list[Path]:
    own = [path] if is_run(path) else []
    # A configuration alone is that of a run which has just begun, or a stray file above the runs themselves.
    if depth == 0 or budget.left <= 0 or (os.path.lexists(path / _MARKS[1]) and own):
        return own
    try:
        with Directory(path) as directory:
            names = directory.names()
    except FileFault:
        return own
    budget.left -= len(names)
    inner = [path / name for name in names if not name.startswith(".") and _is_directory(path / name)]
    below = [run for entry in inner for run in _runs_below(entry, depth - 1, budget)]
    return below or own


def _is_directory(path: Path) -> bool:
    """Whether it is a directory, and not a link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


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
    with contextlib.suppress(FileFault), Directory(parent) as directory:
        taken = set(directory.names())
    number = 1
    while f"{directory_name(env)}-{number}" in taken:
        number += 1
    return parent / f"{directory_name(env)}-{number}"
