"""The directory of a search: it belongs to one search with its settings, and one process at a time works in it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from clipup.errors import FileFault, RunBusy, RunExists, StateMismatch
from clipup.runs.config import RunConfig, config_values, differing
from clipup.runs.files import TEMPORARY_SUFFIX, FileLock, write_atomically
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
    lock = FileLock(directory / LOCK)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if not lock.acquire():
            raise RunBusy(
                f"{directory}: process {lock.owner()} is searching here; wait, stop it, or choose another --run"
            )
    except OSError as error:
        raise FileFault.of(directory, "made", error) from error
    try:
        _check(directory, base)  # another process may have created a search in between
        # The marker makes it a search, so it comes first: if killed before, the directory is new; after, it continues.
        if not (directory / MARKER).is_file():
            text = format_config(base, comment="The settings that all trials of this search share.")
            write_atomically(directory / MARKER, text.encode("utf-8"))
        try:
            (directory / TRIALS).mkdir(exist_ok=True)
        except OSError as error:
            raise FileFault.of(directory, "made", error) from error
        yield
    finally:
        lock.release()


def _check(directory: Path, base: RunConfig) -> None:
    """Refuse a directory with anything but this search, or the remains of one that was killed at its start."""
    marker = directory / MARKER
    if marker.is_file():
        if names := differing(config_values(make_config(read_toml(marker))), config_values(base)):
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
        raise FileFault.of(directory, "made", error) from error
    raise RunExists(f"{directory} exists and is not a search that could continue; choose another --run")
