"""One process at a time works in a directory."""

from __future__ import annotations

import errno
import os
import re
import sys
import time
from pathlib import Path
from typing import IO, cast

from clipup.errors import FileFault
from clipup.files import Directory, read_below

if sys.platform == "win32":
    import msvcrt

    _FAR_BYTE = 2**20  # beyond what the file holds: Windows lets no one read a locked byte

    def _flock(descriptor: int, *, shared: bool) -> None:
        """Lock an open file, or raise OSError."""
        os.lseek(descriptor, _FAR_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _flock(descriptor: int, *, shared: bool) -> None:
        """Lock an open file or directory, or raise BlockingIOError."""
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


_BUSY = (BlockingIOError, PermissionError) if sys.platform == "win32" else (BlockingIOError,)
"""What is raised where another process holds a lock."""
# Windows can neither open nor lock a directory.
_DIRECTORIES = os.open in os.supports_dir_fd
# A process that looks whether a lock is held holds it for an instant itself. That must not look like a second owner.
_ATTEMPTS = 10


class DirectoryLock:
    """A lock on a directory, for one process at a time; the file `lock` in it names that process.

    Two things are locked: the directory itself, so that removing the file lets no second process in; and the file, for
    file systems that cannot lock a directory (NFS) and for older versions of clipup. Locks belong to the open files, so
    the system drops them however the process ends, kill -9 included.
    """

    NAME = "lock"

    def __init__(self, path: Path) -> None:
        """Name the directory; nothing is touched."""
        self.path = path
        self._held: list[IO[bytes] | Directory] = []
        self._whole = False

    def acquire(self) -> bool:
        """Take the lock; return False if another process holds it. Raises OSError."""
        directory = Directory(self.path)
        self._held.append(directory)
        try:
            taken = _take(directory.descriptor) if _DIRECTORIES else None
            self._whole = taken is True
            if taken is not False:
                file = directory.append(self.NAME)
                self._held.append(file)
                locked = _take(file.fileno())
                if locked is None and taken is None:
                    raise OSError(errno.ENOLCK, "this file system has no locks")
                if locked is not False:
                    file.truncate(0)
                    file.write(f"{os.getpid()}\n".encode("ascii"))
                    return True
        except BaseException:
            self.release()
            raise
        self.release()
        return False

    def release(self) -> None:
        """Give the lock back, if it is held."""
        held, self._held = self._held, []
        for one in reversed(held):
            one.close()

    def check(self) -> None:
        """Raise FileFault if the lock was taken away: another process may be at work in the directory."""
        if not self._held or self._whole:
            return
        directory, file = cast("tuple[Directory, IO[bytes]]", tuple(self._held))
        state = directory.state(self.NAME)
        if state is None or not os.path.samestat(state, os.fstat(file.fileno())):
            raise FileFault(f"{self.path}: its lock was removed, so another process may work here; stopped")

    def is_held(self) -> bool:
        """Return whether a process holds the lock now."""
        try:
            with Directory(self.path) as directory:
                if _DIRECTORIES and _is_locked(directory.descriptor):
                    return True
                with directory.open(self.NAME) as file:
                    return _is_locked(file.fileno())
        except (OSError, FileFault):
            return False

    def owner(self) -> str:
        """Return the number of the process that took the lock last, or ``"unknown"``."""
        try:
            text = read_below(self.path, self.NAME, 32, "a lock").decode("ascii", "replace").strip()
        except FileFault:
            return "unknown"
        return text if re.fullmatch("[0-9]{1,10}", text) else "unknown"


def _take(descriptor: int) -> bool | None:
    """Lock; return whether that worked, or None where the file system cannot."""
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(0.05)
        try:
            _flock(descriptor, shared=False)
        except _BUSY:
            continue
        except OSError:
            return None
        return True
    return False


def _is_locked(descriptor: int) -> bool:
    try:
        _flock(descriptor, shared=True)
    except _BUSY:
        return True
    except OSError:
        return False
    return False  # closing the file gives it back
