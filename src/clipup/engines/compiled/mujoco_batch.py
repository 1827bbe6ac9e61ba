"""MuJoCo's own threads (``mjb_apply``), which run a C function for each of some slots and catch MuJoCo's errors."""

from __future__ import annotations

import copy
import ctypes
import threading
from typing import Any, ClassVar

from clipup.errors import InvalidArgument

SPARE_SLOTS = 8
"""Slots beyond one for each thread. A slot ends with an error of MuJoCo's, and its thread goes on with a spare one."""

_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_LOG_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Configuration(ctypes.Structure):
    _fields_ = (("nthread", ctypes.c_int), ("persistent", ctypes.c_bool))


def require_batches(library: Any) -> None:
    """Raise `InvalidArgument` where this MuJoCo is too old."""
    if not hasattr(library, "mjb_apply"):
        raise InvalidArgument("the compiled engine needs MuJoCo 3.17 or newer: pip install -U mujoco")


class MujocoBatch:
    """Threads with one simulator each.

    Parameters
    ----------
    library
        MuJoCo's C library.
    model
        A ``mujoco.MjModel``; MuJoCo makes a copy of it.
    threads
        How many.
    own_models
        Whether every slot gets a model of its own, which a task may change.
    """

    def __init__(self, library: Any, model: Any, threads: int, *, own_models: bool = False) -> None:
        require_batches(library)
        self._library = library
        library.mjb_makeBatch.restype = ctypes.c_void_p
        library.mjb_makeBatch.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)
        library.mjb_apply.argtypes = (
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, _FUNCTION, ctypes.c_void_p, ctypes.c_int,
        )  # fmt: skip
        library.mjb_status.restype = ctypes.POINTER(ctypes.c_int)
        library.mjb_status.argtypes = (ctypes.c_void_p,)
        library.mjb_error.restype = ctypes.c_char_p
        library.mjb_error.argtypes = (ctypes.c_void_p, ctypes.c_int)
        library.mjb_deleteBatch.argtypes = (ctypes.c_void_p,)
        self.slots = threads + SPARE_SLOTS
        configuration = _Configuration()
        library.mjb_defaultConfig(ctypes.byref(configuration))
        configuration.nthread, configuration.persistent = threads, False
        message = ctypes.create_string_buffer(1024)
        self._batch = library.mjb_makeBatch(
            model._address, self.slots, ctypes.byref(configuration), message, len(message)
        )
        if not self._batch:
            raise InvalidArgument(f"MuJoCo cannot make simulators: {message.value.decode(errors='replace')}")
        self._models = [copy.copy(model) for _ in range(self.slots if own_models else 0)]
        if own_models:
            pointers = (ctypes.c_void_p * self.slots)(*(own._address for own in self._models))
            library.mjb_setModels.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
            library.mjb_setModels(self._batch, pointers)
            self._pointers = pointers  # MuJoCo may read it later

    def apply(self, function: int, argument: int) -> dict[int, str]:
        """Call the C function at an address for every slot, on all threads; return MuJoCo's errors by slot."""
        with Untimed(self._library):
            failed = self._library.mjb_apply(self._batch, None, self.slots, _FUNCTION(function), argument, 0)
        if not failed:
            return {}
        status = self._library.mjb_status(self._batch)
        return {
            slot: " ".join(self._library.mjb_error(self._batch, slot).decode(errors="replace").split())
            for slot in range(self.slots)
            if status[slot]
        }

    def close(self) -> None:
        """End the threads."""
        batch, self._batch = self._batch, None
        if batch:
            self._library.mjb_deleteBatch(batch)


class Untimed:
    """While entered, MuJoCo does not time its own functions.

    Its Python package gives it a clock, which fills ``MjData.timer``. Nothing reads that here, and a step of physics
    asks for the time some twenty times: 4 % of a step of the Humanoid, 15 % of one of Swimmer
    (``benchmarks/physics_overhead.py``). Results do not depend on it.
    """

    _lock: ClassVar = threading.Lock()
    _entered: ClassVar[int] = 0
    _clock: ClassVar[int | None] = None

    def __init__(self, library: Any) -> None:
        self._callback = ctypes.c_void_p.in_dll(library, "mjcb_time")

    def __enter__(self) -> None:
        with Untimed._lock:
            if Untimed._entered == 0:
                Untimed._clock, self._callback.value = self._callback.value, None
            Untimed._entered += 1

    def __exit__(self, *_: object) -> None:
        with Untimed._lock:
            Untimed._entered -= 1
            if Untimed._entered == 0:
                self._callback.value = Untimed._clock


class QuietLog:
    """While entered, MuJoCo neither prints its warnings nor writes them to a file; `messages` keeps the first of them.

    The engine reads the counts of warnings that a simulation had; what is said on loading a model goes to the log.
    """

    def __init__(self, library: Any) -> None:
        self.messages: list[str] = []
        # Older versions have other ways, and print.
        self._set: Any = getattr(library, "mju_setLogHandler", None)
        if self._set is not None:
            self._set.restype, self._set.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
        self._handler = _LOG_HANDLER(self._keep)
        self._previous: int | None = None

    def _keep(self, message: int) -> None:
        if len(self.messages) < 10:
            subject = ctypes.string_at(message + 8)  # after two numbers of four bytes: level and topic
            self.messages.append(" ".join(subject.decode(errors="replace").split()))

    def __enter__(self) -> QuietLog:
        if self._set is not None:
            self._previous = self._set(ctypes.cast(self._handler, ctypes.c_void_p))
        return self

    def __exit__(self, *_: object) -> None:
        if self._set is not None:
            self._set(self._previous)
