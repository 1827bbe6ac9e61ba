"""The one module that opens files: no link is followed below a directory, nothing blocks, files are replaced whole."""

from __future__ import annotations

import ast
import os
import socket
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import clipup
from clipup.errors import ClipUpError, FileFault
from clipup.files import Directory, read_named, write_output
from clipup.runs.lock import DirectoryLock

SOURCE = Path(clipup.__file__).parent

# Calls that open, make or remove a file, wherever they come from.
FORBIDDEN = {
    "read_text", "read_bytes", "write_text", "write_bytes", "mkdir", "makedirs", "unlink", "rmdir", "rename", "touch",
    "symlink_to", "hardlink_to", "symlink", "link", "copyfile", "copytree", "copy2", "rmtree", "iterdir", "scandir",
    "listdir", "glob", "rglob", "truncate", "ftruncate", "mkfifo", "memmap", "fromfile", "tofile", "savez", "loadtxt",
    "savetxt", "genfromtxt", "fdopen", "mkstemp", "NamedTemporaryFile",
}  # fmt: skip
OF_MODULES = {("os", "open"), ("os", "remove"), ("os", "replace"), ("io", "open"), ("np", "load"), ("np", "save"),
              ("json", "load"), ("json", "dump"), ("tomllib", "load"), ("gzip", "open")}  # fmt: skip
OPENERS_OF_OTHER_THINGS = {"webbrowser", "directory", "self"}  # a browser, a run, and their own methods
# On descriptors that files.py opened.
ALLOWED = {"files.py", "runs/line_file.py:ftruncate", "runs/lock.py:truncate", "tuning/journal.py:truncate"}
ELSEWHERE = ("engines/", "compilation/")  # no files of a run: simulators, and machine code in the user's own cache
DECODERS = {("json", "loads"), ("tomllib", "loads")}
DECODING = {"decoding.py", "executors/wire.py", "compilation/cache.py"}  # wire.py: between a trainer and its workers


