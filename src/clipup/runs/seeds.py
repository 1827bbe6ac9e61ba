"""The directory of several runs that differ only by seed: which runs, where, and that one process works on them.

``seeds.toml`` in it holds how many seeds there are, the settings that they share, and, where only the best of them goes
on, after how many interactions. The first run has the seed that stands there, the next ones the numbers after it. Each
is an ordinary run, in ``seed-N``.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from clipup.decoding import CONFIG, decode_toml
from clipup.errors import FileFault, InvalidArgument, RunBusy, RunExists
from clipup.files import Directory, is_file_below, is_unfinished, make_directories, path_below, read_below
from clipup.runs.config import RunConfig
from clipup.runs.lock import DirectoryLock
from clipup.runs.resolve import make_config
from clipup.runs.rundir import SEEDS, RunDirectory, is_taken
from clipup.runs.toml import format_config
from clipup.runs.trust import import_flag, start_flag

MOST_SEEDS = 1000


@dataclass(frozen=True)
class Seeds:
    """Which runs there are: what ``seeds.toml`` holds."""

    config: RunConfig
    """Of the first run; the others differ by their seed."""
    count: int
    best_after: int | None = None
    """Interactions after which only the run with the best score goes on; None where all go on."""

    def __post_init__(self) -> None:
        check_seeds(self.count)
        after, most = self.best_after, self.config.total_interactions
        if after is None:
            return
        if not isinstance(after, int) or isinstance(after, bool) or after < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument(f"best_after must be a whole number of interactions, at least 1, got {after!r}")
        if most is not None and after >= most:
            raise InvalidArgument(
                f"best_after must be less than total_interactions ({most}), so that the best run can go on, got {after}"
            )


class SeedsDirectory:
    """Runs that differ only by seed, below one directory."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Name the directory; nothing is touched."""
        self.path = Path(path)
        self._lock = DirectoryLock(self.path)

    def exists(self) -> bool:
        """Whether there are such runs here."""
        return is_file_below(self.path, SEEDS)

    def read(self) -> Seeds:
        """Which runs there are."""
        data = read_below(self.path, SEEDS, CONFIG.size, "a configuration")
        values = decode_toml(data, str(self.path / SEEDS))
        try:
            count, after = check_seeds(values.pop("seeds", None)), values.pop("best_after", None)
            return Seeds(make_config(values), count, cast("int | None", after))
        except ValueError as error:
            raise FileFault(f"{self.path / SEEDS}: {error}") from error

    def runs(self) -> dict[int, tuple[RunDirectory, RunConfig]]:
        """The directory and the configuration of each run, by seed; some may not have begun."""
        seeds = self.read()
        return {
            seed: (RunDirectory(path_below(self.path, f"seed-{seed}")), replace(seeds.config, seed=seed))
            for seed in range(seeds.config.seed, seeds.config.seed + seeds.count)
        }

    def check_new(self) -> None:
        """Refuse a path that holds more than what a call leaves that was killed before it began."""
        if not is_taken(self.path):
            return
        with Directory(self.path) as directory:
            names = directory.names()
        if all(name == DirectoryLock.NAME or is_unfinished(name, SEEDS) for name in names):
            return
        if self.exists():
            raise RunExists(f"{self.path} already exists; go on: clipup resume {self.path}, or choose another --run")
        raise RunExists(f"{self.path} already holds files of something else; choose another --run")

    @contextmanager
    def claimed(self, seeds: Seeds, *, new: bool) -> Generator[None]:
        """Make the directory, or open it, and lock it until the block ends. `seeds` is kept in it."""
        if new:
            self.check_new()
            make_directories(self.path)
        try:
            if not self._lock.acquire():
                raise RunBusy(f"{self.path}: process {self._lock.owner()} is working on these runs; wait or stop it")
        except OSError as error:
            raise FileFault.of(self.path, "locked", error) from error
        try:
            if new:
                self.check_new()  # another process may have come, run and gone in between
            text = self._text(seeds).encode("utf-8")
            with Directory(self.path) as files:
                if new or read_below(self.path, SEEDS, CONFIG.size, "a configuration") != text:
                    files.replace(SEEDS, text)
                files.clean_up()
            yield
        finally:
            self._lock.release()

    def _text(self, seeds: Seeds) -> str:
        config = seeds.config
        comment = (
            "Runs that differ only by seed, in the directories seed-N. These are the settings of the first one.\n"
            f"Go on with all of them: clipup resume {self.path}{import_flag(config)}{start_flag(config)}"
        )
        head, _, rest = format_config(config, comment=comment).partition("\n\n")
        after = "" if seeds.best_after is None else f"best_after = {seeds.best_after}\n"
        return f"{head}\n\nseeds = {seeds.count}\n{after}\n{rest}"


def check_seeds(value: object) -> int:
    """Return how many seeds `value` is, or refuse it."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_SEEDS:
        raise InvalidArgument(f"seeds must be a whole number from 1 to {MOST_SEEDS}, got {value!r}")
    return value
