"""The directory of a search: it belongs to one search with its settings, and one process at a time works in it."""

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
def claimed(directory: Path, base: RunConfig) -> Generator[None]:
    """Create the directory of a search over `base`, or continue in it, and lock it until the block ends.

    A directory with anything else in it is refused before it is touched. Two searches in one directory would disturb
    each other's trials, so the second is refused too.
    """
    _check(directory, base)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = _lock(directory)
    except OSError as error:
        raise _cannot_make(directory, error) from error
    with lock:
        _check(directory, base)  # another process may have created a search in between
        # The marker makes it a search, so it comes first: if killed before, the directory is new; after, it continues.
        if not (directory / MARKER).is_file():
            text = format_config(base, comment="The settings that all trials of this search share.")
            write_atomically(directory / MARKER, text.encode("utf-8"))
        try:
            (directory / TRIALS).mkdir(exist_ok=True)
        except OSError as error:
            raise _cannot_make(directory, error) from error
        yield


def _check(directory: Path, base: RunConfig) -> None:
    """Refuse a directory with anything but this search, or the remains of one that was killed at its start."""
    marker = directory / MARKER
    if marker.is_file():
        before = make_config(read_toml(marker))
        if before != base:
            old, new = config_values(before), config_values(base)
            names = [name for name in new if old[name] != new[name]]
            raise StateMismatch(
                f"{directory} holds a search with other settings ({', '.join(names)}); "
                "use the same settings, or choose another --run"
            )
        return
    try:
        if {entry.name for entry in directory.iterdir()} <= {LOCK, MARKER + TEMPORARY_SUFFIX}:
            return
    except FileNotFoundError:
        return
    except OSError as error:
        raise _cannot_make(directory, error) from error
    raise RunExists(f"{directory} exists and is not a search that could continue; choose another --run")


def _lock(directory: Path) -> IO[bytes]:
    """Take the lock. It lasts until the file is closed, which the system does even after kill -9."""
    file = open_own(directory / LOCK, "a+b")
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
            f"{directory}: process {owner or 'unknown'} is searching here; wait, stop it, or choose another --run"
        ) from None
    except BaseException:
        file.close()
        raise
    return file


def _cannot_make(directory: Path, error: OSError) -> FileFault:
    return FileFault(f"{directory}: cannot be made: {error.strerror or error}")
