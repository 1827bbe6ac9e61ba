"""The directory of a run: what lies where, and that only one process works in it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, cast

from clipup.errors import FileFault, RunBusy, RunExists
from clipup.runs.config import RunConfig
from clipup.runs.files import TEMPORARY_SUFFIX, cannot_write, open_own, write_atomically
from clipup.runs.resolve import make_config
from clipup.runs.toml import format_config, read_toml

# `is_busy` of another process holds the lock for an instant; that must not look like a second trainer.
_LOCK_ATTEMPTS = 10

STATES = ("running", "finished", "interrupted", "failed")


@dataclass(frozen=True)
class Status:
    """How a run stands, for people and for `clipup runs`. Nothing is computed from it."""

    state: str
    reason: str = ""
    generation: int = 0
    total_interactions: int = 0
    score: float | None = None
    score_standard_error: float | None = None
    engine: str = ""


class RunDirectory:
    """Paths and the lock of one run. Opening for work takes the lock; looking does not."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Name the directory; nothing is touched."""
        self.path = Path(path)
        self._lock: IO[bytes] | None = None

    @property
    def config_path(self) -> Path:
        """The resolved configuration."""
        return self.path / "config.toml"

    @property
    def records_path(self) -> Path:
        """One JSON line per generation."""
        return self.path / "records.jsonl"

    @property
    def clock_path(self) -> Path:
        """What the clock said, one JSON line per generation."""
        return self.path / "clock.jsonl"

    @property
    def checkpoints_path(self) -> Path:
        """Folder of the newest checkpoints."""
        return self.path / "checkpoints"

    @property
    def policy_path(self) -> Path:
        """The newest policy: center and observation statistics."""
        return self.path / "policy.safetensors"

    @property
    def best_policy_path(self) -> Path:
        """The policy of the best evaluation so far."""
        return self.path / "best-policy.safetensors"

    @property
    def status_path(self) -> Path:
        """How the run stands."""
        return self.path / "status.json"

    @property
    def lock_path(self) -> Path:
        """Locked by the process that works on the run."""
        return self.path / "lock"

    def create(self, config: RunConfig, comment: str = "") -> None:
        """Make the directory of a new run and lock it. One that holds anything is refused and left as it is."""
        self.check_new()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._acquire()
            self.check_new()  # another process may have come, run and gone in between
        except (FileExistsError, NotADirectoryError):
            raise self._blocked() from None
        except OSError as error:
            raise cannot_write(self.path, error) from error
        # The configuration makes it a run, so it comes first: killed before, it is new; after, it can be resumed.
        write_atomically(self.config_path, format_config(config, comment=comment).encode("utf-8"))
        self._make_checkpoints()

    def check_new(self) -> None:
        """Refuse a path that holds anything but what a run leaves that was killed before it began."""
        leftovers = {self.lock_path.name, self.config_path.name + TEMPORARY_SUFFIX}
        try:
            if {entry.name for entry in self.path.iterdir()} <= leftovers:
                return
        except FileNotFoundError:
            return
        except NotADirectoryError:
            raise self._blocked() from None
        except OSError as error:
            raise cannot_write(self.path, error) from error
        if not self.config_path.is_file():
            raise RunExists(f"{self.path} already holds files that are not a run's; choose another --run")
        raise RunExists(
            f"{self.path} already exists; go on with it: clipup resume {self.path}, or choose another --run"
        )

    def _blocked(self) -> RunExists:
        """The error for a path of which some part is a file."""
        file = next((part for part in (self.path, *self.path.parents) if part.exists()), self.path)
        return RunExists(f"{file} already exists and is not a directory; choose another --run")

    def open(self) -> None:
        """Lock the directory of an existing run."""
        self.check()
        try:
            self._acquire()
        except OSError as error:
            raise cannot_write(self.path, error) from error
        self._make_checkpoints()

    def check(self) -> None:
        """Refuse a path that is not a run."""
        if not self.path.is_dir():
            raise FileFault(f"{self.path}: no such run directory")
        if not self.config_path.is_file():
            raise FileFault(f"{self.path}: not a run directory (it has no config.toml)")

    def read_config(self) -> RunConfig:
        """The configuration of the run."""
        self.check()
        values = read_toml(self.config_path)
        try:
            return make_config(values)
        except ValueError as error:
            raise FileFault(f"{self.config_path}: {error}") from error

    def write_config(self, config: RunConfig, comment: str = "") -> None:
        """Replace the configuration, as when a run is given more generations."""
        write_atomically(self.config_path, format_config(config, comment=comment).encode("utf-8"))

    def write_status(self, status: Status) -> None:
        """Replace the status."""
        write_atomically(self.status_path, json.dumps(asdict(status)).encode("ascii") + b"\n")

    def read_status(self) -> Status:
        """The status; a run that says it is running but is locked by nobody was killed."""
        try:
            values = json.loads(self.status_path.read_bytes()[:65536])
            known = {name: values[name] for name in Status.__dataclass_fields__ if name in values}
            status = Status(**cast("dict[str, str]", known))  # pyright: ignore[reportArgumentType]
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            status = Status("unknown")
        if self.is_busy():
            return Status("running", "", status.generation, status.total_interactions, status.score)
        return status if status.state != "running" else Status("killed", "stopped without a word", status.generation)

    def is_busy(self) -> bool:
        """Whether a process works on the run now."""
        try:
            with self.lock_path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def check_free(self) -> None:
        """Refuse a run that a process works on now."""
        if self.is_busy():
            raise self._busy()

    def close(self) -> None:
        """Give the lock back."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _make_checkpoints(self) -> None:
        try:
            self.checkpoints_path.mkdir(exist_ok=True)
        except OSError as error:
            raise cannot_write(self.checkpoints_path, error) from error

    def _busy(self) -> RunBusy:
        try:
            owner = self.lock_path.read_text("ascii", "replace")[:32].strip()
        except OSError:
            owner = ""
        return RunBusy(f"{self.path}: process {owner or 'unknown'} is working on this run; wait or stop it")

    def _acquire(self) -> None:
        # The lock belongs to the open file, so the system drops it however the process ends, kill -9 included.
        file = open_own(self.lock_path, "a+b")
        for attempt in range(_LOCK_ATTEMPTS):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if attempt + 1 < _LOCK_ATTEMPTS:
                    time.sleep(0.05)
                    continue
                file.close()
                raise self._busy() from None
            except OSError:
                file.close()
                raise
        file.truncate(0)
        file.write(f"{os.getpid()}\n".encode("ascii"))
        file.flush()
        self._lock = file


def next_free(parent: Path, env: str) -> Path:
    """A path for a new run of `env`: its name and the first number not taken."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", env.rpartition(":")[2]).strip("-.") or "run"
    taken = set[str]()
    with contextlib.suppress(OSError):
        taken = {entry.name for entry in parent.iterdir()}
    number = 1
    while f"{name}-{number}" in taken:
        number += 1
    return parent / f"{name}-{number}"
