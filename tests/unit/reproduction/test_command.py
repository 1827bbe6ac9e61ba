import shutil
from pathlib import Path

import pytest

from clipup.cli.main import main
from clipup.reproduction.experiments import EXPERIMENTS
from clipup.reproduction.planned_runs import PlannedRun, plan
from clipup.reproduction.results import command, read_results
from clipup.runs.config import RunConfig
from clipup.runs.records import encode_line
from clipup.runs.toml import format_config
from tests.unit.reproduction.conftest import MakeResults, run_result
from tests.unit.runs.test_records import record


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
        (["walker2d", "--set", "normalize=perhaps"], "true or false"),
        (["walker2d", "--set", "seed=3"], "seed"),
        (["walker2d", "--set", "env=CartPole-v1"], "env"),
        (["walker2d", "--set", "generations=3"], "--generations"),
        (["walker2d", "--set", "workers=3"], "--jobs"),
        (["step-size", "--set", "step_size=0.01"], "makes the groups clipup and clipup-fast the same"),
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


def test_the_command_of_a_result_is_the_one_that_makes_all_that_is_in_it(make_results: MakeResults) -> None:
    both = make_results("walker2d", {"clipup": [run_result(1, 3.0), run_result(2, 4.0)], "adam": [run_result(1, 3.0)]})
    one = make_results("walker2d", {"adam": [run_result(1, 3.0)]})
    experiment = EXPERIMENTS["walker2d"]
    assert command(experiment, both.groups, 500, {}) == "clipup reproduce walker2d --runs 2"
    assert command(experiment, one.groups, 9, {"population": 20}) == (
        "clipup reproduce walker2d --runs 1 --generations 9 --group adam --set population=20"
    )


def begun(out: Path, config: RunConfig | None = None) -> tuple[PlannedRun, ...]:
    """Two runs of each group of walker2d that have made their first generation."""
    runs = plan(EXPERIMENTS["walker2d"], runs=2, generations=5)
    for run in runs:
        folder = run.directory(out).path
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text(format_config(config or run.config))
        (folder / "records.jsonl").write_bytes(encode_line(record()))
    return runs


def test_a_result_of_runs_that_are_not_here_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = begun(tmp_path / "out")
    collecting = ["reproduce", "walker2d", "--collect", "--no-figures", "--results", str(tmp_path)]
    assert main([*collecting, "--out", str(tmp_path / "out")]) == 0
    before = (tmp_path / "walker2d.json").read_bytes()
    assert main([*collecting, "--out", str(tmp_path / "elsewhere")]) == 2
    shutil.rmtree(runs[-1].directory(tmp_path / "out").path)
    capsys.readouterr()
    assert main([*collecting, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert runs[-1].name in error and error.count("\n") == 1
    assert (tmp_path / "walker2d.json").read_bytes() == before


def test_a_run_with_other_settings_than_its_name_says_is_not_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(tmp_path, RunConfig(env="Walker2d-v4", max_speed=3.0, population=8))
    assert main(["reproduce", "walker2d", "--collect", "--no-figures", "--out", str(tmp_path)]) == 2
    assert "its run differs in" in capsys.readouterr().err


def test_runs_of_other_groups_and_seeds_stay_in_the_result(tmp_path: Path) -> None:
    begun(tmp_path)
    words = ["--collect", "--no-figures", "--generations", "5", "--out", str(tmp_path)]
    assert main(["reproduce", "walker2d", "--group", "adam", "--runs", "1", *words]) == 0
    results = read_results(tmp_path / "walker2d.json")
    assert [len(group.runs) for group in results.groups] == [2, 2]
    assert results.provenance.command == "clipup reproduce walker2d --runs 2 --generations 5"
