"""Make several runs at a time, each in its own process, until all are finished or the time is up.

A result does not depend on what else runs, on the number of threads, or on the order. So runs may share the machine in
any way. Runs are on disk however this ends (Ctrl-C, the budget, a power cut), and the next call continues them.

This module is also the program of those processes: ``python -m clipup.training.side_by_side DIRECTORY``. It reads from
standard input one line of JSON (how to run), then the configuration as TOML, up to a line ``END``. Standard input
stays open while the parent lives. When it closes, the parent is gone, and the run stops with everything saved. Exit
codes: 0 finished, 130 or 143 interrupted and saved, 2 failed with one line on standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from clipup.decoding import WORDS, decode_object, decode_toml
from clipup.errors import ClipUpError, FileFault, InvalidArgument
from clipup.files import Directory, make_directories, read_below
from clipup.processors import available_threads
from clipup.runs.config import RunConfig
from clipup.runs.records import ClockRecord, Record, read_last
from clipup.runs.resolve import make_config
from clipup.runs.rundir import RunDirectory
from clipup.runs.toml import format_config
from clipup.training.api import RunInterrupted, advance

LOG_LIMIT = 16 * 1024 * 1024

END = "END"
POLL_SECONDS = 0.2
INTERRUPTED = (130, 143, -signal.SIGTERM, -signal.SIGINT)
"""Exit codes of processes that were told to stop. One that was still importing is ended by the signal itself."""
FAILURES_TO_STOP = 3
"""After this many failures in a row, no further run is started: they probably have a common cause."""


@dataclass(frozen=True)
class SideRun:
    """One of the runs to make."""

    label: str
    """Its name in messages."""
    directory: RunDirectory
    config: RunConfig
    finished: Callable[[], bool]
    """Whether there is nothing left to do for it."""
    typed: Collection[str] | None = None
    """The settings that are a person's own words; None for all."""

    def generations_done(self) -> int:
        """Complete generations on disk, at most those of the configuration."""
        last = read_last(self.directory.records_path, Record)
        made = last.generation if last is not None else 0
        return made if self.config.generations is None else min(made, self.config.generations)

    def share_done(self) -> float:
        """How much of the run is made, by the limit that it is nearest to: from 0 to 1."""
        config, last = self.config, read_last(self.directory.records_path, Record)
        if last is None:
            return 0.0
        clock = read_last(self.directory.clock_path, ClockRecord) if config.time_limit is not None else None
        shares = [
            last.generation / config.generations if config.generations else 0.0,
            last.total_interactions / config.total_interactions if config.total_interactions else 0.0,
            clock.seconds / config.time_limit if clock is not None and config.time_limit else 0.0,
        ]
        return min(1.0, max(shares))


@dataclass(frozen=True)
class ScheduleProgress:
    """How far the runs are."""

    finished: int
    total: int
    generations: int
    """Made so far, summed over all runs."""
    generations_wanted: int | None
    """Summed over all runs; None where the number of generations is not limited."""
    seconds: float
    """Since this call started."""
    remaining: float | None
    """Estimated seconds, at the pace of this call; None before its first generation."""
    running: tuple[str, ...]


@dataclass(frozen=True)
class ScheduleEnd:
    """How a call ended."""

    finished: int
    total: int
    reason: str
    """``complete``, ``budget``, ``interrupted``, ``failed``, or ``busy``: another process works on the rest."""
    failures: tuple[str, ...]
    exit_code: int = 0
    """That of the signal, where one ended it."""


@dataclass
class _RunProcess:
    run: SideRun
    process: subprocess.Popen[bytes]
    errors: Path


