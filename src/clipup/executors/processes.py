"""Workers that are processes of this machine."""

from __future__ import annotations

import atexit
import ctypes
import multiprocessing
import os
import pickle
import re
import signal
import struct
import sys
import threading
import time
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.spawn import get_preparation_data
from pathlib import Path
from typing import Protocol, cast

from clipup.errors import InvalidArgument, NoProcesses
from clipup.executors import wire
from clipup.executors.jobs import Readiness, Worker
from clipup.executors.scheduler import AnyJob, Assignment, Event, Failed, Finished, Joined, Lost
from clipup.executors.work_queue import RangeRule

_READY, _JOB, _RANGE, _DONE, _ERROR, _WARNING = range(1, 7)
_HEADER = struct.Struct("<BQQd")  # kind, start, stop, seconds

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_SAFE_PATH, _OURS = "PYTHONSAFEPATH", "clipup"  # any value turns it on; this one says that only workers need it
_UNGUARDED = 83  # the exit code of a worker that ran into the script that started it
_CLOSING_SECONDS = 1.0
_PR_SET_PDEATHSIG = 1
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class AnyWorker(Protocol):
    """What runs jobs in a worker's process."""

    @property
    def description(self) -> Readiness:
        """What it says of itself."""
        ...

    def close(self) -> None:
        """Free what it holds."""
        ...


class AnySetup(Protocol):
    """What a worker is made for; it must be picklable."""

    @property
    def what(self) -> str:
        """What the workers need, in words."""
        ...

    @property
    def advice(self) -> str:
        """What to do where it cannot be sent to them."""
        ...

    def for_workers(self) -> AnySetup:
        """Return what another process needs."""
        ...

    def make(self) -> AnyWorker:
        """Return the worker."""
        ...


@dataclass
class _Process:
    process: SpawnProcess
    connection: Connection
    ready: bool = False
    job: int = 0
    reason: str | None = None


class ProcessTransport:
    """Processes that are started with spawn, use one BLAS thread each, and end with this process.

    There are `workers` of them. They are made for `setup`, which must be picklable.
    """

    rule = RangeRule(share=3.0, message=0.0004, longest=3.0)

    def __init__(self, setup: AnySetup, workers: int) -> None:
        if workers < 1:
            raise InvalidArgument(f"workers must be at least 1, got {workers}")
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            # This is a worker that imports a script, and the script starts workers. Its parent explains.
            raise SystemExit(_UNGUARDED)
        if multiprocessing.current_process().daemon:
            raise NoProcesses("this is a daemonic process (as those of multiprocessing.Pool), which cannot start any")
        script = get_preparation_data("").get("init_main_from_path")
        if script is not None and not Path(script).is_file():
            raise NoProcesses(f"worker processes import the script that starts them, and {script} is not a file")
        try:
            self._setup = pickle.dumps(setup.for_workers())
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise NoProcesses(
                f"the {setup.what} cannot be sent to worker processes ({error}); {setup.advice}"
            ) from error
        self.size = workers
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[int, _Process] = {}
        self._count = 0
        self._job = b""
        self._checked = 0.0
        self._warned: set[str] = set()
        self._closed = False
        atexit.register(self.close)
        self._fill()

    @property
    def place(self) -> str:
        """How many processes there are."""
        return f"{self.size} process{'es' if self.size > 1 else ''}"

    def publish(self, number: int, job: AnyJob) -> None:
        """Keep the job. Each worker gets it before its first range of it."""
        self._job = _HEADER.pack(_JOB, 0, 0, 0.0) + pickle.dumps(job)

    def assign(self, worker: int, assignment: Assignment) -> None:
        """Send a range, after its job."""
        one = self._workers[worker]
        with suppress(OSError):  # `wait` notices a worker that is gone
            if one.job != assignment.job:
                one.connection.send_bytes(self._job)
                one.job = assignment.job
            one.connection.send_bytes(_HEADER.pack(_RANGE, assignment.start, assignment.stop, 0.0))

    def dismiss(self, worker: int, reason: str) -> None:
        """Kill a worker."""
        self._workers[worker].reason = reason
        self._workers[worker].process.kill()

    def wait(self, seconds: float) -> Sequence[Event]:
        """Return what the workers sent, and which of them are gone."""
        numbers = {one.connection: number for number, one in self._workers.items()}
        received = [self._receive(numbers[ready]) for ready in wait(list(numbers), seconds)]  # pyright: ignore
        events = [event for event in received if event is not None]
        if time.monotonic() - self._checked > 1.0:
            # A process that an environment forked may keep the connection open after its worker died.
            self._checked = time.monotonic()
            events += [
                self._bury(number)
                for number, one in list(self._workers.items())
                if one.process.exitcode is not None and not one.connection.poll()
            ]
        self._fill()
        return events

    def restart(self) -> None:
        """Kill all workers, and start as many."""
        self._end(patience=0.0)
        self._fill()

    def close(self) -> None:
        """Let idle workers end by themselves, and kill the others."""
        self._closed = True
        atexit.unregister(self.close)
        self._end(patience=_CLOSING_SECONDS)

    def _fill(self) -> None:
        while not self._closed and len(self._workers) < self.size:
            ours, theirs = self._context.Pipe()
            by_kernel = threading.current_thread() is threading.main_thread()
            process = self._context.Process(
                target=serve, args=(theirs, self._setup, by_kernel), name="clipup-worker", daemon=True
            )
            with _worker_environment(), _signals_held():
                process.start()
            theirs.close()
            self._count += 1
            self._workers[self._count] = _Process(process, ours)

    def _receive(self, number: int) -> Event | None:
        one = self._workers[number]
        try:
            message = one.connection.recv_bytes()
        except (EOFError, OSError):
            return self._bury(number)
        kind, _, _, seconds = _HEADER.unpack_from(message)
        body = message[_HEADER.size :]
        if kind == _DONE:
            return Finished(number, wire.unpack(body), seconds)
        if kind == _WARNING:
            self._warn(body.decode("utf-8", "replace"))
            return None
        if kind == _READY:
            one.ready = True
            return Joined(number, pickle.loads(body))  # noqa: S301  # from a process that this one started
        return Failed(number, wire.unpack_error(body))

    def _warn(self, text: str) -> None:
        """Say once what any of the workers warned about, through this process: a display may own the terminal."""
        if text not in self._warned:
            self._warned.add(text)
            with suppress(OSError, ValueError):
                sys.stderr.write(f"warning from a worker: {text}\n")

    def _bury(self, number: int) -> Event:
        one = self._workers.pop(number)
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
        workers, self._workers = self._workers, {}
        try:
            for one in workers.values():
                one.connection.close()  # a worker that waits for work sees this, and ends
            deadline = time.monotonic() + patience
            for one in workers.values():
                one.process.join(max(0.0, deadline - time.monotonic()) if one.ready else 0.0)
        finally:
            # Even if Ctrl-C ends the wait: they ignore its signal, and nothing else would end them.
            for one in workers.values():
                one.process.kill()
            for one in workers.values():
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
    """Set the environment variables of a worker while it is started.

    Linear algebra then uses one thread, from the worker's first import of numpy on. And nothing is imported from the
    current directory before the worker has the import paths of this process.
    """
    wanted: dict[str, str] = dict.fromkeys(_THREADS, "1")
    if not os.environ.get(_SAFE_PATH):
        wanted[_SAFE_PATH] = _OURS
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


