import json
import math

import pytest

from clipup.errors import FileFault
from clipup.runs.records import (
    ClockRecord,
    LineFile,
    Record,
    encode_line,
    read_clock,
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
