from pathlib import Path

import pytest

from clipup.cli.main import main
from clipup.reproduction.experiments import EXPERIMENTS
from clipup.reproduction.reproduce import Request


def test_without_a_name_the_experiments_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in EXPERIMENTS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fitness-scal"], "did you mean 'fitness-scale'"),
        (["walker2d", "--group", "adan"], "did you mean 'adam'"),
        (["walker2d", "--runs", "0"], "--runs"),
        (["walker2d", "--budget", "soon"], "number of minutes"),
        (["walker2d", "--budget", "nan"], "number of minutes"),
        (["walker2d", "--set", "population"], "NAME=VALUE"),
        (["walker2d", "--set", "populatio=4"], "did you mean 'population'"),
        (["walker2d", "--set", "population=3"], "even"),
        (["walker2d", "--rums", "3"], "did you mean '--runs'"),
    ],
)
def test_what_is_wrong_is_told_in_one_line_and_nothing_is_written(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *words, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_page_without_results_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--page", str(tmp_path / "page.md"), "--results", str(tmp_path / "nothing")]) == 2
    assert "no such directory" in capsys.readouterr().err


def test_collecting_where_there_are_no_runs_gives_an_empty_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "walker2d", "--collect", "--no-figures", "--out", str(tmp_path)]) == 0
    assert "0 of 30" in capsys.readouterr().out
    assert (tmp_path / "walker2d.json").is_file()


def test_the_command_of_a_result_holds_what_decides_it_and_no_directory() -> None:
    request = Request(
        "humanoid-bullet",
        runs=1,
        generations=9,
        groups=("clipup",),
        changes={"population": 20},
        out=Path("somewhere"),
        jobs=3,
    )
    assert (
        request.command
        == "clipup reproduce humanoid-bullet --runs 1 --generations 9 --group clipup --set population=20"
    )
