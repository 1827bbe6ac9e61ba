"""A crew of processes on this machine."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.spawn import get_preparation_data
from pathlib import Path

from clipup.errors import InvalidArgument, NoProcesses
from clipup.executors import process_worker
from clipup.executors.crew import Assignment, Event, Failed, Finished, Joined, Lost
from clipup.executors.process_worker import DONE, HEADER, OURS, RANGE, READY, SAFE_PATH, SUBJECT
from clipup.executors.work import Setup, Subject
from clipup.executors.worker import unpack_error

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_UNGUARDED = 83  # the exit code of a worker that ran into the script that started it
_CLOSING_SECONDS = 1.0


@dataclass
class _Member:
    process: SpawnProcess
    connection: Connection
    ready: bool = False
    job: int = 0
    reason: str | None = None


class ProcessCrew:
    """Processes started with spawn, one BLAS thread each, which end with this one.

    Parameters
    ----------
    setup
        What they are made for; must be picklable.
    workers
        How many there are.
    """

    depth = 2
    share = 3.0
    message = 0.0004
    longest = 3.0

    def __init__(self, setup: Setup, workers: int) -> None:
        if workers < 1:
            raise InvalidArgument(f"workers must be at least 1, got {workers}")
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            # This is a worker, importing the script that is about to start workers. Its parent explains.
            raise SystemExit(_UNGUARDED)
        if multiprocessing.current_process().daemon:
            raise NoProcesses("this is a daemonic process, as those of multiprocessing.Pool, which may start none")
        script = get_preparation_data("").get("init_main_from_path")
        if script is not None and not Path(script).is_file():
            raise NoProcesses(f"worker processes import the script that starts them, and {script} is not a file")
        try:
            self._setup = pickle.dumps(setup)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise NoProcesses(
                f"the environment cannot be sent to worker processes ({error}); give its id, or a callable defined at "
                "the top level of a module"
            ) from error
        self.size = workers
        self._context = multiprocessing.get_context("spawn")
        self._members: dict[int, _Member] = {}
        self._count = 0
        self._job = 0
        self._subject = b""
        self._checked = 0.0
        self._closed = False
        atexit.register(self.close)
        self._fill()

    @property
    def description(self) -> str:
        """How many processes there are."""
        return f"{self.size} process{'es' if self.size > 1 else ''}"

    def publish(self, job: int, subject: Subject) -> None:
        """Keep the subject, to be sent to each worker before its first range of it."""
        self._job, self._subject = job, HEADER.pack(SUBJECT, job, 0, 0, 0.0) + pickle.dumps(subject)

    def assign(self, member: int, assignment: Assignment) -> None:
        """Send a range, after its subject."""
        one = self._members[member]
        with suppress(OSError):  # a worker that is gone is noticed by `wait`
            if one.job != assignment.job:
                one.connection.send_bytes(self._subject)
                one.job = assignment.job
            one.connection.send_bytes(HEADER.pack(RANGE, assignment.job, assignment.start, len(assignment), 0.0))

    def wait(self, seconds: float) -> Sequence[Event]:
        """Return what the workers sent, and which of them are gone."""
        numbers = {one.connection: number for number, one in self._members.items()}
        events = [self._receive(numbers[ready]) for ready in wait(list(numbers), seconds)]  # pyright: ignore
        if time.monotonic() - self._checked > 1.0:
            # A process that an environment forked may hold the connection open after its worker died.
            self._checked = time.monotonic()
            gone = {event.member for event in events if isinstance(event, Lost)}
            events += [
                self._bury(number)
                for number, one in list(self._members.items())
                if number not in gone and one.process.exitcode is not None and not one.connection.poll()
            ]
        self._fill()
        return events

    def dismiss(self, member: int, reason: str) -> None:
        """Kill a worker."""
        one = self._members[member]
        if one.reason is None:
            one.reason = reason
            one.process.kill()

    def restart(self) -> None:
        """Kill all, start as many."""
        self._end(patience=0.0)
        self._fill()

    def close(self) -> None:
        """Let idle workers end by themselves, and kill the others."""
        self._closed = True
        atexit.unregister(self.close)
        self._end(patience=_CLOSING_SECONDS)

    def _fill(self) -> None:
        while not self._closed and len(self._members) < self.size:
            ours, theirs = self._context.Pipe()
            by_kernel = threading.current_thread() is threading.main_thread()
            process = self._context.Process(
                target=process_worker.main, args=(theirs, self._setup, by_kernel), name="clipup-worker", daemon=True
            )
            with _worker_environment():
                process.start()
            theirs.close()
            self._count += 1
            self._members[self._count] = _Member(process, ours)

    def _receive(self, number: int) -> Event:
        one = self._members[number]
        try:
            message = one.connection.recv_bytes()
        except (EOFError, OSError):
            return self._bury(number)
        kind, job, start, count, seconds = HEADER.unpack_from(message)
        body = message[HEADER.size :]
        if kind == DONE:
            return Finished(number, Assignment(job, start, start + count), body, seconds)
        if kind == READY:
            one.ready = True
            return Joined(number, pickle.loads(body))  # noqa: S301  # from a process that this one started
        return Failed(number, unpack_error(body))

    def _bury(self, number: int) -> Event:
        one = self._members.pop(number)
        one.connection.close()
        one.process.join(_CLOSING_SECONDS)
        if one.process.exitcode is None:
            one.process.kill()
            one.process.join()
        code = one.process.exitcode or 0
        one.process.close()
        if code == _UNGUARDED:
            return Failed(
                number,
                NoProcesses(
                    "worker processes import the script that starts them, so it must do its work under "
                    "`if __name__ == '__main__':`"
                ),
            )
        return Lost(number, one.reason or _cause(code), one.ready)

    def _end(self, *, patience: float) -> None:
        members, self._members = self._members, {}
        try:
            for one in members.values():
                one.connection.close()  # a worker that waits for work reads the end of it, and leaves
            deadline = time.monotonic() + patience
            for one in members.values():
                one.process.join(max(0.0, deadline - time.monotonic()) if one.ready else 0.0)
        finally:
            # Also where Ctrl-C ends the wait: nobody else knows of them any more, and they ignore its signal.
            for one in members.values():
                one.process.kill()
            for one in members.values():
                one.process.join()
                one.process.close()


def _cause(code: int) -> str:
    if code >= 0:
        return f"ended by itself (exit code {code})"
    with suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


@contextmanager
def _worker_environment() -> Generator[None]:
    """Let a process that is started here use one thread for linear algebra, from its first import of numpy on.

    And let it import nothing from the directory that it happens to be started in, until it has the paths of this one.
    """
    wanted: dict[str, str] = dict.fromkeys(_THREADS, "1")
    if not os.environ.get(SAFE_PATH):
        wanted[SAFE_PATH] = OURS
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
