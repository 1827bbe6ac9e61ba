"""The entry point: find the command, call it, turn errors into one line and an exit code."""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Generator
from types import FrameType

from clipup import __version__
from clipup.cli.arguments import OneLineParser
from clipup.cli.imports import let_import
from clipup.cli.registry import COMMANDS, load
from clipup.errors import ClipUpError, Diverged, EnvironmentFault, InvalidArgument, printable, reason
from clipup.files import drop_output, fill_standard_streams, nowhere
from clipup.suggestions import did_you_mean
from clipup.training.signals import EXIT_CODES, none_swallowed

USAGE_ERROR = 2
RUN_FAILED = 1


def main(words: list[str] | None = None) -> int:
    """Run the command that `words` (default: the command line) name; return the exit code.

    0: done. 1: a run failed (the search diverged, every environment failed). 2: an argument was wrong, or a file could
    not be read or written. 130, 143 and 129: stopped by Ctrl-C, SIGTERM and a closed terminal.
    """
    try:
        return _with_streams(sys.argv[1:] if words is None else words, own_process=words is None)
    except _Stopped as stopped:  # it came at the very end, maybe while signals were being let go of
        if words is None:
            _let_go()
        return stopped.exit_code


def _with_streams(words: list[str], *, own_process: bool) -> int:
    fill_standard_streams()
    with contextlib.ExitStack() as streams:
        came = streams.enter_context(_signals(own_process=own_process))
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is None:  # started with it closed (`>&-`)
                setattr(sys, name, streams.enter_context(nowhere()))
                streams.callback(setattr, sys, name, None)
            elif isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a terminal that cannot show ± shows something else
        try:
            code = _main(words)
        except BaseException:
            if not came:
                raise
            code = RUN_FAILED
        if came and code in (RUN_FAILED, USAGE_ERROR):  # the signal fell into the middle of something, which failed
            code = EXIT_CODES[came[0]]
        try:
            sys.stdout.flush()
        except (OSError, ValueError):  # the disk behind it is full; Python would complain again at exit
            drop_output(1)
        return code


class _Stopped(KeyboardInterrupt):
    """A signal came while no run was there to be saved."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number.name)
        self.exit_code = EXIT_CODES[number]


@contextlib.contextmanager
def _signals(*, own_process: bool) -> Generator[list[signal.Signals]]:
    """Turn the first signal into an exception, and ignore the next ones: a storm of them must not disturb the end.

    Yields the list of those that came.

    While a run trains, `clipup.training.signals` handles them. At the end of a process of our own they are ignored:
    everything is saved, and a signal during Python's clean-up would print a traceback or change the exit code.
    """
    came: list[signal.Signals] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return

    def stop(number: int, frame: FrameType | None) -> None:
        came.append(signal.Signals(number))
        if len(came) == 1:
            raise _Stopped(came[0])

    def stop_again(dropped: BaseException) -> None:
        number = came[0] if came else signal.SIGTERM
        came.clear()
        os.kill(os.getpid(), number)

    before = {number: signal.getsignal(number) for number in EXIT_CODES}
    for number, handler in before.items():
        if handler in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, stop)
    try:
        with none_swallowed((_Stopped,), stop_again):
            yield came
    finally:
        if own_process:
            _let_go()
        for number, handler in before.items() if not own_process else ():
            if handler is not None:
                signal.signal(number, handler)


def _let_go() -> None:
    """Ignore signals from now on."""
    for number in EXIT_CODES:
        signal.signal(number, signal.SIG_IGN)
    if sys.platform != "win32":  # libraries give them another action while they end, as Ray does
        signal.pthread_sigmask(signal.SIG_BLOCK, EXIT_CODES)


def _main(words: list[str]) -> int:
    try:
        with _messages(quiet="--quiet" in words):
            return _dispatch(words)
    except (Diverged, EnvironmentFault) as error:
        return _complain(error, RUN_FAILED)
    except BrokenPipeError:
        # The reader of our output is gone, as after `| head`; Python would complain again while flushing at exit.
        drop_output(1)
        return 0
    except (ClipUpError, OSError, UnicodeError, RecursionError) as error:
        return _complain(error, USAGE_ERROR)
    except MemoryError as error:
        sys.stderr.write(f"clipup: not enough memory ({error}); use smaller populations, networks or lanes\n")
        return RUN_FAILED
    except _Stopped as stopped:
        sys.stderr.write(f"clipup: stopped by {stopped}\n")
        return stopped.exit_code
    except KeyboardInterrupt as error:
        return int(getattr(error, "exit_code", 130))


class _Messages(logging.Handler):
    """Writes what the library says to standard error as it is now: a live display shows it above its table."""

    def emit(self, record: logging.LogRecord) -> None:
        from clipup.cli.output import note

        with contextlib.suppress(OSError, ValueError):
            note(record.getMessage())


@contextlib.contextmanager
def _messages(*, quiet: bool) -> Generator[None]:
    """Show the library's messages, such as that something is being compiled; only warnings with `quiet`."""
    logger, handler = logging.getLogger("clipup"), _Messages()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING if quiet else logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        sys.stdout.write(overview())
        return 0
    if words[0] in ("-V", "--version"):
        sys.stdout.write(f"clipup {__version__}\n")
        return 0
    if words[0] not in COMMANDS:
        raise InvalidArgument(f"unknown command {words[0]!r}{did_you_mean(words[0], COMMANDS)} (see: clipup --help)")
    module = load(words[0])
    parser = OneLineParser(f"clipup {words[0]}", module.DESCRIPTION, module.EXAMPLES)
    module.configure(parser)
    arguments = parser.parse_all(words[1:])
    let_import(getattr(arguments, "env", None), [*getattr(arguments, "imports", ()), *_wrapper_modules(arguments)])
    return module.run(arguments)


def _wrapper_modules(arguments: argparse.Namespace) -> list[str]:
    """The modules of the wrappers that were typed."""
    typed = getattr(arguments, "wrapper", None)
    if not typed:
        return []
    from clipup.engines.wrappers import parse_wrappers

    return [wrapper.module for text in typed for wrapper in parse_wrappers(text)]


def overview() -> str:
    """What `clipup --help` prints."""
    width = max(map(len, COMMANDS))
    listing = "\n".join(f"  {name:<{width}}  {summary}" for name, summary in COMMANDS.items())
    return f"""clipup: train controllers without backpropagation (PGPE with the ClipUp optimizer)

usage: clipup COMMAND …    (clipup COMMAND --help explains each, with examples)

{listing}

start here:
  clipup train LunarLanderContinuous-v3       trains, shows progress, leaves runs/LunarLanderContinuous-v3-1
  clipup evaluate runs/LunarLanderContinuous-v3-1
  clipup record runs/LunarLanderContinuous-v3-1 -o lander.mp4
"""


def _complain(error: BaseException, code: int) -> int:
    text = printable(" ".join(str(error).split()) or type(error).__name__)
    if isinstance(error, OSError) and not isinstance(error, ClipUpError):
        text = printable(f"{error.filename or 'file system'}: {reason(error)}")
    from clipup.cli.output import fitted

    sys.stderr.write(fitted(f"clipup: {text}", sys.stderr) + "\n")
    return code