class SideBySide:
    """Runs, and the processes that work on them."""

    def __init__(
        self,
        runs: Sequence[SideRun],
        *,
        jobs: int | None = None,
        budget: float | None = None,
        watch: Callable[[ScheduleProgress], None] | None = None,
        watch_seconds: float = 1.0,
    ) -> None:
        """Schedule `runs`: `jobs` at a time, for at most `budget` seconds.

        By default there is one run per core, or fewer where the configurations ask for several workers each. Runs that
        say nothing of workers share the cores.
        """
        if jobs is not None and jobs < 1:
            raise InvalidArgument(f"jobs must be at least 1, got {jobs}")
        if budget is not None and not budget > 0:
            raise InvalidArgument(f"budget must be above 0, got {budget}")
        self._runs = tuple(runs)
        self._waiting = [run for run in runs if not run.finished()]
        self._finished = len(self._runs) - len(self._waiting)
        self._done = {run.label: (run.generations_done(), run.share_done()) for run in runs}
        cores = available_threads()
        if jobs is None:  # one run keeps a cluster busy; its cores are not counted here
            on_cluster = any(run.config.cluster is not None for run in runs)
            widest = max((run.config.workers or 1 for run in runs), default=1)
            jobs = 1 if on_cluster else max(1, cores // widest)
        self._jobs = min(jobs, max(1, len(self._waiting)))
        self._threads = max(1, cores // self._jobs)
        self._budget = budget
        self._watch, self._watch_seconds = watch, watch_seconds
        self._processes: list[_RunProcess] = []
        self._failures: list[str] = []
        self._failed_in_a_row = 0
        self._busy = False
        self._started = time.monotonic()
        self._before = sum(share for _, share in self._done.values())

    def run(self) -> ScheduleEnd:
        """Work until all runs are finished, the budget is spent, or a signal comes. Leave no process behind."""
        reason, exit_code = "complete", 0
        watched = self._started
        try:
            while self._processes or self._may_begin():
                if self._budget is not None and time.monotonic() - self._started >= self._budget:
                    reason = "budget"
                    break
                while len(self._processes) < self._jobs and self._may_begin():
                    run = self._waiting.pop(0)
                    if run.directory.is_busy():
                        self._busy = True
                    else:
                        self._begin(run)
                time.sleep(POLL_SECONDS)
                self._reap()
                if self._watch is not None and time.monotonic() - watched >= self._watch_seconds:
                    watched = time.monotonic()
                    self._watch(self.progress())
        except KeyboardInterrupt as interrupt:
            reason, exit_code = "interrupted", int(getattr(interrupt, "exit_code", 130))
        finally:
            self._stop()
        if reason == "complete" and (self._failures or self._busy):
            reason = "failed" if self._failures else "busy"
        return ScheduleEnd(self._finished, len(self._runs), reason, tuple(self._failures), exit_code)

    def progress(self) -> ScheduleProgress:
        """How far it is, and how long the rest will take at this pace."""
        for entry in self._processes:
            self._count(entry.run)
        done = sum(share for _, share in self._done.values())
        limits = [run.config.generations for run in self._runs]
        seconds = time.monotonic() - self._started
        made = done - self._before
        return ScheduleProgress(
            finished=self._finished,
            total=len(self._runs),
            generations=sum(generations for generations, _ in self._done.values()),
            generations_wanted=None if None in limits else sum(limit or 0 for limit in limits),
            seconds=seconds,
            remaining=seconds * (len(self._runs) - done) / made if made > 0 else None,
            running=tuple(entry.run.label for entry in self._processes),
        )

    def _may_begin(self) -> bool:
        return bool(self._waiting) and self._failed_in_a_row < FAILURES_TO_STOP

    def _begin(self, run: SideRun) -> None:
        path = run.directory.path
        make_directories(path.parent)
        errors = path.parent / f"{path.name}.log"
        # Where the configuration says something, that holds. On a cluster, no number of workers means all of them.
        says = run.config.workers is not None or run.config.cluster is not None
        how = {
            "workers": None if says else self._threads,
            "typed": None if run.typed is None else sorted(run.typed),
            # A module that the user named may be found only where this process looks.
            "path": [place for place in sys.path if place],
        }
        with Directory(errors.parent) as directory:
            directory.remove(errors.name)
            log = directory.create(errors.name)
        with log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "clipup.training.side_by_side", str(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        self._processes.append(_RunProcess(run, process, errors))
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # its exit code says more
                process.stdin.write(f"{json.dumps(how)}\n{format_config(run.config)}\n{END}\n".encode())
                process.stdin.flush()

    def _count(self, run: SideRun) -> None:
        self._done[run.label] = (run.generations_done(), run.share_done())

    def _reap(self) -> None:
        for entry in [entry for entry in self._processes if entry.process.poll() is not None]:
            self._processes.remove(entry)
            if entry.process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    entry.process.stdin.close()
            self._count(entry.run)
            if entry.run.finished():
                self._finished += 1
                self._failed_in_a_row = 0
                self._done[entry.run.label] = (self._done[entry.run.label][0], 1.0)
                with Directory(entry.errors.parent) as directory:
                    directory.remove(entry.errors.name)
            elif entry.process.returncode not in INTERRUPTED:
                self._failed_in_a_row += 1
                self._failures.append(f"{entry.run.label}: {_last_line(entry)}")

    def _stop(self) -> None:
        for entry in self._processes:
            with contextlib.suppress(ProcessLookupError):
                entry.process.send_signal(signal.SIGTERM)
        while self._processes:
            try:
                self._processes[0].process.wait()
                self._reap()
            except KeyboardInterrupt:  # asked twice: drop what is not on disk yet
                for entry in self._processes:
                    entry.process.kill()


def _last_line(entry: _RunProcess) -> str:
    with contextlib.suppress(FileFault):
        data = read_below(entry.errors.parent, entry.errors.name, LOG_LIMIT, "a log")
        lines = data.decode("utf-8", "replace").strip().splitlines()
        if lines:
            return lines[-1]
    return f"ended with code {entry.process.returncode}"


def read_config(lines: list[str]) -> RunConfig:
    """Parse the configuration that the parent sent."""
    return make_config(decode_toml("".join(lines), "the configuration of a run"))


def main() -> int:
    """Run until finished, told to stop, or the parent is gone."""
    how = decode_object(sys.stdin.readline(), "how to run", WORDS)
    lines: list[str] = []
    for line in sys.stdin:
        if line.strip() == END:
            break
        lines.append(line)
    threading.Thread(target=_stop_without_parent, daemon=True).start()
    sys.path += [place for place in cast("list[str]", how["path"]) if place not in sys.path]
    workers, typed = cast("int | None", how["workers"]), cast("list[str] | None", how["typed"])
    try:
        advance(read_config(lines), RunDirectory(Path(sys.argv[1])), workers=workers, typed=typed)
    except RunInterrupted as interrupted:
        return interrupted.exit_code
    except KeyboardInterrupt:
        return 130
    except ClipUpError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _stop_without_parent() -> None:
    # Not through sys.stdin: Python aborts at exit if a thread waits inside a buffered reader.
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
