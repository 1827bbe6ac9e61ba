import json
import math
import os

import pytest

from clipup.errors import FileFault
from clipup.runs import records
from clipup.runs.records import (
    ClockRecord,
    LineFile,
    Record,
    encode_line,
    read_clock,
    read_lines,
    read_records,
    size_up_to,
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


def test_a_file_of_lines_is_cut_and_appended_to(tmp_path):
    file = LineFile(tmp_path / "lines")
    file.append(b"one\n")
    file.append(b"two\n")
    file.cut(4)
    file.append(b"three\n")
    file.sync()
    file.close()
    assert (tmp_path / "lines").read_bytes() == b"one\nthree\n"
    again = LineFile(tmp_path / "lines")
    assert again.size == 10
    with pytest.raises(FileFault, match="missing"):
        again.cut(11)
    again.close()


def test_a_full_disk_is_reported_in_one_line():
    from pathlib import Path

    file = LineFile(Path("/dev/full"))
    with pytest.raises(FileFault, match="No space left"):
        file.append(b"line\n")
    file.close()


def test_the_clock_is_cut_by_generation_and_survives_damage(tmp_path):
    path = tmp_path / "clock.jsonl"
    lines = [encode_line(ClockRecord(number, number * 1.5, 100.0)) for number in (1, 2, 3)]
    path.write_bytes(b"".join(lines))
    assert size_up_to(path, 2) == len(lines[0]) + len(lines[1])
    assert [entry.seconds for entry in read_clock(path)] == [1.5, 3.0, 4.5]
    path.write_bytes(lines[0] + b"garbage\n" + lines[1])
    assert size_up_to(path, 9) == len(lines[0])
    assert size_up_to(tmp_path / "missing", 9) == 0
