import json
import math
import os
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from clipup.errors import FileFault
from clipup.runs import records
from clipup.runs.records import (
    Record,
    encode_line,
    read_last,
    read_lines,
    read_records,
    read_standing,
)


def record(generation: int = 1, **changes: object) -> Record:
    values: dict[str, object] = {
        "generation": generation, "population": 20, "interactions": 300, "total_interactions": 300 * generation,
        "fitness_mean": 1.5, "fitness_best": 3.0, "best": 4.0, "score": None, "score_standard_error": None,
        "speed": 0.1, "max_speed": 0.15, "clipped": False, "stdev_norm": 2.0, "gradient_norm": 0.3,
        "gradient_agreement": 0.5, "nonfinite": 0, "tied": 0.0, "population_bound": False,
    }  # fmt: skip
    return Record(**{**values, **changes})  # type: ignore[arg-type]


def test_records_are_read_back_as_they_were_written(tmp_path):
    path = tmp_path / "records.jsonl"
    written = [record(1), record(2, score=7.25, score_standard_error=0.5), record(3, max_speed=None)]
    path.write_bytes(b"".join(encode_line(line) for line in written))
    assert read_records(path) == written


def test_numbers_that_json_cannot_spell_become_null():
    values = json.loads(encode_line(record(score=math.nan, best=-math.inf)))
    assert values["score"] is None and values["best"] is None


