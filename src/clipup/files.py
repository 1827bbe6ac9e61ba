"""The only module that opens files. A directory from someone else can neither lead outside nor make clipup wait.

Two kinds of path are told apart. What a person typed may contain links: it is their word. Everything below a run
directory is opened relative to that directory's descriptor. There no link is followed, only regular files are opened,
and no more is read than a bound allows. A file that is appended to must have no second name (a hard link).

Files are replaced whole: written under a temporary name that cannot be known in advance, synced, renamed. So neither a
reader nor a crash ever meets half of one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Callable, Generator
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import IO, BinaryIO, TextIO, cast

from clipup.errors import FileFault, InvalidArgument

TEMPORARY_SUFFIX = ".partial"
# Windows can neither open a directory nor look up names relative to one. There, names are looked up by path.
_RELATIVE = os.open in os.supports_dir_fd
_NOFOLLOW, _NONBLOCK = getattr(os, "O_NOFOLLOW", 0), getattr(os, "O_NONBLOCK", 0)
_CLOEXEC = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NOCTTY, _DIRECTORY = getattr(os, "O_NOCTTY", 0), getattr(os, "O_DIRECTORY", 0)
NAME_LIMIT = 100_000
"""Names that are read of a directory at most."""
_CHUNK = 1024 * 1024

# Where links are the system's own: /dev/stdout leads to whatever standard output is.
_SYSTEM = ("/dev/", "/proc/")


class NotRegular(OSError):
    """A link, a pipe, a device or a directory stands where a regular file belongs."""

    def __init__(self, what: str) -> None:
        super().__init__(errno.EINVAL, what)


# -- what a person named ----------------------------------------------------------------------------------------------


Head = Callable[[bytes, int], None]
"""Looks at the first bytes of a file and at its size, and raises FileFault if the rest need not be read."""


def read_named(path: str | os.PathLike[str], limit: int, what: str, head: Head | None = None) -> bytes:
    """Return the content of a file that a person named, or FileFault; `what` is what the file should be."""
    with _faults(path, "read"):
        # A pipe that no program writes to would block without O_NONBLOCK.
        descriptor = os.open(path, os.O_RDONLY | _NONBLOCK | _CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            _check_regular(descriptor)
            return _bounded(file, limit, path, what, head)


def read_below(directory: Path, name: str, limit: int, what: str, head: Head | None = None) -> bytes:
    """Return the content of the file `name` in a directory that may come from someone else, or FileFault."""
    with Directory(directory) as found:
        return found.read(name, limit, what, head)


def path_below(root: Path, *names: str) -> Path:
    """Return the path of a directory below one that may come from someone else, there or not; a link is refused.

    `root` is what a person named, so it may contain links; nothing below it may be one. Each of `names` is a step down.
    """
    path = root
    for name in names:
        if name in ("", ".", "..") or Path(name).name != name:
            raise FileFault(f"{root}: {name!r} is not the name of a directory in it")
        path = path / name
        with _faults(path, "opened"):
            try:
                mode = path.lstat().st_mode
            except (FileNotFoundError, NotADirectoryError):
                break
            if not stat.S_ISDIR(mode):
                raise NotRegular("a link, or not a directory")
    return root.joinpath(*names)


def make_directories(path: Path) -> None:
    """Make a directory that a person named, and those above it."""
    with _faults(path, "made"):
        path.mkdir(parents=True, exist_ok=True)


def write_output(path: Path, data: bytes) -> None:
    """Write a file that a person named.

    A regular file is replaced whole, or left as it was. A device or a pipe is written to. A link is refused: replacing
    it, or what it leads to, may not be what was meant. Links of the system itself, like /dev/stdout, are followed.
    """
    with _faults(path, "written"):
        if str(path).startswith(_SYSTEM):
            _write_into(path, data)
            return
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            mode = None
        if mode is not None and stat.S_ISLNK(mode):
            raise NotRegular("a link; name the file that it leads to")
        if path.name in ("", "..") or (mode is not None and stat.S_ISDIR(mode)):
            raise NotRegular("a directory; name a file")
        if mode is None or stat.S_ISREG(mode):
            with Directory(path.parent) as directory:
                directory.replace(path.name, data, mode=None if mode is None else stat.S_IMODE(mode))
        else:
            _write_into(path, data)


def _write_into(path: Path, data: bytes) -> None:
    # Without O_NONBLOCK, a pipe that no program reads would block here.
    descriptor = os.open(path, os.O_WRONLY | _NONBLOCK | _CLOEXEC | _NOCTTY)
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        if _NONBLOCK:
            os.set_blocking(descriptor, True)
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]


def package_text(package: str, *names: str) -> str:
    """Return a text file that is part of clipup itself."""
    return resources.files(package).joinpath(*names).read_text(encoding="utf-8")


def package_names(package: str, suffix: str) -> list[str]:
    """Return the names of clipup's own files in `package` that end in `suffix`, sorted."""
    return sorted(entry.name for entry in resources.files(package).iterdir() if entry.name.endswith(suffix))


