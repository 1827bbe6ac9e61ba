"""A Ray for one run on this machine: no other machine can reach it, and it ends with the process that started it.

Ray's servers listen on all interfaces, unless the node's address is that of the machine itself, 127.0.0.1. `ray.init`
replaces that address by an outer one, except on desktop systems. `PrivateRay` asks for what it does there. A random
token, which every process of this Ray inherits, keeps other users of the machine out.
"""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from clipup.errors import FileFault, InvalidArgument
from clipup.files import Directory

OLDEST = (2, 52)
"""The first version with tokens."""
ADDRESS = "127.0.0.1"

_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_SETTINGS = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN")
# Waits until the process that started it is gone, or closes the pipe. Then it ends what is left. A handle of a process
# (pidfd) never means another process that got the same number later.
_WATCH = """
import os, signal, sys
handles = []
for number in sys.argv[1:]:
    try:
        handles.append(os.pidfd_open(int(number)))
    except OSError:
        pass
while os.read(0, 1):
    pass
for handle in handles:
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        pass
"""


class PrivateRay:
    """Starts a Ray that this machine alone can reach, and makes sure that none of its processes outlives this one."""

    def __init__(self) -> None:
        """Nothing is started yet."""
        self._ray: Any = None
        self._before: dict[str, str | None] = {}
        self._watch: subprocess.Popen[bytes] | None = None

    def start(self, ray: Any, **options: object) -> None:
        """Call ``ray.init`` for a new cluster on this machine."""
        check_version(str(ray.__version__))
        self._ray = ray
        self._before = {name: os.environ.get(name) for name in _SETTINGS}
        os.environ["RAY_AUTH_MODE"] = "token"
        if not os.environ.get("RAY_AUTH_TOKEN_PATH"):  # the user's own token is as good
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        _read_settings(ray)
        earlier = descendants(os.getpid())
        constants: Any = ray._private.ray_constants
        is_cluster, constants.ENABLE_RAY_CLUSTER = constants.ENABLE_RAY_CLUSTER, False
        services: Any = ray._private.services
        popen = services.ConsolePopen
        services.ConsolePopen = partial(_start_apart, popen)
        try:
            with own_handlers():
                ray.init(address="local", _node_ip_address=ADDRESS, **options)
        except BaseException:
            with no_signals():
                ray.shutdown()
            for number in descendants(os.getpid()) - earlier:
                with suppress(OSError):
                    os.kill(number, signal.SIGKILL)
            self.close()
            raise
        finally:
            constants.ENABLE_RAY_CLUSTER = is_cluster
            services.ConsolePopen = popen
        started = sorted(descendants(os.getpid()) - earlier)
        # In a session of its own: Ctrl-C in the terminal must not end it.
        self._watch = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WATCH, *map(str, started)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def close(self) -> None:
        """End what is left of the cluster; may be called more than once."""
        watch, self._watch = self._watch, None
        if watch is not None and watch.stdin is not None:
            watch.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                watch.wait(10)
        before, self._before = self._before, {}
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if before:
            _read_settings(self._ray)


def _start_apart(popen: Any, *words: Any, preexec_fn: Callable[[], None] | None = None, **options: Any) -> Any:
    """Start a process of Ray in a group of its own.

    A signal to our group, as from a terminal or a batch system, must not end Ray under the run.
    """

    def begin() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # see `own_handlers`
        if preexec_fn is not None:
            preexec_fn()

    return popen(*words, preexec_fn=begin, process_group=0, **options)


@contextmanager
def own_handlers() -> Generator[None]:
    """Hold SIGTERM back during ``ray.init``, which installs handlers of its own: in Python, and in C++ one that aborts.

    Ray's threads begin here, so that they never get this signal.
    """
    if not _may_handle():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextmanager
def no_signals() -> Generator[None]:
    """Ignore signals while Ray shuts down: half shut down, it ends this process with an exit code of its own."""
    if not _may_handle():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _ENDING}
    try:
        with _kept_from_c():
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _may_handle() -> bool:
    return sys.platform != "win32" and threading.current_thread() is threading.main_thread()


@contextmanager
def _kept_from_c() -> Generator[None]:
    """Keep what SIGTERM does while Ray shuts down.

    Its C++ code gives the signal its default action back, whatever Python's handler is. So a thread says again and
    again what it should be.
    """
    c_signal, done = ctypes.CDLL(None).signal, threading.Event()
    c_signal.argtypes, c_signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    kept = c_signal(signal.SIGTERM, int(signal.SIG_IGN))

    def keep() -> None:
        while not done.is_set():
            c_signal(signal.SIGTERM, kept)
            done.wait(0.0005)

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _read_settings(ray: Any) -> None:
    """Make Ray read the variables about tokens again; it read them when it was imported."""
    ray._raylet.Config.initialize("")
    ray._raylet.AuthenticationTokenLoader.instance().reset_cache()


def check_version(text: str) -> None:
    """Refuse a Ray that cannot be made safe.

    >>> check_version("2.60.0")
    """
    found = tuple(int(part) for part in re.findall("[0-9]+", text)[:2])
    if found < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise InvalidArgument(
            f"Ray {text} lets other machines run code here; expected {oldest} or newer: pip install 'ray>={oldest}'"
        )


def descendants(process: int) -> set[int]:
    """Return the numbers of all processes that a process started, and of those that they started."""
    parents: dict[int, int] = {}
    with Directory("/proc") as proc:
        for name in proc.names():
            if name.isdecimal():
                # The name of a program, in parentheses, may hold anything; the parent is the second word after it.
                with suppress(FileFault, IndexError, ValueError), proc.child(name) as one:
                    words = one.read("stat", 4096, "a status").rpartition(b")")[2].split()
                    parents[int(name)] = int(words[1])
    found: set[int] = set()
    fresh = {process}
    while fresh:
        fresh = {child for child, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return found
