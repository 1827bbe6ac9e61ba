"""Writing files so that a reader, or a crash, never meets half of one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import IO, cast

from clipup.errors import FileFault

TEMPORARY_SUFFIX = ".partial"


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by `data`: whole, synced to the disk and under its name, or not at all.

    The data goes to a temporary name beside it, is synced, renamed over `path`, and the directory is synced so that
    the new name survives a power cut too. On failure the temporary file is removed and FileFault says why.
    """
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    try:
        with open_own(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise cannot_write(path, error) from error


def open_own(path: Path, mode: str, *, buffering: int = -1) -> IO[bytes]:
    """Open a file for writing that is where it says: a link, in a directory from elsewhere, could lead to any file."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)

    return cast("IO[bytes]", open(path, mode, buffering=buffering, opener=opener))


def sync_directory(directory: Path) -> None:
    """Make the names in `directory` survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cannot_write(path: Path, error: OSError) -> FileFault:
    """The one-line error for a file that could not be written."""
    return FileFault(f"{path}: cannot be written: {error.strerror or error}")
