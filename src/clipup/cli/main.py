"""The entry point: find the command, call it, turn errors into one line and an exit code."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
from collections.abc import Generator

from clipup import __version__
from clipup.cli.arguments import OneLineParser
from clipup.cli.imports import let_import
from clipup.cli.registry import COMMANDS, load
from clipup.errors import ClipUpError, Diverged, EnvironmentFault, InvalidArgument, reason
from clipup.suggestions import did_you_mean

USAGE_ERROR = 2
RUN_FAILED = 1


def main(words: list[str] | None = None) -> int:
    """Run the command that `words` (default: the command line) name; return the exit code.

    0: done. 1: a run failed (the search diverged, every environment failed). 2: an argument was wrong, or a file could
    not be read or written. 130, 143 and 129: stopped by Ctrl-C, SIGTERM and a closed terminal.
    """
    words = sys.argv[1:] if words is None else words
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show ± shows something else
    try:
        with _messages(quiet="--quiet" in words):
            return _dispatch(words)
    except (Diverged, EnvironmentFault) as error:
        return _complain(error, RUN_FAILED)
    except BrokenPipeError:
        # The reader of our output is gone, as after `| head`; Python would complain again while flushing at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ClipUpError, OSError, UnicodeError) as error:
        return _complain(error, USAGE_ERROR)
    except MemoryError as error:
        sys.stderr.write(f"clipup: not enough memory ({error}); use smaller populations, networks or lanes\n")
        return RUN_FAILED
    except KeyboardInterrupt as error:
        return int(getattr(error, "exit_code", 130))


class _Messages(logging.Handler):
    """Writes what the library says to standard error as it is now: a live display shows it above its table."""

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(record.getMessage() + "\n")
            sys.stderr.flush()


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
    let_import(getattr(arguments, "env", None), getattr(arguments, "imports", ()))
    return module.run(arguments)


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
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, OSError) and not isinstance(error, ClipUpError):
        text = f"{error.filename or 'file system'}: {reason(error)}"
    sys.stderr.write(f"clipup: {text}\n")
    return code
