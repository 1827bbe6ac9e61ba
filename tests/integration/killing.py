"""Runs one `clipup` command again and again in child processes, and kills each with SIGKILL, until one may finish.

Called as ``python killing.py SEED KILLS RUN -- first command``; after the first command, ``clipup resume RUN`` is what
is killed. Everything is imported once and children are forked, so that a kill costs milliseconds and nearly all of
them hit a run at work. Half of the kills come from outside at a random moment; the others at a chosen point of a
write: with half of the bytes written, before and after the rename, in the middle of a record line.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import envpool  # noqa: F401  (imported before forking)
import gymnasium  # noqa: F401
import mujoco  # noqa: F401
import numba  # noqa: F401

import clipup.cli.resume
import clipup.cli.train
import clipup.engines  # noqa: F401
from clipup.cli.main import main
from clipup.runs import line_file


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_when(kind: str, number: int) -> None:
    """Make this process kill itself at the `number`-th write of that kind."""
    left = [number]

    def now() -> bool:
        left[0] -= 1
        return left[0] == 0

    sync, replace, append = os.fsync, os.replace, line_file.LineFile.append

    def half_written(descriptor: int) -> None:
        if now():
            os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
            die()
        sync(descriptor)

    def before_rename(*names: object, **directories: int) -> None:
        if now():
            die()
        replace(*names, **directories)

    def after_rename(*names: object, **directories: int) -> None:
        replace(*names, **directories)
        if now():
            die()

    def half_a_line(file: line_file.LineFile, line: bytes) -> None:
        if now():
            append(file, line[: len(line) // 2])
            die()
        append(file, line)

    if kind == "half":
        # Records are synced too, and are never cut below what a checkpoint counts; only whole files are halved.
        os.fsync = lambda descriptor: half_written(descriptor) if _is_partial(descriptor) else sync(descriptor)
    elif kind == "before":
        os.replace = before_rename
    elif kind == "after":
        os.replace = after_rename
    else:
        line_file.LineFile.append = half_a_line  # type: ignore[method-assign]


def _is_partial(descriptor: int) -> bool:
    return Path(f"/proc/self/fd/{descriptor}").readlink().name.endswith(".partial")


def attempt(words: list[str], generator: random.Random, *, kill: bool, run: Path) -> int | None:
    """Fork a child that runs the command; return its exit code, None when it was killed."""
    kind = generator.choice(["outside", "outside", "outside", "half", "before", "after", "line"])
    number = generator.randint(1, 9)
    child = os.fork()
    if child == 0:
        if kill and kind != "outside":
            die_when(kind, number)
        os._exit(main(words))
    if kill and kind == "outside":
        size, begun = _size(run), time.monotonic()
        wanted = size + generator.randint(0, 2500)
        while _size(run) < wanted and time.monotonic() - begun < 20 and os.waitpid(child, os.WNOHANG)[0] == 0:
            time.sleep(0.001)
        time.sleep(generator.random() * 0.01)
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            return 0
    try:
        _, status = os.waitpid(child, 0)
    except ChildProcessError:
        return 0
    return None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _size(run: Path) -> int:
    try:
        return (run / "records.jsonl").stat().st_size
    except OSError:
        return 0


def play(seed: int, kills: int, run: Path, first: list[str]) -> int:
    """Kill `kills` times, then let the run finish. Print how many kills there were."""
    generator = random.Random(seed)
    killed, words = 0, first
    for _ in range(20 * kills):
        code = attempt(words, generator, kill=killed < kills, run=run)
        if code is None:
            killed += 1
        elif code != 0:
            return code
        elif killed >= kills:
            print(killed)
            return 0
        else:
            print(f"finished after {killed} kills already")
            return 3
        if (run / "config.toml").exists():
            words = ["resume", str(run), "--quiet"]
    return 4


if __name__ == "__main__":
    divider = sys.argv.index("--")
    sys.exit(play(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[divider + 1 :]))
