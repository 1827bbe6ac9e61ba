"""Keeps what a simulator prints out of standard output."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Generator


@contextlib.contextmanager
def quiet_output() -> Generator[None]:
    """Send what native code writes to standard output to standard error instead.

    Bullet prints ``pybullet build time`` when imported and ``argv[0]=`` for each world, from C. Output that another
    program reads (``clipup … --json``) must not be mixed with that.
    """
    try:
        saved = os.dup(1)
    except OSError:  # no standard output at all
        yield
        return
    try:
        _flush()
        with contextlib.suppress(OSError):  # no standard error
            os.dup2(2, 1)
        yield
    finally:
        _flush()
        os.dup2(saved, 1)
        os.close(saved)


def _flush() -> None:
    """Empty the buffers of Python's and of C's standard output."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).fflush(None)
