"""The directory of a search: it belongs to one search with its settings, and one process at a time works in it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from clipup.decoding import CONFIG, decode_toml
from clipup.errors import FileFault, RunBusy, RunExists, StateMismatch
from clipup.files import Directory, is_file_below, is_unfinished, make_directories, read_below
from clipup.runs.config import RunConfig, config_values, differing
from clipup.runs.lock import DirectoryLock
from clipup.runs.resolve import make_config
from clipup.runs.toml import format_config

MARKER, TRIALS = "config.base.toml", "trials"


@contextmanager
def claimed(directory: Path, base: RunConfig) -> Generator[None]:
    """Create the directory of a search over `base`, or continue in it, and lock it until the block ends.

    A directory with anything else in it is refused before it is touched. Two searches in one directory would disturb
    each other's trials, so the second is refused too.
    """
    _check(directory, base)
    lock = DirectoryLock(directory)
    make_directories(directory)
    try:
        if not lock.acquire():
            raise RunBusy(
                f"{directory}: process {lock.owner()} is searching here; wait, stop it, or choose another --run"
            )
    except OSError as error:
        raise FileFault.of(directory, "made", error) from error
    try:
        _check(directory, base)  # another process may have created a search in between
        # The marker makes it a search, so it comes first: if killed before, the directory is new; after, it continues.
        with Directory(directory) as files:
            if not files.has(MARKER):
                text = format_config(base, comment="The settings that all trials of this search share.")
                files.replace(MARKER, text.encode("utf-8"))
            files.clean_up()
            files.child(TRIALS, create=True).close()
        yield
    finally:
        lock.release()


def _check(directory: Path, base: RunConfig) -> None:
    """Refuse a directory with anything but this search, or the remains of one that was killed at its start."""
    if is_file_below(directory, MARKER):
        kept = decode_toml(read_below(directory, MARKER, CONFIG.size, "a configuration"), str(directory / MARKER))
        if names := differing(config_values(make_config(kept)), config_values(base)):
            raise StateMismatch(
                f"{directory} holds a search with other settings ({', '.join(names)}); "
                "use the same settings, or choose another --run"
            )
        return
    if not directory.is_symlink() and not directory.exists():
        return
    try:
        with Directory(directory) as files:
            found = files.names()
    except FileFault as fault:
        raise FileFault(f"{str(fault).replace('cannot be opened', 'cannot be made')}; choose another --run") from fault
    if all(name == DirectoryLock.NAME or is_unfinished(name, MARKER) for name in found):
        return
    raise RunExists(f"{directory} exists and is not a search that could continue; choose another --run")
