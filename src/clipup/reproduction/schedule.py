"""Several runs at a time, each in its own process, until all are done or the time is up.

A result never depends on what else runs, on how many threads, or in which order, so runs may share the machine in any
way. Whatever ends this (Ctrl-C, the budget, a power cut), the runs are on disk and the next call goes on with them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clipup.errors import InvalidArgument
from clipup.reproduction.runs import PlannedRun
from clipup.reproduction.worker import END
from clipup.runs.rundir import RunDirectory
from clipup.runs.toml import format_config

POLL_SECONDS = 0.2
INTERRUPTED = (130, 143, -signal.SIGTERM, -signal.SIGINT)
"""Exit codes of workers that were told to stop; one that was still importing ends by the signal itself."""
FAILURES_TO_STOP = 3
"""So many failures without a success in between, and no further run is begun: they have a common cause."""


@dataclass(frozen=True)
class Progress:
    """How a reproduction stands."""

    finished: int
    total: int
    generations: int
    """Made so far, over all runs."""
    generations_wanted: int
    seconds: float
    """Since this call began."""
    remaining: float | None
    """Seconds, as the generations of this call say; None before the first."""
    running: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """How a call ended."""

    finished: int
    total: int
    reason: str
    """``complete``, ``budget``, ``interrupted``, ``failed``, or ``busy``: another process makes the rest."""
    failures: tuple[str, ...]


@dataclass
class _Worker:
    run: PlannedRun
    process: subprocess.Popen[bytes]
    errors: Path


class Schedule:
    """The runs of a reproduction and the processes that work on them."""

    def __init__(
        self,
        runs: Sequence[PlannedRun],
        out: Path,
        *,
        jobs: int | None = None,
        budget: float | None = None,
        watch: Callable[[Progress], None] | None = None,
        watch_seconds: float = 1.0,
    ) -> None:
        """Plan `runs` under `out`: `jobs` at a time (default: one a core), for at most `budget` seconds."""
        if jobs is not None and jobs < 1:
            raise InvalidArgument(f"jobs must be at least 1, got {jobs}")
        if budget is not None and not budget > 0:
            raise InvalidArgument(f"budget must be above 0, got {budget}")
        self._runs, self._out = tuple(runs), out
        self._done = {run.name: run.generations_done(out) for run in runs}
        self._waiting = [run for run in runs if not run.is_finished(out)]
        self._finished = len(self._runs) - len(self._waiting)
        cores = len(os.sched_getaffinity(0))
        if jobs is None:  # a cluster is kept busy by one run; its cores are not counted here
            jobs = 1 if any(run.config.cluster is not None for run in runs) else cores
        self._jobs = min(jobs, max(1, len(self._waiting)))
        self._threads = max(1, cores // self._jobs)
        self._budget = budget
        self._watch, self._watch_seconds = watch, watch_seconds
        self._workers: list[_Worker] = []
        self._failures: list[str] = []
        self._row = 0  # failures since the last success
        self._busy = False
        self._started = time.monotonic()
        self._before = sum(self._done.values())

    def run(self) -> Outcome:
        """Work until nothing is left, the budget is spent, or Ctrl-C; leave no process behind."""
        reason = "complete"
        watched = self._started
        try:
            while self._workers or self._may_begin():
                if self._budget is not None and time.monotonic() - self._started >= self._budget:
                    reason = "budget"
                    break
                while len(self._workers) < self._jobs and self._may_begin():
                    run = self._waiting.pop(0)
                    if RunDirectory(run.path(self._out)).is_busy():
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
        return Outcome(self._finished, len(self._runs), reason, tuple(self._failures))

    def progress(self) -> Progress:
        """How it stands, and how long it will take at the pace so far."""
        for worker in self._workers:
            self._done[worker.run.name] = worker.run.generations_done(self._out)
        done = sum(self._done.values())
        wanted = sum(run.wanted for run in self._runs)
        seconds = time.monotonic() - self._started
        made = done - self._before
        remaining = seconds * (wanted - done) / made if made else None
        names = tuple(f"{worker.run.group} seed {worker.run.seed}" for worker in self._workers)
        return Progress(self._finished, len(self._runs), done, wanted, seconds, remaining, names)

    def _may_begin(self) -> bool:
        return bool(self._waiting) and self._row < FAILURES_TO_STOP

    def _begin(self, run: PlannedRun) -> None:
        path = run.path(self._out)
        path.parent.mkdir(parents=True, exist_ok=True)
        errors = path.parent / f"{run.name}.log"
        # On a cluster, workers that are not set mean all of them.
        config = run.config if run.config.cluster is not None else replace(run.config, workers=self._threads)
        with errors.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "clipup.reproduction.worker", str(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        self._workers.append(_Worker(run, process, errors))
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # its exit code will say more
                process.stdin.write(f"{format_config(config)}\n{END}\n".encode())
                process.stdin.flush()

    def _reap(self) -> None:
        for worker in [worker for worker in self._workers if worker.process.poll() is not None]:
            self._workers.remove(worker)
            if worker.process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    worker.process.stdin.close()
            self._done[worker.run.name] = worker.run.generations_done(self._out)
            if worker.run.is_finished(self._out):
                self._finished += 1
                self._row = 0
                worker.errors.unlink(missing_ok=True)
            elif worker.process.returncode not in INTERRUPTED:
                self._row += 1
                self._failures.append(f"{worker.run.group} seed {worker.run.seed}: {_last_line(worker)}")

    def _stop(self) -> None:
        for worker in self._workers:
            with contextlib.suppress(ProcessLookupError):
                worker.process.send_signal(signal.SIGTERM)
        while self._workers:
            try:
                self._workers[0].process.wait()
                self._reap()
            except KeyboardInterrupt:  # asked twice: give up what is not on disk yet
                for worker in self._workers:
                    worker.process.kill()


def _last_line(worker: _Worker) -> str:
    with contextlib.suppress(OSError):
        lines = worker.errors.read_text("utf-8", "replace").strip().splitlines()
        if lines:
            return lines[-1]
    return f"ended with code {worker.process.returncode}"
