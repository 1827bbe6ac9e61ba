"""Writing files so that neither a reader nor a crash ever meets half of one, and a lock for one process at a time."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from pathlib import Path
from typing import IO, cast

from clipup.errors import FileFault

if sys.platform == "win32":
    import msvcrt

    _FAR_BYTE = 2**20  # beyond what the file holds: Windows lets no one read a locked byte

    def _lock(file: IO[bytes], *, shared: bool) -> None:
        """Lock an open file, or raise `OSError`."""
        file.seek(_FAR_BYTE)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: IO[bytes], *, shared: bool) -> None:
        """Lock an open file, or raise `BlockingIOError`."""
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


BUSY = (BlockingIOError, PermissionError) if sys.platform == "win32" else (BlockingIOError,)
"""What is raised where another process holds a lock."""
TEMPORARY_SUFFIX = ".partial"

# A process that looks whether a lock is held holds it for an instant itself. That must not look like a second owner.
_LOCK_ATTEMPTS = 10


_ONLY_THIS_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


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
        raise FileFault.of(path, "written", error) from error


def open_own(path: Path, mode: str, *, buffering: int = -1) -> IO[bytes]:
    """Open a file for writing, but never through a link: in a directory from elsewhere, a link could lead anywhere."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | _ONLY_THIS_FILE, 0o666)

    return cast("IO[bytes]", open(path, mode, buffering=buffering, opener=opener))


def is_own(path: Path) -> bool:
    """Whether `path` may be read: a regular file, or nothing. A link could lead to any file; a pipe would block."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return True


def sync_directory(directory: Path) -> None:
    """Make the names in `directory` survive a power cut."""
    if sys.platform == "win32":
        return  # where a directory cannot be opened
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FileLock:
    """A lock that one process at a time can hold; its file names that process.

    The lock belongs to the open file, so the system drops it however the process ends, kill -9 included.
    """

    def __init__(self, path: Path) -> None:
        """Name the file; nothing is touched."""
        self.path = path
        self._file: IO[bytes] | None = None

    def acquire(self) -> bool:
        """Take the lock; return False where another process holds it."""
        file = open_own(self.path, "a+b")
        try:
            if not _take(file):
                file.close()
                return False
            file.truncate(0)
            file.write(f"{os.getpid()}\n".encode("ascii"))
            file.flush()
        except BaseException:
            file.close()
            raise
        self._file = file
        return True

    def release(self) -> None:
        """Give the lock back, if it is held."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def is_held(self) -> bool:
        """Whether a process holds the lock now."""
        if not is_own(self.path):
            return False
        try:
            with self.path.open("rb") as file:
                _lock(file, shared=True)
        except BUSY:
            return True
        except OSError:
            return False
        return False

    def owner(self) -> str:
        """The number of the process that took the lock last, or ``"unknown"``."""
        try:
            return self.path.read_text("ascii", "replace")[:32].strip() or "unknown"
        except OSError:
            return "unknown"


def _take(file: IO[bytes]) -> bool:
    for attempt in range(_LOCK_ATTEMPTS):
        if attempt:
            time.sleep(0.05)
        try:
            _lock(file, shared=False)
        except BUSY:
            continue
        return True
    return False
