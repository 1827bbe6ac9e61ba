"""Ctrl-C, SIGTERM and a closed terminal (SIGHUP) without half-done work.

The first signal ends an evaluation at once: an evaluation changes nothing, so it can be dropped anywhere. Everything
else is finished first. A second Ctrl-C is an ordinary `KeyboardInterrupt`. Files are replaced whole, so only the
current generation can be lost.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator
from types import FrameType

EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
if hasattr(signal, "SIGHUP"):  # Windows has none
    EXIT_CODES[signal.SIGHUP] = 129


class Interrupted(BaseException):
    """Ends an evaluation. Not an `Exception`, so that no environment's error handling can swallow it."""


class Interruption:
    """While entered, SIGINT, SIGTERM and SIGHUP are noted and do not end the process.

    In threads other than the main one, where Python allows no handlers, it does nothing.
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._allowed = False
        self._previous: dict[signal.Signals, object] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in EXIT_CODES:
                if number not in (signal.SIGINT, signal.SIGTERM) and signal.getsignal(number) == signal.SIG_IGN:
                    continue  # started with nohup: a closed terminal must change nothing
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # pyright: ignore[reportArgumentType]
        self._previous.clear()

    @contextlib.contextmanager
    def allowed(self) -> Generator[None]:
        """Within this block a signal raises `Interrupted` at once; elsewhere it is only noted."""
        self._allowed = True
        try:
            if self.signal is not None:  # looked at only now, so that no signal is missed in between
                raise Interrupted
            yield
        finally:
            self._allowed = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = self.signal or signal.Signals(number)
        if self._allowed:
            self._allowed = False
            raise Interrupted