def fill_standard_streams() -> None:
    """Open standard input, output and error where they are closed (``>&-``).

    Otherwise the next file that is opened takes their number, and what a library prints goes into it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def nowhere() -> TextIO:
    """Return a text stream that drops what is written to it."""
    return cast(TextIO, Path(os.devnull).open("w", encoding="utf-8"))


def drop_output(descriptor: int) -> None:
    """Send what is still written to a descriptor nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY | _CLOEXEC)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


# -- what lies below a directory --------------------------------------------------------------------------------------


class Directory:
    """An open directory. Names are looked up in it and nowhere else, whatever happens to its path meanwhile.

    Parameters
    ----------
    path
        A directory that a person named, or that was found by a walk that follows no links.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with _faults(self.path, "opened"):
            self.descriptor = _open_directory(path)

    def __enter__(self) -> Directory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it; may be called more than once."""
        if self.descriptor >= 0 and _RELATIVE:
            os.close(self.descriptor)
        self.descriptor = -1

    def child(self, name: str, *, create: bool = False) -> Directory:
        """Open a directory in this one; `create` makes it if it is missing. A link is refused."""
        with _faults(self.path / name, "opened"):
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(self._at(name), dir_fd=self._here)
            try:
                state = os.stat(self._at(name), dir_fd=self._here, follow_symlinks=False)
                if not stat.S_ISDIR(state.st_mode):
                    raise NotADirectoryError
                descriptor = _open_directory(self._at(name), flags=_NOFOLLOW, here=self._here)
            except NotADirectoryError:
                raise NotRegular("a link, or not a directory") from None
        found = Directory.__new__(Directory)
        found.path, found.descriptor = self.path / name, descriptor
        return found

    @property
    def place(self) -> str:
        """A path for libraries that open files themselves: it leads here even if the directory's path changes."""
        return f"/proc/self/fd/{self.descriptor}" if sys.platform == "linux" else str(self.path)

    def names(self) -> list[str]:
        """Return all names in it, sorted; FileFault beyond `NAME_LIMIT`."""
        with _faults(self.path, "read"):
            found: list[str] = []
            with os.scandir(self.descriptor if _RELATIVE else self.path) as entries:
                for entry in entries:
                    found.append(entry.name)
                    if len(found) > NAME_LIMIT:
                        raise OSError(errno.E2BIG, f"more than {NAME_LIMIT} names in it")
        return sorted(found)

    def state(self, name: str) -> os.stat_result | None:
        """Return what the system says of a name itself (not of what a link leads to), or None if there is none."""
        try:
            return os.stat(self._at(name), dir_fd=self._here, follow_symlinks=False)
        except OSError:
            return None

    def has(self, name: str) -> bool:
        """Return whether a regular file has that name."""
        state = self.state(name)
        return state is not None and stat.S_ISREG(state.st_mode)

    def open(self, name: str) -> BinaryIO:
        """Open a regular file for reading. Raises OSError: `NotRegular` if it is anything else."""
        return os.fdopen(self._open(name, os.O_RDONLY), "rb")

    def read(self, name: str, limit: int, what: str, head: Head | None = None) -> bytes:
        """Return the content of a regular file, or FileFault; `what` is what the file should be."""
        with _faults(self.path / name, "read"), self.open(name) as file:
            return _bounded(file, limit, self.path / name, what, head)

    def append(self, name: str) -> IO[bytes]:
        """Open a regular file for appending and reading, made if missing, unbuffered. Raises OSError."""
        descriptor = self._open(name, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        if os.fstat(descriptor).st_nlink > 1:
            os.close(descriptor)
            raise NotRegular("a hard link: writing would change another file too; copy the directory with cp -r")
        return os.fdopen(descriptor, "a+b", buffering=0)

    def replace(self, name: str, data: bytes, *, mode: int | None = None) -> None:
        """Make `data` the content of `name`: whole, synced to the disk and under its name, or not at all.

        On failure the temporary file is removed and FileFault says why.
        """
        temporary = f".{name[:80]}.{secrets.token_hex(8)}{TEMPORARY_SUFFIX}"
        with _faults(self.path / name, "written"):
            try:
                with self.create(temporary) as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                if mode is not None:
                    os.chmod(self._at(temporary), mode, dir_fd=self._here)
                os.replace(self._at(temporary), self._at(name), src_dir_fd=self._here, dst_dir_fd=self._here)
                self.sync()
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(self._at(temporary), dir_fd=self._here)
                raise

    def create(self, name: str) -> IO[bytes]:
        """Open a new file for writing. Raises OSError, also if the name is taken."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _CLOEXEC
        return os.fdopen(os.open(self._at(name), flags, 0o666, dir_fd=self._here), "wb")

    def remove(self, name: str) -> None:
        """Remove a name that is not a directory, if it is there."""
        with _faults(self.path / name, "removed"), contextlib.suppress(FileNotFoundError):
            os.unlink(self._at(name), dir_fd=self._here)

    def clean_up(self) -> None:
        """Remove the unfinished files that a crash left."""
        for name in self.names():
            if name.endswith(TEMPORARY_SUFFIX):
                with contextlib.suppress(FileFault):
                    self.remove(name)

    def sync(self) -> None:
        """Make its names survive a power cut."""
        if _RELATIVE:
            os.fsync(self.descriptor)

    @property
    def _here(self) -> int | None:
        return self.descriptor if _RELATIVE else None

    def _at(self, name: str) -> str:
        return name if _RELATIVE else str(self.path / name)

    def _open(self, name: str, flags: int) -> int:
        flags |= _NOFOLLOW | _NONBLOCK | _CLOEXEC | _NOCTTY
        state = self.state(name)
        if state is not None and not stat.S_ISREG(state.st_mode):
            raise NotRegular("a link, or not a regular file")
        try:
            descriptor = os.open(self._at(name), flags, 0o666, dir_fd=self._here)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
                raise NotRegular("a link, or not a regular file") from None
            raise
        try:
            _check_regular(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor


def _open_directory(path: str | os.PathLike[str], *, flags: int = 0, here: int | None = None) -> int:
    if not _RELATIVE:
        if not Path(path).is_dir():
            raise FileNotFoundError(errno.ENOENT, "no such directory")
        return 0
    return os.open(path, os.O_RDONLY | _DIRECTORY | _CLOEXEC | flags, dir_fd=here)


def is_unfinished(name: str, final: str) -> bool:
    """Return whether `name` is a temporary name of the file `final`."""
    return name == final + TEMPORARY_SUFFIX or (name.startswith(f".{final}.") and name.endswith(TEMPORARY_SUFFIX))


def is_file_below(directory: Path, name: str) -> bool:
    """Return whether `name` in `directory` is a regular file; a link is none."""
    try:
        return stat.S_ISREG((directory / name).lstat().st_mode)
    except (OSError, ValueError):
        return False


def _check_regular(descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise NotRegular("a link, or not a regular file")


def _bounded(file: BinaryIO, limit: int, path: str | os.PathLike[str], what: str, head: Head | None) -> bytes:
    """Read to the end, if the file is no larger than `limit`, also while it is read."""
    claimed = os.fstat(file.fileno()).st_size
    if claimed <= limit:
        parts: list[bytes] = []
        size = 0
        while size <= limit and (part := file.read(_CHUNK)):
            if head is not None and not parts:
                head(part, claimed)
            parts.append(part)
            size += len(part)
        if size <= limit:
            return b"".join(parts)
    raise FileFault(f"{os.fspath(path)}: larger than {limit} bytes; this is not {what}")


@contextlib.contextmanager
def _faults(path: str | os.PathLike[str], done: str) -> Generator[None]:
    """Turn what the system says into a FileFault of one line."""
    try:
        yield
    except OSError as error:
        raise FileFault.of(os.fspath(path), done, error) from error
    except ValueError as error:
        if isinstance(error, FileFault):
            raise
        # The name holds a NUL byte, or text that no file system takes.
        raise InvalidArgument(f"{os.fspath(path)!r} is not the name of a file") from error
