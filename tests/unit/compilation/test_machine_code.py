"""Compiled once, kept on disk, and never trusted further than its digest."""

from __future__ import annotations

import ctypes
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from clipup.compilation import cache, machine_code
from clipup.compilation.cache import ObjectCode
from clipup.compilation.structures import array_structure, array_words, viewer
from clipup.errors import InvalidArgument

ARRAYS = {"numbers": ("float64", 1)}
FACTOR = 3.0


@pytest.fixture(autouse=True)
def cache_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.DIRECTORY_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(machine_code, "_loaded", {})


def tripled(value: float) -> float:
    return FACTOR * value


def load(function: Any = tripled) -> machine_code.MachineCode:
    structure = array_structure("Numbers", ARRAYS)
    view = viewer(structure)

    def run(words: int) -> None:
        numbers = view(words, 0).numbers
        for i in range(numbers.size):
            numbers[i] = function(numbers[i])

    return machine_code.load(run, lambda types: types.void(types.int64), label="a test", facts=(structure,))


def run(code: machine_code.MachineCode) -> list[float]:
    numbers = np.array([1.0, 2.0])
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address)(array_words(ARRAYS, (numbers,)).ctypes.data)
    return numbers.tolist()


def test_code_is_compiled_once_and_announced(caplog: pytest.LogCaptureFixture, monkeypatch: Any) -> None:
    with caplog.at_level(logging.INFO, "clipup"):
        first = load()
        assert first.compiled and run(first) == [3.0, 6.0]
        assert load() is first
        assert [record.message.split(" in ")[0] for record in caplog.records][-1] == "compiled a test"
        caplog.clear()
        monkeypatch.setattr(machine_code, "_loaded", {})
        again = load()
    assert not again.compiled and run(again) == [3.0, 6.0] and not caplog.records


@pytest.mark.parametrize("damage", ["emptied", "shortened", "changed", "not JSON", "another version"])
def test_a_damaged_file_costs_a_compilation_and_nothing_else(damage: str, monkeypatch: Any) -> None:
    load()
    (path,) = cache.directory().glob("*.code")
    content = path.read_bytes()
    path.write_bytes({
        "emptied": b"",
        "shortened": content[:-10],
        "changed": content[:-10] + bytes(10),
        "not JSON": b"x" + content,
        "another version": content.replace(b"machine code 1", b"machine code 9"),
    }[damage])  # fmt: skip
    monkeypatch.setattr(machine_code, "_loaded", {})
    again = load()
    assert again.compiled and run(again) == [3.0, 6.0]
    monkeypatch.setattr(machine_code, "_loaded", {})
    assert not load().compiled


def test_code_that_needs_an_unknown_name_is_compiled_anew(monkeypatch: Any) -> None:
    load()
    (path,) = cache.directory().glob("*.code")
    key = path.stem
    kept = cache.read(key)
    assert kept is not None
    cache.write(key, ObjectCode(kept.code, kept.entry, (*kept.externals, "no_such_function_anywhere")))
    monkeypatch.setattr(machine_code, "_loaded", {})
    assert load().compiled


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows has other permissions")
def test_a_file_that_others_can_write_is_not_used(monkeypatch: Any) -> None:
    load()
    (path,) = cache.directory().glob("*.code")
    path.chmod(0o666)
    monkeypatch.setattr(machine_code, "_loaded", {})
    assert load().compiled


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: Any, caplog: Any) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    monkeypatch.setenv(cache.DIRECTORY_VARIABLE, str(blocked / "cache"))
    with caplog.at_level(logging.WARNING, "clipup"):
        assert run(load()) == [3.0, 6.0]
    assert "will be compiled again" in caplog.text


def doubled(value: float) -> float:
    return 2.0 * value


def test_another_function_and_another_constant_are_other_code(monkeypatch: Any) -> None:
    keys = {load().address, load(doubled).address}
    monkeypatch.setitem(globals(), "FACTOR", 4.0)
    other = load()
    assert run(other) == [4.0, 8.0] and other.address not in keys
    assert len(list(cache.directory().glob("*.code"))) == 3


def test_another_process_finds_the_code() -> None:
    script = (
        "from tests.unit.compilation.test_machine_code import load, run\ncode = load()\nprint(code.compiled, run(code))"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": str(Path.cwd())},
            capture_output=True, text=True, check=True,
        ).stdout.strip()
        for _ in range(2)
    ]  # fmt: skip
    assert outputs == ["True [3.0, 6.0]", "False [3.0, 6.0]"]


def wrong(value: float) -> Any:
    return np.no_such_function(value)


def test_a_function_that_cannot_be_compiled_is_told_in_one_line() -> None:
    with pytest.raises(InvalidArgument, match="Numba cannot compile") as caught:
        load(wrong)
    assert "\n" not in str(caught.value)
    assert not list(cache.directory().glob("*"))


def test_the_cache_is_where_the_platform_keeps_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(cache.DIRECTORY_VARIABLE)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.directory() == tmp_path / "clipup"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.directory() == Path.home() / "Library" / "Caches" / "clipup"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache.directory() == tmp_path / "local" / "clipup"
