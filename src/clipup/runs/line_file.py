"""The files of a run that grow by a line for each generation: written, and checked when the run goes on.

Lines are only ever appended. A run that goes on from a checkpoint first cuts off the lines that are newer than it, and
then writes them again, byte for byte.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass

from clipup.decoding import LINE, decode_object
from clipup.errors import FileFault, reason
from clipup.files import Directory
from clipup.runs.records import LINE_LIMIT, ClockRecord, decode_line, encode_line

_PIECE = 256 * 1024


class LineFile:
    """A file of lines open for appending, whose size is known to the byte, with a running digest of its content.

    Before each line, it is checked that the file still is what was written. A file that was removed is written again:
    its content lives as long as it is open. One that was cut or changed in size ends the run with an error.
    """

    def __init__(self, directory: Directory, name: str, warn: Callable[[str], None] = lambda text: None) -> None:
        """Open `name` in `directory`, making it when it is not there; `warn` is told about a file that vanished."""
        self.path = directory.path / name
        self._directory, self._name, self._warn = directory, name, warn
        try:
            self._file = directory.append(name)
            self.size = os.fstat(self._file.fileno()).st_size
        except OSError as error:
            raise FileFault.of(self.path, "written", error) from error
        self._digest = hashlib.sha256()

    @property
    def digest(self) -> str:
        """The digest of everything up to the last line."""
        return self._digest.hexdigest()

    def append(self, line: bytes) -> None:
        """Add one line, in one write."""
        try:
            self._check()
            written = self._file.write(line)
            if written != len(line):
                raise OSError(28, "no space left for a whole line")
        except OSError as error:
            raise FileFault.of(self.path, "written", error) from error
        self.size += len(line)
        self._digest.update(line)

    def _check(self) -> None:
        state, named = os.fstat(self._file.fileno()), self._directory.state(self._name)
        if state.st_size != self.size:
            raise FileFault(
                f"{self.path}: {self.size} bytes were written and {state.st_size} are there; it was changed"
            )
        if named is not None and os.path.samestat(named, state):
            return
        self._file.seek(0)
        self._directory.replace(self._name, self._file.read())
        self._file.close()
        self._file = self._directory.append(self._name)
        self._warn(f"{self.path} was removed or replaced while the run goes on; it was written again")

    def cut(self, size: int) -> None:
        """Drop everything after the first `size` bytes."""
        if size > self.size:
            raise FileFault(f"{self.path}: {self.size} bytes, but {size} were written; lines are missing")
        try:
            os.ftruncate(self._file.fileno(), size)
            self._file.seek(0)
            self._digest = hashlib.sha256()
            while piece := self._file.read(_PIECE):
                self._digest.update(piece)
        except OSError as error:
            raise FileFault.of(self.path, "written", error) from error
        self.size = size

    def sync(self) -> None:
        """Wait until everything is on the disk."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise FileFault.of(self.path, "written", error) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@dataclass(frozen=True)
class Prefix:
    """The first bytes of a file of records, up to where a checkpoint counts them."""

    size: int
    digest: str
    last: bytes
    """The last line."""


def read_prefix(directory: Directory, name: str, size: int) -> Prefix:
    """Return what the first `size` bytes of a file hold, read in a stream. Raises OSError."""
    hasher, read, tail = hashlib.sha256(), 0, b""
    with directory.open(name) as file:
        while read < size and (piece := file.read(min(_PIECE, size - read))):
            hasher.update(piece)
            read += len(piece)
            tail = (tail + piece)[-LINE_LIMIT - 1 :]
    return Prefix(read, hasher.hexdigest(), tail.rstrip(b"\n").rpartition(b"\n")[2] if tail.endswith(b"\n") else b"")


def encode_clock(clock: ClockRecord, before: str) -> tuple[bytes, str]:
    """Return a line of the clock, and the digest that it ends with: of its own values and of the digest `before`.

    So each line vouches for all lines before it. The digest is not in checkpoints: those hold no times, and equal runs
    have equal checkpoints.
    """
    digest = _chained(clock, before)
    return encode_line(clock)[:-2] + f', "digest": "{digest}"}}\n'.encode("ascii"), digest


def _chained(clock: ClockRecord, before: str) -> str:
    return hashlib.sha256(before.encode("ascii") + encode_line(clock)).hexdigest()[:16]


@dataclass(frozen=True)
class ClockPrefix:
    """How much of a clock file is whole, up to some generation."""

    size: int = 0
    digest: str = ""
    """Of its last line; nothing where there is none."""
    seconds: float = 0.0
    problem: str | None = None


def read_clock_prefix(directory: Directory, name: str, generation: int) -> ClockPrefix:
    """Return how much of a clock file is whole and belongs to generations up to `generation`.

    What the clock says is for people and for the time limit: damage in it must not stop a run.
    """
    found = ClockPrefix()
    number = 0
    try:
        with directory.open(name) as file:
            while (line := file.readline(LINE_LIMIT)).endswith(b"\n"):
                number += 1
                values = decode_object(line, f"line {number}", LINE)
                clock = decode_line(line, ClockRecord, f"line {number}")
                if clock.generation > generation:
                    return found
                digest = values.get("digest", "")  # missing in lines of older versions
                if digest and digest != _chained(clock, found.digest):
                    raise FileFault(f"line {number}: it, or one before it, was changed")
                seconds = clock.seconds if clock.seconds >= 0 else found.seconds  # nan, or forged
                found = ClockPrefix(found.size + len(line), str(digest), seconds)
            if len(line) >= LINE_LIMIT:
                raise FileFault(f"line {number + 1}: longer than {LINE_LIMIT} bytes")
    except FileNotFoundError:
        return found
    except (FileFault, OSError) as error:
        words = reason(error) if isinstance(error, OSError) else str(error)
        return dataclasses.replace(found, problem=f"{directory.path / name}: {words}; times count from the line before")
    return found
