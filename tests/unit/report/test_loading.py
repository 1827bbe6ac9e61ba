"""Run directories in every state are read as far as they go, and never raise."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clipup.cli.main import main
from clipup.diagnosis import Finding
from clipup.report import load_run, loading, make_report
from clipup.report.charts import write_charts
from clipup.report.loading import load_runs
from clipup.report.server import LiveRuns
from clipup.runs.rundir import RunDirectory, find_runs

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


def change_record(**changes: object) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        lines = [json.loads(line) for line in (path / "records.jsonl").read_text().splitlines()]
        lines[12] |= changes
        (path / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    return change


def write_status(text: str) -> Callable[[Path], object]:
    return lambda path: (path / "status.json").write_text(text)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a score of text": write_status('{"state": "finished", "score": "12"}'),
    "a score beyond floats": write_status('{"state": "finished", "score": 1%s}' % ("0" * 400)),
    "a reason that is no text": write_status('{"state": "finished", "reason": NaN}'),
    "a state that is no text": write_status('{"state": ["finished"]}'),
    "a fitness beyond floats": change_record(fitness_mean=10**400),
    "an infinite fitness": change_record(fitness_mean=float("inf")),
    "an endless generation": change_record(generation=float("inf")),
    "half a generation": change_record(generation=7.5),
    "time beyond floats": lambda path: (path / "clock.jsonl").write_text(
        '{"generation": 1, "seconds": 1%s, "steps_per_second": 1}\n' % ("0" * 400)
    ),
    "a number too long to print": lambda path: (path / "config.toml").write_text(f"x = 0x{'f' * 5000}\n"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_to_one_run_is_said_of_it_and_hides_no_other(
    write_run: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], object]
) -> None:
    damage(write_run(tmp_path / "a"))
    write_run(tmp_path / "b")
    run = load_run(tmp_path / "a")
    assert run.problems or len(run.records) == 20
    page = make_report([tmp_path])
    assert '"name":"b"' in page and '"name":"a"' in page
    assert main(["diagnose", str(tmp_path), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 2
    live = LiveRuns([tmp_path])
    live.refresh()
    json.dumps(live.answer({}), allow_nan=False)


def test_what_is_wrong_with_a_status_or_a_record_is_named(write_run: Write, tmp_path: Path) -> None:
    path = write_run(tmp_path / "a")
    write_status('{"state": "finished", "score": "12", "reason": NaN}')(path)
    change_record(generation=7.5)(path)
    run = load_run(path)
    assert run.status.score is None and run.status.reason == "" and run.status.state == "finished"
    assert run.problems == (
        "records.jsonl: line 13: generation is not a whole number; the other lines are shown",
        "status.json: reason, score cannot be read",
    )


def test_what_nobody_thought_of_becomes_a_problem_of_its_run(
    write_run: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = write_run(tmp_path / "a", generations=19)
    write_run(tmp_path / "b")

    def fail(records: tuple[object, ...], config: object, actions: str) -> list[Finding]:
        if len(records) == 19:
            raise ZeroDivisionError("a surprise")
        return []

    monkeypatch.setattr("clipup.report.loading.diagnose", fail)
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "page.html"), "--json"]) == 0
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert problems == {str(broken): ["cannot be diagnosed: ZeroDivisionError: a surprise"]}
    assert main(["diagnose", str(tmp_path)]) == 0
    assert "cannot be diagnosed: ZeroDivisionError: a surprise" in capsys.readouterr().out
    monkeypatch.setattr("clipup.report.page_data.train_command", lambda config: 1 / 0)
    assert "cannot be shown: ZeroDivisionError: division by zero" in make_report([tmp_path / "b"])
    monkeypatch.setattr("clipup.report.loading.RunDirectory", lambda path: 1 / 0)
    assert "cannot be read: ZeroDivisionError" in load_run(broken).problems[0]


def test_a_directory_whose_name_is_no_text_can_be_shown(
    write_run: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/b\xff$x_{$"))
    try:
        write_run(path)
    except OSError:
        pytest.skip("this file system takes only names of text")
    (path / "config.toml").unlink()
    assert main(["report", str(path), "-o", str(tmp_path / "page.html")]) == 0
    assert "<title>b?$x_{$" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert main(["diagnose", str(path)]) == 0
    write_charts([load_run(path), load_run(write_run(tmp_path / "other"))], tmp_path / "figures")
    assert "20 generations" in capsys.readouterr().out


def test_files_that_are_links_or_pipes_are_not_opened(write_run: Write, tmp_path: Path) -> None:
    (tmp_path / "credentials.toml").write_text('secret = "hunter2"\n')
    for name in ("config.toml", "records.jsonl", "clock.jsonl", "status.json"):
        path = write_run(tmp_path / "runs" / name.replace(".", "-"))
        (path / name).unlink()
        (path / name).symlink_to(tmp_path / "credentials.toml")
        assert load_run(path).problems[0].endswith(f"{name}: cannot be read: a link, or not a regular file")
    os.mkfifo(write_run(tmp_path / "runs" / "pipe") / "lock")
    assert "lock: cannot be read" in load_run(tmp_path / "runs" / "pipe").problems[0]
    assert "hunter2" not in make_report([tmp_path / "runs"])
    LiveRuns([tmp_path / "runs"]).refresh()


def test_runs_below_a_stray_configuration_are_found(write_run: Write, tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "a")
    (tmp_path / "runs" / "config.toml").write_text('env = "x"\n')
    assert find_runs([tmp_path]) == [run]
    begun = tmp_path / "begun"
    (begun / "checkpoints").mkdir(parents=True)
    (begun / "config.toml").write_text('env = "x"\n')
    assert find_runs([begun]) == [begun]


def test_runs_beyond_the_limit_are_counted(
    write_run: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(5):
        write_run(tmp_path / "runs" / str(number), generations=2)
    for module in ("loading", "page_data", "server"):
        monkeypatch.setattr(f"clipup.report.{module}.RUN_LIMIT", 3)
    assert "A page shows at most 3 runs; 2 more were found and left out." in make_report([tmp_path / "runs"])
    assert main(["report", str(tmp_path / "runs"), "-o", str(tmp_path / "page.html")]) == 0
    assert "3 runs (2 more left out)" in capsys.readouterr().out
    live = LiveRuns([tmp_path / "runs"])
    live.refresh()
    assert "2 more were found" in live.answer({})["notes"][0]  # type: ignore[index]


def test_many_long_runs_share_a_bounded_number_of_lines(
    write_run: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        write_run(tmp_path / "runs" / str(number), generations=400)
    whole = [run.diagnose() for run in load_runs([tmp_path / "runs"])[0]]
    monkeypatch.setattr(loading, "LINES_IN_ALL", 400)
    monkeypatch.setattr(loading, "LINES_EACH", 20)
    thinned, _ = load_runs([tmp_path / "runs"])
    for run in thinned:
        assert len(run.records) <= 150 and len(run.clock) == len(run.records)
        assert [line.generation for line in (run.records[0], run.records[-1])] == [1, 400]
    assert [run.diagnose() for run in thinned] == whole
    live = LiveRuns([tmp_path / "runs"])
    live.refresh()
    rows = [len(run["columns"]["score"]) for run in live.answer({})["runs"]]  # type: ignore[index, union-attr]
    assert rows == [len(run.records) for run in thinned]
