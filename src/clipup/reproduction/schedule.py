"""Make several runs at a time, each in its own process, until all are finished or the time is up.

A result does not depend on what else runs, on the number of threads, or on the order. So runs may share the machine in
any way. Runs are on disk however this ends (Ctrl-C, the budget, a power cut), and the next call continues them.

This module is also the program of those processes: ``python -m clipup.reproduction.schedule DIRECTORY``. It reads the
configuration as TOML from standard input, up to a line ``END``. Standard input stays open while the parent lives. When
it closes, the parent is gone, and the run stops with everything saved. Exit codes: 0 finished, 130 or 143 interrupted
and saved, 2 failed with one line on standard error.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clipup.errors import ClipUpError, FileFault, InvalidArgument
from clipup.processors import available_threads
from clipup.reproduction.planned_runs import PlannedRun
from clipup.runs.config import RunConfig
from clipup.runs.resolve import make_config
from clipup.runs.rundir import RunDirectory
from clipup.runs.toml import format_config
from clipup.training.api import RunInterrupted, advance

END = "END"
POLL_SECONDS = 0.2
INTERRUPTED = (130, 143, -signal.SIGTERM, -signal.SIGINT)
"""Exit codes of processes that were told to stop. One that was still importing is ended by the signal itself."""
FAILURES_TO_STOP = 3
"""After this many failures in a row, no further run is started: they probably have a common cause."""


@dataclass(frozen=True)
class ScheduleProgress:
    """How far a reproduction is."""

    finished: int
    total: int
    generations: int
    """Made so far, summed over all runs."""
    generations_wanted: int
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


@dataclass
class _RunProcess:
    run: PlannedRun
    process: subprocess.Popen[bytes]
    errors: Path


class Schedule:
    """The runs of a reproduction, and the processes that work on them."""

    def __init__(
        self,
        runs: Sequence[PlannedRun],
        out: Path,
        *,
        jobs: int | None = None,
        budget: float | None = None,
        watch: Callable[[ScheduleProgress], None] | None = None,
        watch_seconds: float = 1.0,
    ) -> None:
        """Schedule `runs` under `out`: `jobs` at a time (default: one per core), for at most `budget` seconds."""
        if jobs is not None and jobs < 1:
            raise InvalidArgument(f"jobs must be at least 1, got {jobs}")
        if budget is not None and not budget > 0:
            raise InvalidArgument(f"budget must be above 0, got {budget}")
        self._runs, self._out = tuple(runs), out
        self._done = {run.name: run.generations_done(out) for run in runs}
        self._waiting = [run for run in runs if not run.is_finished(out)]
        self._finished = len(self._runs) - len(self._waiting)
        cores = available_threads()
        if jobs is None:  # one run keeps a cluster busy; its cores are not counted here
            jobs = 1 if any(run.config.cluster is not None for run in runs) else cores
        self._jobs = min(jobs, max(1, len(self._waiting)))
        self._threads = max(1, cores // self._jobs)
        self._budget = budget
        self._watch, self._watch_seconds = watch, watch_seconds
        self._processes: list[_RunProcess] = []
        self._failures: list[str] = []
        self._failed_in_a_row = 0
        self._busy = False
        self._started = time.monotonic()
        self._before = sum(self._done.values())

    def run(self) -> ScheduleEnd:
        """Work until all runs are finished, the budget is spent, or Ctrl-C. Leave no process behind."""
        reason = "complete"
        watched = self._started
        try:
            while self._processes or self._may_begin():
                if self._budget is not None and time.monotonic() - self._started >= self._budget:
                    reason = "budget"
                    break
                while len(self._processes) < self._jobs and self._may_begin():
                    run = self._waiting.pop(0)
                    if run.directory(self._out).is_busy():
                        self._busy = True
                    else:
                        self._begin(run)
                time.sleep(POLL_SECONDS)
                self._reap()
                if self._watch is not None and time.monotonic() - watched >= self._watch_seconds:
                    watched = time.monotonic()
                    self._watch(self.progress())
        except KeyboardInterrupt:
            reason = "interrupted"
        finally:
            self._stop()
        if reason == "complete" and (self._failures or self._busy):
            reason = "failed" if self._failures else "busy"
        return ScheduleEnd(self._finished, len(self._runs), reason, tuple(self._failures))

    def progress(self) -> ScheduleProgress:
        """How far it is, and how long the rest will take at this pace."""
        for entry in self._processes:
            self._done[entry.run.name] = entry.run.generations_done(self._out)
        done = sum(self._done.values())
        wanted = sum(run.wanted for run in self._runs)
        seconds = time.monotonic() - self._started
        made = done - self._before
        remaining = seconds * (wanted - done) / made if made else None
        names = tuple(f"{entry.run.group} seed {entry.run.seed}" for entry in self._processes)
        return ScheduleProgress(self._finished, len(self._runs), done, wanted, seconds, remaining, names)

    def _may_begin(self) -> bool:
        return bool(self._waiting) and self._failed_in_a_row < FAILURES_TO_STOP

    def _begin(self, run: PlannedRun) -> None:
        path = run.directory(self._out).path
        path.parent.mkdir(parents=True, exist_ok=True)
        errors = path.parent / f"{run.name}.log"
        # On a cluster, no number of workers means all of them.
        config = run.config if run.config.cluster is not None else replace(run.config, workers=self._threads)
        with errors.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "clipup.reproduction.schedule", str(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        self._processes.append(_RunProcess(run, process, errors))
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # its exit code says more
                process.stdin.write(f"{format_config(config)}\n{END}\n".encode())
                process.stdin.flush()

    def _reap(self) -> None:
        for entry in [entry for entry in self._processes if entry.process.poll() is not None]:
            self._processes.remove(entry)
            if entry.process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    entry.process.stdin.close()
            self._done[entry.run.name] = entry.run.generations_done(self._out)
            if entry.run.is_finished(self._out):
                self._finished += 1
                self._failed_in_a_row = 0
                entry.errors.unlink(missing_ok=True)
            elif entry.process.returncode not in INTERRUPTED:
                self._failed_in_a_row += 1
                self._failures.append(f"{entry.run.group} seed {entry.run.seed}: {_last_line(entry)}")

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
    with contextlib.suppress(OSError):
        lines = entry.errors.read_text("utf-8", "replace").strip().splitlines()
        if lines:
            return lines[-1]
    return f"ended with code {entry.process.returncode}"


def read_config(lines: list[str]) -> RunConfig:
    """Parse the configuration that the parent sent."""
    try:
        return make_config(tomllib.loads("".join(lines)))
    except tomllib.TOMLDecodeError as error:
        raise FileFault(f"cannot read the configuration of a run: {error}") from error


def main() -> int:
    """Run until finished, told to stop, or the parent is gone."""
    lines: list[str] = []
    for line in sys.stdin:
        if line.strip() == END:
            break
        lines.append(line)
    threading.Thread(target=_stop_without_parent, daemon=True).start()
    try:
        advance(read_config(lines), RunDirectory(Path(sys.argv[1])))
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
