import os

import pytest

from clipup.errors import FileFault
from clipup.files import Directory
from clipup.runs.line_file import LineFile, encode_clock, read_clock_prefix, read_prefix
from clipup.runs.records import ClockRecord, encode_line, read_clock


@pytest.fixture
def directory(tmp_path):
    with Directory(tmp_path) as found:
        yield found


def test_a_file_of_lines_is_cut_and_appended_to(tmp_path, directory):
    file = LineFile(directory, "lines")
    file.append(b"one\n")
    file.append(b"two\n")
    file.cut(4)
    file.append(b"three\n")
    file.sync()
    file.close()
    assert (tmp_path / "lines").read_bytes() == b"one\nthree\n"
    assert file.digest == read_prefix(directory, "lines", 10).digest
    again = LineFile(directory, "lines")
    assert again.size == 10
    with pytest.raises(FileFault, match="missing"):
        again.cut(11)
    again.cut(10)
    assert again.digest == file.digest
    again.close()


def test_a_full_disk_is_reported_in_one_line(directory):
    import resource

    file = LineFile(directory, "lines")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3, limits[1]))
    try:
        with pytest.raises(FileFault, match="cannot be written: ") as caught:
            file.append(b"a line\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "\n" not in str(caught.value)
    file.close()


def test_lines_that_are_removed_during_a_run_are_written_again(tmp_path, directory):
    told: list[str] = []
    file = LineFile(directory, "lines", told.append)
    file.append(b"one\n")
    for vanish in (
        lambda path: path.unlink(),
        lambda path: path.rename(tmp_path / "elsewhere"),
        lambda path: (path.unlink(), path.write_bytes(b"another\n")),
        lambda path: (path.unlink(), path.symlink_to("/etc/passwd")),
    ):
        before = file.size
        vanish(tmp_path / "lines")
        file.append(b"next\n")
        assert file.size == before + 5 and "was removed or replaced" in told.pop()
        assert read_prefix(directory, "lines", 10**6).digest == file.digest
    file.close()


@pytest.mark.parametrize("change", [lambda path: os.truncate(path, 2), lambda path: os.truncate(path, 9)])
def test_lines_that_change_in_size_during_a_run_are_noticed_at_the_next_write(tmp_path, directory, change):
    file = LineFile(directory, "lines")
    file.append(b"one\n")
    change(tmp_path / "lines")
    with pytest.raises(FileFault, match=r"4 bytes were written and \d are there"):
        file.append(b"two\n")
    file.close()


def clock_lines(*numbers: int) -> list[bytes]:
    lines, digest = [], ""
    for number in numbers:
        line, digest = encode_clock(ClockRecord(number, number * 1.5, 100.0), digest)
        lines.append(line)
    return lines


def test_the_clock_is_cut_by_generation_and_survives_damage(tmp_path, directory):
    path = tmp_path / "clock.jsonl"
    lines = clock_lines(1, 2, 3)
    path.write_bytes(b"".join(lines))
    found = read_clock_prefix(directory, path.name, 2)
    assert (found.size, found.seconds, found.problem) == (len(lines[0]) + len(lines[1]), 3.0, None)
    assert [entry.seconds for entry in read_clock(path)] == [1.5, 3.0, 4.5]
    path.write_bytes(lines[0] + b"garbage\n" + lines[1])
    found = read_clock_prefix(directory, path.name, 9)
    assert found.size == len(lines[0]) and "line 2" in found.problem
    assert read_clock_prefix(directory, "missing", 9).size == 0


def test_a_changed_digit_in_the_clock_is_noticed_and_lines_of_older_versions_are_taken(tmp_path, directory):
    path = tmp_path / "clock.jsonl"
    lines = clock_lines(1, 2, 3)
    path.write_bytes(b"".join(lines).replace(b"1.5,", b"2.5,", 1))
    found = read_clock_prefix(directory, path.name, 9)
    assert found.size == 0 and "line 1: it, or one before it, was changed" in found.problem
    old = encode_line(ClockRecord(1, 7.0, 1.0))
    path.write_bytes(old)
    found = read_clock_prefix(directory, path.name, 9)
    assert (found.size, found.seconds, found.digest, found.problem) == (len(old), 7.0, "", None)
