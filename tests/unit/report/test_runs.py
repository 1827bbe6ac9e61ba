"""Run directories in every state are read as far as they go, and never raise."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clipup.report import find_runs, load_run, make_report
from clipup.runs.rundir import RunDirectory

Write = Callable[..., Path]


def test_a_whole_run_is_read_without_problems(write_run: Write, tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path / "a"))
    assert run.problems == ()
    assert [line.generation for line in run.records] == list(range(1, 21))
    assert len(run.clock) == 20 and run.status.state == "finished" and run.config is not None


def test_a_last_line_cut_short_is_left_out_without_a_word(write_run: Write, tmp_path: Path) -> None:
    path = write_run(tmp_path / "a")
    data = (path / "records.jsonl").read_bytes()
    (path / "records.jsonl").write_bytes(data[:-30])
    run = load_run(path)
    assert len(run.records) == 19 and run.problems == ()


def test_a_damaged_line_is_named_and_the_others_are_shown(write_run: Write, tmp_path: Path) -> None:
    path = write_run(tmp_path / "a")
    lines = (path / "records.jsonl").read_bytes().splitlines(keepends=True)
    lines[4], lines[7] = b"garbage\n", b"[1, 2]\n"
    (path / "records.jsonl").write_bytes(b"".join(lines))
    run = load_run(path)
    assert len(run.records) == 18
    assert run.problems == ("records.jsonl: line 5: not a JSON line (and 1 more); the other lines are shown",)


def test_records_of_an_older_version_are_shown_with_gaps(write_run: Write, tmp_path: Path) -> None:
    path = write_run(tmp_path / "a")
    lines = [json.loads(line) for line in (path / "records.jsonl").read_text().splitlines()]
    for line in lines:
        del line["gradient_agreement"], line["stdev_norm"]
    (path / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = load_run(path)
    assert len(run.records) == 20
    assert run.problems == ("records.jsonl: of another version of clipup, without gradient_agreement, stdev_norm",)
    assert "of another version" in make_report([path])


def test_records_of_a_newer_version_with_more_fields_are_shown(write_run: Write, tmp_path: Path) -> None:
    path = write_run(tmp_path / "a")
    lines = [{**json.loads(line), "novelty": 1.0} for line in (path / "records.jsonl").read_text().splitlines()]
    (path / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = load_run(path)
    assert len(run.records) == 20 and run.problems == ()


def test_a_configuration_of_a_newer_version_is_shown_as_it_stands(write_run: Write, tmp_path: Path) -> None:
    path = write_run(tmp_path / "a")
    (path / "config.toml").write_text("warp_drive = true\n" + (path / "config.toml").read_text())
    run = load_run(path)
    assert run.config is None and run.settings["warp_drive"] is True
    assert "warp_drive" in run.problems[0]


@pytest.mark.parametrize("name", ["config.toml", "records.jsonl", "clock.jsonl", "status.json"])
@pytest.mark.parametrize(
    "content", [None, b"", b"\x00\xff\xfe", b"{" * 10_000, b"[" * 100_000, b"\n" * 50, b"null\n", b'"x"\n']
)
def test_any_file_missing_or_of_nonsense_still_makes_a_page(
    write_run: Write, tmp_path: Path, name: str, content: bytes | None
) -> None:
    path = write_run(tmp_path / "a")
    other = write_run(tmp_path / "b")
    (path / name).unlink()
    if content is not None:
        (path / name).write_bytes(content)
    page = make_report([path, other])
    assert '"name":"b"' in page and '"name":"a"' in page


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.integers(0, 4000), junk=st.binary(min_size=1, max_size=40))
def test_no_damage_to_the_records_raises(
    tmp_path_factory: pytest.TempPathFactory, write_run: Write, where: int, junk: bytes
) -> None:
    path = write_run(tmp_path_factory.mktemp("damage") / "a", generations=8)
    data = bytearray((path / "records.jsonl").read_bytes())
    data[where % len(data) : where % len(data) + len(junk)] = junk
    (path / "records.jsonl").write_bytes(bytes(data))
    make_report([path])


def test_a_directory_is_in_the_way_of_a_file(write_run: Write, tmp_path: Path) -> None:
    path = write_run(tmp_path / "a")
    (path / "records.jsonl").unlink()
    (path / "records.jsonl").mkdir()
    run = load_run(path)
    assert run.records == () and "cannot be read" in run.problems[0]


def test_a_path_that_is_not_there_is_shown_as_such(tmp_path: Path) -> None:
    run = load_run(tmp_path / "gone")
    assert "no such directory" in run.problems[0]
    assert "no such directory" in make_report([tmp_path / "gone"])


def test_a_run_that_goes_is_running_and_one_that_was_killed_is_not(write_run: Write, tmp_path: Path) -> None:
    path = write_run(tmp_path / "a", state="running")
    assert load_run(path).status.state == "killed"
    directory = RunDirectory(path)
    directory.open()
    try:
        assert load_run(path).status.state == "running"
    finally:
        directory.close()


def test_runs_are_found_below_a_folder_but_not_through_links(write_run: Write, tmp_path: Path) -> None:
    one, two = write_run(tmp_path / "x" / "one"), write_run(tmp_path / "x" / "deep" / "er" / "two")
    (tmp_path / "x" / "circle").symlink_to(tmp_path)
    assert set(find_runs([tmp_path])) == {one, two}
    assert find_runs([one, tmp_path / "x"])[0] == one
    assert len(find_runs([one, tmp_path / "x"])) == 2


def test_a_generation_written_twice_counts_once(write_run: Write, tmp_path: Path) -> None:
    path = write_run(tmp_path / "a")
    lines = (path / "records.jsonl").read_bytes().splitlines(keepends=True)
    (path / "records.jsonl").write_bytes(b"".join([*lines, lines[10]]))
    assert [line.generation for line in load_run(path).records] == list(range(1, 21))
