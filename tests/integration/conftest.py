"""The `clipup` command as a user's shell would start it, and a quicker way: in a fork of the test process."""

import faulthandler
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from clipup.cli.main import main

# A shell starts what runs in the background with Ctrl-C ignored, and children inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SOURCE = str(Path(__file__).parents[2] / "src")

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": SOURCE, "PYTHONWARNINGS": "ignore"}


@pytest.fixture
def clipup(tmp_path: Path) -> Command:
    """Run `clipup WORD…` in an empty directory; extra keywords go to `subprocess.run`."""

    def run(*words: object, **options: object) -> "subprocess.CompletedProcess[str]":
        settings: dict[str, object] = {"cwd": tmp_path, "env": environment(), "timeout": 240, **options}
        command = [sys.executable, "-m", "clipup", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False, **settings)  # type: ignore[call-overload]

    return run


@pytest.fixture
def start_clipup(tmp_path: Path) -> Callable[..., "subprocess.Popen[str]"]:
    """Start `clipup WORD…` and leave it running; whatever still runs afterwards is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: object) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "clipup", *map(str, words)],
            cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield start  # type: ignore[misc]
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


SECONDS = 60
MEMORY = 2 * 1024**3
"""Besides what the test process has already."""


def run_forked(
    words: list[str],
    output: Path,
    *,
    streams: Callable[[], None] | None = None,
    meanwhile: Callable[[int], None] | None = None,
) -> int:
    """Run a command in a fork of this process, with limits of time and memory; both its streams go to `output`.

    A start takes milliseconds, because everything is imported already. Returns the exit code, or minus the signal that
    ended it. `streams` changes the standard streams in the child; `meanwhile` gets the child's number while it runs.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads, which are idle ones of BLAS
        child = os.fork()
    if child == 0:
        code = 99
        try:
            faulthandler.disable()
            sink = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(sink, 1)
            os.dup2(sink, 2)
            os.close(sink)
            sys.stdout = os.fdopen(1, "w", closefd=False)
            sys.stderr = os.fdopen(2, "w", closefd=False)
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
            if streams is not None:
                streams()
            code = main(words)
        except BaseException:
            os.write(os.open(output, os.O_WRONLY | os.O_APPEND), traceback.format_exc().encode())
        finally:
            for stream in (sys.stdout, sys.stderr):
                try:
                    if stream is not None:
                        stream.flush()
                except (OSError, ValueError):
                    pass
            os._exit(code)
    if meanwhile is not None:
        meanwhile(child)
    deadline = time.monotonic() + SECONDS
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -signal.SIGKILL
        time.sleep(0.002)


@pytest.fixture(scope="session")
def forked() -> Callable[..., int]:
    """Return `run_forked`."""
    return run_forked