def calls(path: Path) -> list[tuple[str, str, int]]:
    """Owner, name and line of every call in a module."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                found.append(("", node.func.id, node.lineno))
            elif isinstance(node.func, ast.Attribute):
                owner = node.func.value
                found.append((owner.id if isinstance(owner, ast.Name) else "?", node.func.attr, node.lineno))
    return found


def opens(owner: str, name: str) -> bool:
    if name == "open":
        return owner not in OPENERS_OF_OTHER_THINGS
    return name in FORBIDDEN or (owner, name) in OF_MODULES


def test_no_other_module_opens_makes_or_removes_files() -> None:
    guilty = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if name in ALLOWED or name.startswith(ELSEWHERE):
            continue
        guilty += [
            f"{name}:{line}: {owner}.{call}"
            for owner, call, line in calls(path)
            if opens(owner, call) and f"{name}:{call}" not in ALLOWED
        ]
    assert guilty == []


def test_no_other_module_decodes_what_files_hold() -> None:
    guilty = [
        f"{name}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        if (name := path.relative_to(SOURCE).as_posix()) not in DECODING
        for owner, call, line in calls(path)
        if (owner, call) in DECODERS
    ]
    assert guilty == []


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


# -- below a directory ------------------------------------------------------------------------------------------------


def as_link(path: Path, victim: Path) -> None:
    path.symlink_to(victim)


def as_dangling_link(path: Path, victim: Path) -> None:
    path.symlink_to(victim.with_name("made-by-mistake"))


def as_pipe(path: Path, victim: Path) -> None:
    os.mkfifo(path)


def as_zeros(path: Path, victim: Path) -> None:
    path.symlink_to("/dev/zero")


def as_directory(path: Path, victim: Path) -> None:
    path.mkdir()


def as_socket(path: Path, victim: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


SPECIAL = [as_link, as_dangling_link, as_pipe, as_zeros, as_directory, as_socket]


@pytest.mark.parametrize("special", SPECIAL)
def test_what_is_no_regular_file_is_neither_read_nor_written_nor_waited_for(
    tmp_path: Path, special: Callable[[Path, Path], None]
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "run").mkdir()
    special(tmp_path / "run" / "file", victim)
    with Directory(tmp_path / "run") as directory:
        with pytest.raises(FileFault) as caught:
            directory.read("file", 100, "anything")
        assert "\n" not in str(caught.value)
        with pytest.raises(OSError):
            directory.open("file")
        with pytest.raises(OSError):
            directory.append("file")
        assert not directory.has("file")
        if special is not as_directory:
            with pytest.raises(FileFault):
                directory.child("file")
            directory.replace("file", b"new")  # it replaces the link, not what the link leads to
            assert directory.read("file", 100, "anything") == b"new"
    assert victim.read_bytes() == b"precious" and not (tmp_path / "made-by-mistake").exists()


def test_a_file_with_a_second_name_is_not_appended_to(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "run").mkdir()
    for name in ("file", "lock"):
        os.link(victim, tmp_path / "run" / name)
    with Directory(tmp_path / "run") as directory:
        with pytest.raises(OSError, match="hard link"):
            directory.append("file")
        directory.replace("file", b"new")
    with pytest.raises(OSError, match="hard link"):
        DirectoryLock(tmp_path / "run").acquire()
    assert victim.read_bytes() == b"precious"


def test_temporary_names_cannot_be_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    replace = os.replace

    def remember(source: str, target: str, **directories: int) -> None:
        seen.append(source)
        replace(source, target, **directories)

    monkeypatch.setattr(os, "replace", remember)
    with Directory(tmp_path) as directory:
        for _ in range(20):
            directory.replace("file", b"x")
    assert len(set(seen)) == 20 and all(len(name) > 16 for name in seen)


def test_a_directory_that_is_moved_meanwhile_is_still_the_one_that_is_written(tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    (tmp_path / "run").mkdir()
    with Directory(tmp_path / "run") as directory:
        (tmp_path / "run").rename(tmp_path / "moved")
        (tmp_path / "run").symlink_to(tmp_path / "victim")
        directory.replace("file", b"x")
        directory.child("inner", create=True).close()
    assert names(tmp_path / "victim") == [] and names(tmp_path / "moved") == ["file", "inner"]


def test_no_more_is_read_than_the_bound_allows(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2**40)
    with Directory(tmp_path) as directory, pytest.raises(FileFault, match="larger than 1000 bytes; this is not a x"):
        directory.read("sparse", 1000, "a x")
    with pytest.raises(FileFault, match="larger than"):
        read_named(tmp_path / "sparse", 1000, "a x")


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*names: object, **directories: int) -> None:
        raise OSError(28, "No space left on device")

    with Directory(tmp_path) as directory:
        directory.replace("file", b"first")
        for step in ("replace", "fsync"):
            with monkeypatch.context() as patch:
                patch.setattr(os, step, fail)
                with pytest.raises(FileFault, match="No space left"):
                    directory.replace("file", b"second")
            assert (tmp_path / "file").read_bytes() == b"first"
            assert names(tmp_path) == ["file"]


# -- what a person named ----------------------------------------------------------------------------------------------


def test_an_output_replaces_a_regular_file_and_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_output(path, b"one")
    path.chmod(0o640)
    write_output(path, b"two")
    assert path.read_bytes() == b"two" and stat.S_IMODE(path.stat().st_mode) == 0o640
    assert names(tmp_path) == ["page.html"]


def test_an_output_never_replaces_a_device_or_a_link(tmp_path: Path) -> None:
    write_output(Path("/dev/null"), b"x" * 100_000)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    victim, link = tmp_path / "victim", tmp_path / "page.html"
    victim.write_bytes(b"precious")
    link.symlink_to(victim)
    with pytest.raises(FileFault, match="a link; name the file that it leads to"):
        write_output(link, b"x")
    assert victim.read_bytes() == b"precious" and link.is_symlink()


def test_an_output_goes_into_a_pipe_that_is_read_and_does_not_wait_for_one_that_is_not(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FileFault, match="cannot be written"):
        write_output(pipe, b"x")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    for _ in range(1000):
        try:
            write_output(pipe, b"x" * 1_000_000)
            break
        except FileFault:  # the reader has not opened it yet
            time.sleep(0.01)
    reader.join(30)
    assert got == [b"x" * 1_000_000] and stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("name", ["", ".", "..", "/", "inner", "a\0b", "missing/page", "file/page", "x" * 300])
def test_what_cannot_be_an_output_is_refused_in_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inner").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(ClipUpError) as caught:
        write_output(Path(name), b"x")
    assert "\n" not in str(caught.value) and names(tmp_path) == ["file", "inner"]
