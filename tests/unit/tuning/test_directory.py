"""The directory of a search: one process at a time, and nobody else's files."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clipup.errors import FileFault, RunBusy, RunExists, StateMismatch
from clipup.runs.config import RunConfig
from clipup.tuning.directory import claimed

BASE = RunConfig(env="CartPole-v1", generations=10)
HOLD = """
import sys, time
from pathlib import Path
from clipup.runs.config import RunConfig
from clipup.tuning.directory import claimed
with claimed(Path(sys.argv[1]), RunConfig(env="CartPole-v1", generations=10)):
    print("claimed", flush=True)
    time.sleep(600)
"""


def names(directory: Path) -> set[str]:
    return {entry.name for entry in directory.iterdir()}


def test_a_second_process_is_refused_until_the_first_has_ended_even_by_kill_9(tmp_path: Path) -> None:
    directory = tmp_path / "search"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(directory)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "claimed\n"
            before = (directory / "lock").read_bytes()
            with (
                pytest.raises(RunBusy, match=f"process {process.pid} is searching here") as caught,
                claimed(directory, BASE),
            ):
                pass
            assert "\n" not in str(caught.value)
            assert (directory / "lock").read_bytes() == before
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
    with claimed(directory, BASE):
        assert names(directory) == {"lock", "config.base.toml", "trials"}


def test_within_one_process_too_only_one_search_goes_on(tmp_path: Path) -> None:
    with claimed(tmp_path, BASE), pytest.raises(RunBusy, match=f"process {os.getpid()} "), claimed(tmp_path, BASE):
        pass


def test_the_lock_is_given_back_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), claimed(tmp_path, BASE):
        raise ZeroDivisionError
    with claimed(tmp_path, BASE):
        pass


def test_what_is_left_of_a_search_killed_before_it_began_is_used(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / "config.base.toml.partial").write_bytes(b"env")
    with claimed(tmp_path, BASE):
        assert (tmp_path / "config.base.toml").is_file()


def test_a_directory_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RunExists, match="not a search"), claimed(tmp_path, BASE):
        pass
    assert names(tmp_path) == {"thesis.tex"}
    with pytest.raises(FileFault, match="cannot be made"), claimed(tmp_path / "thesis.tex", BASE):
        pass


def test_a_search_of_other_settings_is_refused(tmp_path: Path) -> None:
    with claimed(tmp_path, BASE):
        pass
    other = dataclasses.replace(BASE, population=10)
    with pytest.raises(StateMismatch, match=r"other settings \(population\)"), claimed(tmp_path, other):
        pass
