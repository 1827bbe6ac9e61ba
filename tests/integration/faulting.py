"""Runs a `clipup` command in child processes, each with one fault of the disk, and resumes what is left.

Called as ``python faulting.py START WHOLE SCRATCH FAULTS -- resume words``. START is a run that was stopped early and
WHOLE the same run at its end. For each fault, START is copied to SCRATCH and resumed while one operation on a file
fails: it is refused, or half of the bytes are written. The command must end with 0 or 2, in a few lines without a
traceback. Then the run is resumed without a fault, and its files must be those of WHOLE. Everything is imported once
and children are forked, so that a fault costs milliseconds. Prints, as JSON, how many faults ended a command.
"""

import errno
import itertools
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium  # noqa: F401  (imported before forking)
import numba  # noqa: F401

import clipup.cli.resume
import clipup.engines  # noqa: F401
from clipup.cli.main import main
from clipup.files import Directory
from clipup.runs import line_file

REASONS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS, errno.EMFILE, errno.EDQUOT)
KINDS = ("open", "write", "append", "fsync", "replace", "remove", "truncate", "scandir")


def fail_at(kind: str, number: int, reason: int) -> None:
    """Make the `number`-th operation of that kind below a run directory fail."""
    left = [number]

    def check() -> None:
        left[0] -= 1
        if left[0] == 0:
            Path(os.environ["FAULT_HIT"]).touch()
            raise OSError(reason, os.strerror(reason))

    def checked(function: Callable[..., Any], applies: Callable[..., bool]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if applies(*arguments, **options):
                check()
            return function(*arguments, **options)

        return call

    def below(*arguments: Any, **options: Any) -> bool:
        return options.get("dir_fd") is not None or options.get("src_dir_fd") is not None

    always = lambda *arguments, **options: True  # noqa: E731
    if kind == "open":
        os.open = checked(os.open, below)
    elif kind == "fsync":
        os.fsync = checked(os.fsync, always)
    elif kind == "replace":
        os.replace = checked(os.replace, below)
    elif kind == "remove":
        os.unlink = checked(os.unlink, below)
    elif kind == "truncate":
        os.ftruncate = checked(os.ftruncate, always)
    elif kind == "scandir":
        os.scandir = checked(os.scandir, lambda place: isinstance(place, int))
    elif kind == "append":
        append = line_file.LineFile.append

        def half_a_line(file: line_file.LineFile, line: bytes) -> None:
            left[0] -= 1
            if left[0] == 0:
                os.write(file._file.fileno(), line[: len(line) // 2])  # what the system wrote before it was full
                left[0] = 1
                check()
            append(file, line)

        line_file.LineFile.append = half_a_line  # type: ignore[method-assign]
    else:
        create = Directory.create

        def half_a_file(directory: Directory, name: str) -> Any:
            return HalfWritten(create(directory, name), check)

        Directory.create = half_a_file  # type: ignore[method-assign]


class HalfWritten:
    """A file whose write fails after half of the bytes."""

    def __init__(self, file: Any, check: Callable[[], None]) -> None:
        self._file, self._check = file, check

    def __enter__(self) -> "HalfWritten":
        return self

    def __exit__(self, *rest: object) -> None:
        self._file.close()

    def write(self, data: bytes) -> int:
        try:
            self._check()
        except OSError:
            self._file.write(data[: len(data) // 2])
            self._file.flush()
            raise
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()


def attempt(words: list[str], output: Path, fault: tuple[str, int, int] | None) -> int:
    """Fork a child that runs the command; return its exit code."""
    child = os.fork()
    if child == 0:
        sink = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        if fault is not None:
            fail_at(*fault)
        code = 99
        try:
            code = main(words)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def content(run: Path) -> dict[str, bytes]:
    names = ["records.jsonl", "policy.safetensors", "best-policy.safetensors"]
    newest = sorted((run / "checkpoints").iterdir())[-1]
    return {name: (run / name).read_bytes() for name in [*names, f"checkpoints/{newest.name}"]}


def play(start: Path, whole: Path, scratch: Path, faults: int, words: list[str]) -> None:
    """Try so many faults; stop with an error at the first that is not survived."""
    expected, hits = content(whole), 0
    hit, output, run = scratch / "hit", scratch / "output", scratch / "run"
    os.environ["FAULT_HIT"] = str(hit)
    for place, number in itertools.islice(enumerate(itertools.count()), faults):
        kind, when = KINDS[number % len(KINDS)], 1 + number // len(KINDS)
        fault = (kind, when, REASONS[place % len(REASONS)])
        shutil.rmtree(run, ignore_errors=True)
        hit.unlink(missing_ok=True)
        shutil.copytree(start, run)
        code = attempt([word.format(run=run) for word in words], output, fault)
        shown = output.read_text()
        about = f"{fault}: ended with {code}:\n{shown[-2000:]}"
        assert code in (0, 2) and "Traceback" not in shown, about
        assert code == 0 or (hit.exists() and shown.splitlines()[-1].startswith("clipup: ")), about
        assert not list(run.glob("**/*.partial")) or code == 2, about
        hits += code == 2
        code = attempt([word.format(run=run) for word in words], output, None)
        assert code == 0, f"{fault}, resumed: ended with {code}:\n{output.read_text()[-2000:]}"
        assert content(run) == expected, f"{fault}: other bytes"
    print(json.dumps({"faults": faults, "ended a command": hits}))


if __name__ == "__main__":
    divider = sys.argv.index("--")
    play(*map(Path, sys.argv[1:4]), int(sys.argv[4]), sys.argv[divider + 1 :])
