"""The journal: what a stopped session leaves in it, and suggestions that do not depend on having been stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from clipup.errors import FileFault
from clipup.runs.records import Record
from clipup.tuning.speed_search import Point

pytest.importorskip("optuna", reason="tuning needs optuna (in the tune extra)")

from clipup.tuning.journal import Journal

SCANNED = (Point(0.1), Point(0.3), Point(1.0))


def reopen(path: Path, *extra: str) -> Journal:
    return Journal(path, seed=0, low=0.003, high=10.0, extra=extra or ("radius_factor",))


def told(score: float) -> list[Record]:
    return [
        Record(
            generation=10, population=2, interactions=1, total_interactions=1, fitness_mean=score, fitness_best=score,
            best=score, score=score, score_standard_error=1.0, speed=1.0, max_speed=1.0, clipped=True, stdev_norm=1.0,
            gradient_norm=1.0, gradient_agreement=0.5, nonfinite=0, tied=0.0, population_bound=False,
        )
    ]  # fmt: skip


def scan(journal: Journal) -> None:
    for number, point in enumerate(SCANNED):
        journal.record(point, 0, told(number), float(number), complete=number > 0)


def vary(journal: Journal, number: int) -> Point:
    point = journal.suggest(SCANNED[-1], number)
    journal.record(point, 0, told(number), float(number), complete=True)
    return point


@pytest.mark.parametrize("stop", [0, 1, 2, 3])
def test_a_stopped_search_is_given_the_same_suggestions(tmp_path: Path, stop: int) -> None:
    whole = reopen(tmp_path / "whole.log")
    scan(whole)
    expected = [vary(whole, number) for number in range(4)]
    assert len(set(expected)) == 4
    first = reopen(tmp_path / "stopped.log")
    scan(first)
    for number in range(stop):
        vary(first, number)
    second = reopen(tmp_path / "stopped.log")
    scan(second)
    assert [vary(second, number) for number in range(4)] == expected


@pytest.mark.parametrize("leave", [lambda journal: journal.suggest(SCANNED[-1], 0), scan])
def test_a_search_stopped_before_any_line_of_its_journal_goes_on(
    tmp_path: Path, leave: Callable[[Journal], object]
) -> None:
    leave(reopen(tmp_path / "whole.log"))
    lines = (tmp_path / "whole.log").read_bytes().splitlines(keepends=True)
    for count in range(2, len(lines)):
        path = tmp_path / f"{count}.log"
        path.write_bytes(b"".join(lines[:count]))
        journal = reopen(path)
        scan(journal)
        given = vary(journal, 0)
        journal.close()
        assert vary(reopen(path), 0) == given


def test_a_journal_whose_last_line_was_cut_short_goes_on(tmp_path: Path) -> None:
    whole = reopen(tmp_path / "whole.log")
    scan(whole)
    given = vary(whole, 0)
    whole.close()
    lines = (tmp_path / "whole.log").read_bytes().splitlines(keepends=True)
    for count, line in enumerate(lines):
        path = tmp_path / f"{count}.log"
        path.write_bytes(b"".join(lines[:count]) + line[: len(line) // 2])
        for _ in range(2):
            journal = reopen(path)
            scan(journal)
            assert vary(journal, 0) == given
            journal.close()
        assert all(isinstance(json.loads(line), dict) for line in path.read_bytes().splitlines())


def test_a_lock_that_a_killed_session_left_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reopen(tmp_path / "killed.log")
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("waited"))
    left = tmp_path / "killed.log.lock"
    left.touch()
    scan(reopen(tmp_path / "killed.log"))


def test_a_journal_damaged_in_the_middle_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "damaged.log"
    scan(reopen(path))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"nonsense\n", *lines[3:]]))
    with pytest.raises(FileFault, match="remove it and try again") as caught:
        reopen(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("other", [("step_ratio",), ("radius_factor", "step_ratio")])
def test_a_search_over_other_further_settings_is_given_what_it_would_be_on_its_own(
    tmp_path: Path, other: tuple[str, ...]
) -> None:
    alone = reopen(tmp_path / "alone.log", *other)
    scan(alone)
    expected = [vary(alone, number) for number in range(4)]
    before = reopen(tmp_path / "both.log")
    scan(before)
    given = [vary(before, number) for number in range(4)]
    after = reopen(tmp_path / "both.log", *reversed(other))
    scan(after)
    assert [vary(after, number) for number in range(4)] == expected
    again = reopen(tmp_path / "both.log")
    scan(again)
    assert [vary(again, number) for number in range(4)] == given