@contextmanager
def _signals_held() -> Generator[None]:
    """Hold signals back while a worker is started, so that it begins with them held back too.

    Ctrl-C reaches the whole process group. A worker that is still importing would print a traceback.
    """
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # multiprocessing's helper; starting it lets the signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# -- in the worker's process -------------------------------------------------------------------------------------------


def serve(connection: Connection, setup: bytes, end_with_thread: bool) -> None:
    """Be a worker until the other end of `connection` is closed."""
    # Ctrl-C and a batch system's SIGTERM reach the whole process group. The trainer handles them: it may want a few
    # more results before it ends its workers.
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    if os.environ.get(_SAFE_PATH) == _OURS:
        del os.environ[_SAFE_PATH]  # processes that an environment starts get their user's settings
    _end_with_parent(by_kernel=end_with_thread)
    # Workers are daemonic so that they end with the trainer. Their environments may start processes all the same.
    multiprocessing.current_process()._config["daemon"] = False  # pyright: ignore
    _forward_warnings(connection)
    try:
        worker = _make(setup)
    except BaseException as error:
        _send(connection, _ERROR, wire.pack_error(error))
        return
    try:
        _send(connection, _READY, pickle.dumps(worker.description))
        _run_ranges(connection, worker)
    except (EOFError, OSError):
        pass  # the trainer closed the connection, or is gone
    finally:
        worker.close()


def _forward_warnings(connection: Connection) -> None:
    """Send Python's warnings to the trainer, as one line each. Written here, they would scribble over its display."""

    def forward(message: Warning | str, category: type[Warning], *rest: object, **more: object) -> None:
        text = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", str(message)).split())
        with suppress(OSError):
            _send(connection, _WARNING, f"{category.__name__}: {text}".encode()[:2000])

    warnings.showwarning = forward


def _make(setup: bytes) -> AnyWorker:
    try:
        loaded = pickle.loads(setup)  # noqa: S301  # from the process that started this one
    except (AttributeError, ImportError) as error:
        raise NoProcesses(
            f"worker processes cannot import what they need: {error}; "
            "define it at the top level of a module or of the script that is run"
        ) from error
    return loaded.make()


def _run_ranges(connection: Connection, worker: AnyWorker) -> None:
    job: AnyJob | None = None
    while True:
        message = connection.recv_bytes()
        kind, start, stop, _ = _HEADER.unpack_from(message)
        if kind == _JOB:
            job = pickle.loads(memoryview(message)[_HEADER.size :])  # noqa: S301  # as above
        elif job is not None:
            began = time.perf_counter()
            try:
                data = wire.pack(job.run(cast(Worker, worker), start, stop))
            except Exception as error:
                _send(connection, _ERROR, wire.pack_error(error))
            else:
                _send(connection, _DONE, data, time.perf_counter() - began)


def _send(connection: Connection, kind: int, body: bytes, seconds: float = 0.0) -> None:
    connection.send_bytes(_HEADER.pack(kind, 0, 0, seconds) + body)


def _end_with_parent(*, by_kernel: bool) -> None:
    """End this process when the trainer ends, however that happens."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if by_kernel and sys.platform == "linux":
        # This also ends a worker that hangs inside a simulator. The kernel watches the thread that started this
        # process, so it is used only if that is the trainer's main thread.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    sentinel = parent.sentinel

    def watch() -> None:
        wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="clipup-parent-watch", daemon=True).start()
