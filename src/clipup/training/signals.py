"""Ctrl-C, SIGTERM and a closed terminal (SIGHUP) without half-done work.

The first signal ends an evaluation at once: an evaluation changes nothing, so it can be dropped anywhere. Everything
else is finished first. A second Ctrl-C is an ordinary `KeyboardInterrupt`. Files are replaced whole, so only the
current generation can be lost.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
if hasattr(signal, "SIGHUP"):  # Windows has none
    EXIT_CODES[signal.SIGHUP] = 129


class Interrupted(BaseException):
    """Ends an evaluation. Not an `Exception`, so that no environment's error handling can swallow it."""


@contextlib.contextmanager
def none_swallowed(kinds: tuple[type[BaseException], ...], again: Callable[[BaseException], None]) -> Generator[None]:
    """While entered, an exception of a signal handler is not lost where no caller can see it.

    A handler runs wherever the program is: also in a callback from C code (Numba has some) or in ``__del__``. Python
    prints and drops what is raised there. Here `again` gets it a moment later, in another thread, to raise it again.
    """
    before = sys.unraisablehook

    def hook(dropped: UnraisableHookArgs) -> None:
        if not isinstance(dropped.exc_value, kinds):
            before(dropped)
            return
        timer = threading.Timer(0.05, again, [dropped.exc_value])
        timer.daemon = True
        timer.start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


class Interruption:
    """While entered, SIGINT, SIGTERM and SIGHUP are noted and do not end the process.

    In threads other than the main one, where Python allows no handlers, it does nothing.
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._inside = False
        self._allowed = False
        self._insisted = False
        self._again = False
        self._previous: dict[signal.Signals, object] = {}
        self._hooks = contextlib.ExitStack()

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._hooks.enter_context(none_swallowed((Interrupted, KeyboardInterrupt), self._raise_again))
            for number in EXIT_CODES:
                if number not in (signal.SIGINT, signal.SIGTERM) and signal.getsignal(number) == signal.SIG_IGN:
                    continue  # started with nohup: a closed terminal must change nothing
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # pyright: ignore[reportArgumentType]
        self._previous.clear()
        self._hooks.close()
        if self._insisted and isinstance(error, Exception):
            raise KeyboardInterrupt from error  # it fell into the middle of something, which then failed

    @contextlib.contextmanager
    def allowed(self) -> Generator[None]:
        """Within this block a signal raises `Interrupted` at once; elsewhere it is only noted."""
        self._inside = self._allowed = True
        try:
            if self.signal is not None:  # looked at only now, so that no signal is missed in between
                raise Interrupted
            yield
        except Exception as error:
            if self.signal is None:
                raise
            # What was raised fell into the middle of something, such as the release of a lock, which then failed.
            raise (KeyboardInterrupt if self._insisted else Interrupted) from error
        finally:
            self._inside = self._allowed = False

    def _raise_again(self, dropped: BaseException) -> None:
        if isinstance(dropped, KeyboardInterrupt):
            self._insisted = False
        self._again = not isinstance(dropped, KeyboardInterrupt)
        os.kill(os.getpid(), signal.SIGINT if isinstance(dropped, KeyboardInterrupt) else self.signal or signal.SIGINT)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._again:
            self._again, self._allowed = False, self._inside
        elif self.signal is not None and number == signal.SIGINT and not self._insisted:
            self._insisted = True  # raised once: a storm of signals must not disturb the end
            raise KeyboardInterrupt
        self.signal = self.signal or signal.Signals(number)
        if self._allowed:
            self._allowed = False
            raise Interrupted