def test_a_last_line_that_is_not_whole_is_left_out(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(encode_line(record(1)) + encode_line(record(2))[:-1])
    assert [line.generation for line in read_records(path)] == [1]
    assert read_records(tmp_path / "missing.jsonl") == []


@pytest.mark.parametrize("line", [b"[]\n", b"{}\n", b"nonsense\n", b'{"generation": "x"}\n', b"x" * 200_000])
def test_damaged_lines_are_named(tmp_path, line):
    path = tmp_path / "records.jsonl"
    path.write_bytes(encode_line(record(1)) + line)
    with pytest.raises(FileFault) as caught:
        read_records(path)
    assert "records.jsonl" in str(caught.value) and "\n" not in str(caught.value)


def test_unknown_keys_of_a_later_version_are_left_aside(tmp_path):
    path = tmp_path / "records.jsonl"
    values = {**json.loads(encode_line(record(1))), "later": {"a": 1}}
    path.write_text(json.dumps(values) + "\n")
    assert read_records(path) == [record(1)]


def changed(line: Record, **values: object) -> bytes:
    """Return a line with these values; a value of None takes the key out."""
    found = {**json.loads(encode_line(line)), **values}
    kept = {name: value for name, value in found.items() if name not in values or value is not None}
    return json.dumps(kept).encode() + b"\n"


def test_what_can_be_read_is_returned_and_what_is_wrong_with_the_rest_is_said(tmp_path):
    path = tmp_path / "records.jsonl"
    assert read_lines(path, Record) == ([], [])
    lines = [encode_line(record(number)) for number in (1, 2, 3, 4)]
    path.write_bytes(lines[0] + b"garbage\n" + b"[1]\n" + lines[1] + changed(record(3), generation=7.5))
    found, problems = read_lines(path, Record)
    assert found == [record(1), record(2)] and problems == ["line 2: not a JSON line (and 2 more)"]
    path.write_bytes(changed(record(1), gradient_agreement=None) + changed(record(2), stdev_norm=None))
    found, problems = read_lines(path, Record)
    assert found[0].gradient_agreement is None and math.isnan(found[1].stdev_norm)
    assert problems == ["of another version of clipup, without gradient_agreement, stdev_norm"]
    path.write_bytes(changed(record(1), best=10**400, speed=1e301))
    found, problems = read_lines(path, Record)
    assert found[0].best is None and math.isnan(found[0].speed) and problems == []
    path.write_bytes(lines[0] + lines[2] + lines[1] + encode_line(record(2, population=8)) + lines[3][:20])
    found, problems = read_lines(path, Record)
    assert found == [record(1), record(2, population=8), record(3)] and problems == []


def test_no_more_is_read_than_a_file_of_records_can_be(tmp_path, monkeypatch):
    path = tmp_path / "records.jsonl"
    path.write_bytes(encode_line(record(1)) + changed(record(2), later="x" * 70_000) + encode_line(record(3)))
    found, problems = read_lines(path, Record)
    assert [line.generation for line in found] == [1, 3] and "line 2: longer than 65536 bytes" in problems[0]
    monkeypatch.setattr(records, "FILE_LIMIT", 1000)
    assert read_lines(path, Record)[0] == [] and "not read" in read_lines(path, Record)[1][0]


def test_a_link_or_a_pipe_is_not_opened(tmp_path):
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        assert read_lines(tmp_path / name, Record) == ([], ["cannot be read: a link, or not a regular file"])


@pytest.mark.parametrize("tail", [b"", b'{"generation": 9', b"x" * 60_000])
def test_the_last_line_is_that_of_the_whole_file_and_the_rest_is_not_read(tmp_path, tail):
    path = tmp_path / "records.jsonl"
    assert read_last(path, Record) is None and read_last(tmp_path / "missing" / "records.jsonl", Record) is None
    path.write_bytes(tail)
    assert read_last(path, Record) is None
    lines = [encode_line(record(number, score=float(number))) for number in range(1, 500)]
    for count in (1, 2, 499):
        path.write_bytes(b"".join(lines[:count]) + tail)
        assert read_last(path, Record) == read_records(path)[-1] == record(count, score=float(count))
    path.write_bytes(bytes(2**20) + b"\n" + lines[0])
    assert read_last(path, Record) == record(1, score=1.0)


@pytest.mark.parametrize("line", [b"[]\n", b"{}\n", b"nonsense\n", b"x" * 200_000 + b"\n"])
def test_a_last_line_that_is_damaged_is_named(tmp_path, line):
    path = tmp_path / "records.jsonl"
    path.write_bytes(encode_line(record(1)) + line)
    with pytest.raises(FileFault, match="its last line"):
        read_last(path, Record)
    (tmp_path / "link.jsonl").symlink_to(path)
    with pytest.raises(FileFault, match="a link, or not a regular file"):
        read_last(tmp_path / "link.jsonl", Record)


def test_how_far_a_run_is_takes_little_memory(tmp_path):
    path = tmp_path / "records.jsonl"
    with path.open("wb") as file:
        for number in range(1, 20_001):
            score = -abs(number - 7000.0) if number % 1000 == 0 else None
            file.write(encode_line(record(number, score=score)))
    tracemalloc.start()
    try:
        found = read_standing(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (found.generation, found.total_interactions) == (20_000, 6_000_000)
    assert (found.score, found.best_score) == (-13_000.0, 0.0)
    assert peak < 6e6 < path.stat().st_size


def test_a_long_file_is_thinned_while_it_is_read(tmp_path):
    path = tmp_path / "records.jsonl"
    with path.open("wb") as file:
        for number in range(1, 20_001):
            file.write(encode_line(record(number, score=1.0 if number % 1000 == 0 else None)))
    found, problems = read_lines(path, Record, limit=1000)
    assert 500 <= len(found) <= 1021 and problems == ["many generations: only some of them are shown"]
    assert found[-1].generation == 20_000 and sum(line.score is not None for line in found) == 20
    generations = [line.generation for line in found]
    assert generations == sorted(set(generations))
    assert max(np.diff(generations)) <= 40, "evenly spread, also at the beginning"
    whole, problems = read_lines(path, Record, limit=20_000)
    assert len(whole) == 20_000 and problems == []


def test_what_callbacks_added_does_not_fill_the_memory_of_a_report(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(encode_line(replace(record(1), figures={"more": 1.0})))
    assert read_lines(path, Record)[0][0].figures == {"more": 1.0}
    assert read_lines(path, Record, limit=10)[0][0].figures == {}


@pytest.mark.parametrize("line", [b"\n", b"{}\n", b"[]\n", b"x\n", b'{"generation": -1}\n'])
def test_millions_of_short_damaged_lines_take_no_time_and_no_memory(tmp_path, line):
    path = tmp_path / "records.jsonl"
    path.write_bytes(encode_line(record(1)) + line * (3_000_000 // len(line)))
    found, problems = read_lines(path, Record, limit=1000)
    assert [kept.generation for kept in found] == [1]
    assert problems[0] == "more than 10000 damaged lines, the rest is not read" and problems[1].startswith("line 2")


def test_a_long_file_of_another_version_is_read_as_far_as_a_moment_allows(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "ALONE_LIMIT", 5000)
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"".join(b'{"generation": %d}\n' % number for number in range(1, 100_000)))
    found, problems = read_lines(path, Record, limit=1000)
    assert found[0].generation == 1 and found[-1].generation < 50_000
    assert problems[0] == "more than 5000 lines of another version, the rest is not read"
