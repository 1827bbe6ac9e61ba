"""Every error that clipup raises on purpose, under one root.

A message is one line: what was expected, what arrived, what to do. Most classes also derive from the built-in that
a caller would expect (``ValueError`` for a bad argument), so code that knows nothing of clipup can still catch them.
"""

from __future__ import annotations

import re

# Control characters drive a terminal; those that turn the direction of writing, or take no width, disguise a name. A
# lone surrogate stands for a byte that is no text.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]")


def printable(text: str, *, lines: bool = False) -> str:
    """Return text that may come from a file as it can be shown: what could drive a terminal is spelled out.

    The ends of lines become spaces, unless `lines` keeps them.

    >>> printable("a\\x1b[2Jb\\nc")
    'a\\\\x1b[2Jb c'
    """
    if lines:
        return "\n".join(printable(line) for line in text.split("\n"))
    return _UNPRINTABLE.sub(_spelled, text.replace("\n", " ").replace("\t", " "))


def _spelled(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


class ClipUpError(Exception):
    """Root of all errors raised by clipup on purpose. Its text can be shown on a terminal, whatever a file holds."""

    def __str__(self) -> str:
        return printable(super().__str__())


class InvalidArgument(ClipUpError, ValueError):
    """An argument, flag or configuration value breaks a rule."""


class InvalidFitness(ClipUpError, ValueError):
    """The fitnesses that were told cannot be used: wrong number, or not finite where that matters."""


class WrongOrder(ClipUpError, RuntimeError):
    """A call came at a moment when it has no meaning, such as ``tell`` without ``ask``."""


class Diverged(ClipUpError, ArithmeticError):
    """The search left the range of float32; nothing was changed."""


class StateMismatch(ClipUpError, ValueError):
    """A saved state does not belong to the object that it is loaded into."""


class MissingDependency(ClipUpError, ImportError):
    """An optional library is not installed."""

    @classmethod
    def of(cls, library: str, *, extra: str) -> MissingDependency:
        """Return the error for `library`, which is part of the optional dependencies named `extra`."""
        return cls(f"{library} is not installed; install it with: pip install 'clipup[{extra}]'")


class UnknownEnvironment(InvalidArgument):
    """No engine has an environment of that name."""


class BrokenTask(InvalidArgument):
    """A task was found that does not work and that no other engine can run, so none is asked for it."""


class NoProcesses(InvalidArgument):
    """The environment, or the script that is run, is not made for worker processes."""


class EnvironmentFault(ClipUpError, RuntimeError):
    """An environment raised, never ended, or broke its own interface."""


class ScoreFault(ClipUpError, RuntimeError):
    """A score function raised; the message names the candidate."""


class PolicyFault(ClipUpError, RuntimeError):
    """A policy of one's own raised, or broke its interface."""


class FileFault(ClipUpError, ValueError):
    """A file is unreadable, damaged, or of a format newer than this version of clipup."""

    @classmethod
    def of(cls, path: object, done: str, error: OSError) -> FileFault:
        """Return the error for a `path` that cannot be ``"read"``, ``"written"`` or ``"made"`` (`done`)."""
        return cls(f"{path}: cannot be {done}: {reason(error)}")


class RunExists(ClipUpError, RuntimeError):
    """A run directory is already there and would be overwritten."""


class RunBusy(ClipUpError, RuntimeError):
    """Another process is working on the same run directory."""


def one_line(error: BaseException) -> str:
    """Return an exception of someone else's as one line of text."""
    text = printable(" ".join(str(error).split()))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def reason(error: OSError) -> str:
    """Return what the operating system says went wrong, without the error number and the path."""
    return error.strerror or str(error)
