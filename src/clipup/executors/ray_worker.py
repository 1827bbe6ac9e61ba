"""What runs inside a Ray actor."""

from __future__ import annotations

import struct
import time

from clipup.executors.work import Setup, Subject
from clipup.executors.worker import Description, Worker, pack_error

_DONE, _ERROR = 1, 2
_HEADER = struct.Struct("<Bd")  # kind, seconds


class RayWorker:
    """A worker whose methods are called from afar. They return errors instead of raising them.

    So an exception that comes out of a call always means that the actor, or the way to it, is lost.
    """

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self._job = 0

    def start(self, setup: Setup) -> Description | bytes:
        """Make the engines; return what the worker is, or a packed error."""
        try:
            self._worker = Worker(setup)
        except Exception as error:
            return pack_error(error)
        return self._worker.description

    def prepare(self, job: int, subject: Subject) -> None:
        """Take the subject of a job."""
        if self._worker is not None:
            self._worker.prepare(subject)
            self._job = job

    def run(self, job: int, start: int, stop: int) -> bytes:
        """Do a range of a job; return a packed reply."""
        if self._worker is None or job != self._job:
            raise RuntimeError("the subject of this range never arrived")
        began = time.perf_counter()
        try:
            data = self._worker.run(start, stop)
        except Exception as error:
            return _HEADER.pack(_ERROR, 0.0) + pack_error(error)
        return _HEADER.pack(_DONE, time.perf_counter() - began) + data


def unpack_reply(reply: bytes) -> tuple[bool, bytes, float]:
    """Return whether `run` succeeded, what it returned, and the seconds that it took."""
    kind, seconds = _HEADER.unpack_from(reply)
    return kind == _DONE, reply[_HEADER.size :], seconds
