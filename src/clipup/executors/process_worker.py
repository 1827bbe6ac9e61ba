"""The life of a worker process, from its first line to its end."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import signal
import struct
import sys
import threading
import time
from multiprocessing.connection import Connection, wait

from clipup.errors import NoProcesses
from clipup.executors.worker import Worker, pack_error

READY, SUBJECT, RANGE, DONE, ERROR = range(1, 6)

HEADER = struct.Struct("<BIQId")  # kind, job, start, number of indices, seconds
SAFE_PATH, OURS = "PYTHONSAFEPATH", "clipup"  # any value turns it on; this one says that it is for workers alone
_PR_SET_PDEATHSIG = 1


def main(connection: Connection, setup: bytes, die_with_parent: bool) -> None:
    """Work until the other end of `connection` is closed."""
    # Signals meant for the whole group (Ctrl-C, a scheduler's SIGTERM) are the trainer's business: it asks for a few
    # more results, and then ends its workers.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if os.environ.get(SAFE_PATH) == OURS:
        del os.environ[SAFE_PATH]  # an environment's own processes are as their user means them
    _end_with_parent(by_kernel=die_with_parent)
    # Workers are daemonic, so that they end with their trainer; their environments may have processes all the same.
    multiprocessing.current_process()._config["daemon"] = False  # pyright: ignore
    try:
        worker = _make(setup)
    except BaseException as error:
        _send(connection, ERROR, pack_error(error))
        return
    try:
        _send(connection, READY, pickle.dumps(worker.description))
        _serve(connection, worker)
    except (EOFError, OSError):
        pass  # the trainer closed the connection, or is gone
    finally:
        worker.close()


def _make(setup: bytes) -> Worker:
    try:
        loaded = pickle.loads(setup)  # noqa: S301  # from the process that started this one
    except (AttributeError, ImportError) as error:
        raise NoProcesses(
            f"worker processes cannot import the environment's callable: {error}; "
            "define it at the top level of a module or of the script that is run"
        ) from error
    return Worker(loaded)


def _serve(connection: Connection, worker: Worker) -> None:
    while True:
        message = connection.recv_bytes()
        kind, job, start, count, _ = HEADER.unpack_from(message)
        if kind == SUBJECT:
            worker.prepare(pickle.loads(memoryview(message)[HEADER.size :]))  # noqa: S301  # as above
            continue
        began = time.perf_counter()
        try:
            data = worker.run(start, start + count)
        except Exception as error:
            _send(connection, ERROR, pack_error(error))
        else:
            connection.send_bytes(HEADER.pack(DONE, job, start, count, time.perf_counter() - began) + data)


def _send(connection: Connection, kind: int, body: bytes) -> None:
    connection.send_bytes(HEADER.pack(kind, 0, 0, 0, 0.0) + body)


def _end_with_parent(*, by_kernel: bool) -> None:
    """See to it that this process never outlives the trainer, however that ends."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if by_kernel and sys.platform == "linux":
        # Reaches a worker that is stuck inside a simulator. The kernel watches the thread that started this process,
        # so it is asked only where that is the trainer's main thread.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    sentinel = parent.sentinel

    def watch() -> None:
        wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="clipup-parent-watch", daemon=True).start()
