"""The directory of a search: that it is one, of these settings, and that only one process works in it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from clipup.errors import FileFault, RunBusy, RunExists, StateMismatch
from clipup.runs.config import RunConfig, config_values
from clipup.runs.files import TEMPORARY_SUFFIX, open_own, write_atomically
from clipup.runs.resolve import make_config
from clipup.runs.toml import format_config, read_toml

MARKER, LOCK, TRIALS = "config.base.toml", "lock", "trials"


@contextmanager
def claimed(folder: Path, base: RunConfig) -> Generator[None]:
    """Make the directory of a search over `base`, or go on in it; no other process may until the block ends.

    A directory of anything else is refused before it is touched. Two searches in one directory would end each other's
    trials, so the second is refused too.
    """
    _check(folder, base)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _lock(folder)
    except OSError as error:
        raise _cannot_make(folder, error) from error
    with lock:
        _check(folder, base)  # another process may have begun a search, and ended, in between
        # The marker makes it a search, so it comes first: killed before, the directory is new; after, it can go on.
        if not (folder / MARKER).is_file():
            text = format_config(base, comment="What all trials of this search share.")
            write_atomically(folder / MARKER, text.encode("utf-8"))
        try:
            (folder / TRIALS).mkdir(exist_ok=True)
        except OSError as error:
            raise _cannot_make(folder, error) from error
        yield


def _check(folder: Path, base: RunConfig) -> None:
    """Refuse a directory that holds anything but this search, or what one leaves that was killed at once."""
    marker = folder / MARKER
    if marker.is_file():
        before = make_config(read_toml(marker))
        if before != base:
            old, new = config_values(before), config_values(base)
            names = [name for name in new if old[name] != new[name]]
            raise StateMismatch(
                f"{folder} holds a search with other settings ({', '.join(names)}); "
                "go on with those, or choose another --run"
            )
        return
    try:
        if {entry.name for entry in folder.iterdir()} <= {LOCK, MARKER + TEMPORARY_SUFFIX}:
            return
    except FileNotFoundError:
        return
    except OSError as error:
        raise _cannot_make(folder, error) from error
    raise RunExists(f"{folder} exists and is not a search that could go on; choose another --run")


def _lock(folder: Path) -> IO[bytes]:
    """The lock. It lasts until the file is closed, which the system does however the process ends, kill -9 included."""
    file = open_own(folder / LOCK, "a+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.truncate(0)
        file.write(f"{os.getpid()}\n".encode("ascii"))
        file.flush()
    except BlockingIOError:
        file.seek(0)
        owner = file.read(32).decode("ascii", "replace").strip()
        file.close()
        raise RunBusy(
            f"{folder}: process {owner or 'unknown'} is searching here; wait, stop it, or choose another --run"
        ) from None
    except BaseException:
        file.close()
        raise
    return file


def _cannot_make(folder: Path, error: OSError) -> FileFault:
    return FileFault(f"{folder}: cannot be made: {error.strerror or error}")
