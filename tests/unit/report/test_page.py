"""What the page is made of: groups, columns, commands, escaping, figures."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from clipup.cli.main import main
from clipup.report import load_run, make_report
from clipup.report.charts import CHARTS, axis_unit, band, run_line, write_charts
from clipup.report.commands import repeat_command, train_command
from clipup.report.groups import group_runs, setting_rows
from clipup.report.page_data import Detail, columns, increments, page_data, short_names
from clipup.report.render import escape_json
from clipup.runs.resolve import resolve

Write = Callable[..., Path]


def accumulate(values: list[float | int | None]) -> list[float | int | None]:
    """Undo `increments`, as the page's script does."""
    total = itertools.accumulate(value or 0 for value in values)
    return [None if value is None else so_far for value, so_far in zip(values, total, strict=True)]


def test_runs_that_differ_by_seed_or_length_alone_belong_together(write_run: Write, tmp_path: Path) -> None:
    paths = [write_run(tmp_path / f"r{seed}", seed=seed, generations=20 + seed, workers=seed + 1) for seed in range(3)]
    groups = group_runs([load_run(path) for path in paths])
    assert [group.members for group in groups] == [(0, 1, 2)]
    assert groups[0].label == "CartPole-v1"
    assert groups[0].settings["seed"] == "0, 1, 2"


def test_groups_are_named_and_ordered_by_what_differs(write_run: Write, tmp_path: Path) -> None:
    speeds = (10.0, 0.5, 2.0)
    runs = [load_run(write_run(tmp_path / f"r{speed}", max_speed=speed)) for speed in speeds]
    groups = group_runs(runs)
    assert [group.label for group in groups] == ["max_speed 0.5", "max_speed 2", "max_speed 10"]
    assert [row.name for row in setting_rows(groups) if row.differs] == ["max_speed"]


def test_options_of_environments_are_compared_too(write_run: Write, tmp_path: Path) -> None:
    runs = [load_run(write_run(tmp_path / str(k), env_options={"gravity": 9.0 + k})) for k in range(2)]
    assert [group.label for group in group_runs(runs)] == ["env.gravity 9", "env.gravity 10"]


def test_columns_hold_the_records_and_increments_turn_back(write_run: Write, tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path / "a"))
    table = columns(run)
    assert accumulate(table["total_interactions"]) == [line.total_interactions for line in run.records]
    assert accumulate(table["milliseconds"]) == [1000 * line.seconds for line in run.clock]
    assert table["score"] == [line.score for line in run.records]
    assert accumulate(increments([3, None, 9, 9])) == [3, None, 9, 9]
    assert len(columns(run, first=15)["speed"]) == 5


def test_times_stay_exact_where_other_columns_are_rounded(write_run: Write, tmp_path: Path) -> None:
    path = write_run(tmp_path / "a", generations=1000)
    seconds = [round(0.0137 * generation, 3) for generation in range(1, 1001)]
    (path / "clock.jsonl").write_text(
        "".join(
            f'{{"generation": {place + 1}, "seconds": {time}, "steps_per_second": 1.0}}\n'
            for place, time in enumerate(seconds)
        )
    )
    found = accumulate(columns(load_run(path), rounded=True)["milliseconds"])
    assert found == [round(1000 * time) for time in seconds]
    assert len(set(found)) == 1000


def test_many_runs_leave_less_room_for_their_curves() -> None:
    assert Detail.fitting(4_000) == Detail(False, 1)
    assert Detail.fitting(30_000, 30) == Detail(True, 1)
    assert Detail.fitting(30_000, 1000) == Detail(True, 2)


def test_names_are_lengthened_until_they_differ(write_run: Write, tmp_path: Path) -> None:
    runs = [load_run(write_run(tmp_path / folder / "run")) for folder in "ab"]
    assert short_names(runs) == ["a/run", "b/run"]


@pytest.mark.parametrize(
    "given",
    [
        {"env": "LunarLanderContinuous-v3", "seed": 4},
        {
            "env": "LunarLanderContinuous-v3",
            "normalize": True,
            "max_speed": 0.125,
            "generations": None,
            "time_limit": 60.0,
        },
        {"env": "Walker2d-v4", "rescale_actions": True, "radius": 2.5, "env_options": {"frame skip": 4, "wind": True}},
        {"env": "some.module:Thing-v0", "policy": "mlp:8,8", "population": 50},
        {"env": "Walker2d-v4", "env_options": {"a": "3", "b": "true", "c": "ant.xml", "d": 'say "3"'}},
        {"env": "Walker2d-v4", "reward_offset": -1e-05, "env_options": {"drift": -2e-07}},
        {"env": "Walker2d-v4", "reward_offset": -1.5, "target_score": -3e20},
    ],
)
def test_the_command_gives_the_same_configuration(given: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    config, _ = resolve(given)
    assert main([*shlex.split(train_command(config))[1:], "--dry-run"]) == 0
    from clipup.runs.resolve import make_config
    from clipup.runs.toml import format_config

    printed = capsys.readouterr().out
    assert printed.strip() == format_config(make_config(config.__dict__)).strip()


def test_paths_with_spaces_are_quoted() -> None:
    assert "'/tmp/my runs/config.toml'" in repeat_command(Path("/tmp/my runs"))


def test_the_command_that_repeats_a_run_names_the_module_that_it_imports() -> None:
    assert "--import my.envs" in repeat_command(Path("/runs/a"), "my.envs:Thing-v0")
    assert "--import" not in repeat_command(Path("/runs/a"), "Walker2d-v4")
    assert "--import" not in repeat_command(Path("/runs/a"), "pybullet_envs_gymnasium:AntBulletEnv-v0")


@pytest.mark.parametrize("cluster", [None, "ray", "auto", "ray://head:10001", "head:6379"])
def test_the_command_that_repeats_a_run_is_taken_wherever_it_ran(
    write_run: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str], cluster: str | None
) -> None:
    path = write_run(tmp_path / "a", cluster=cluster, reward_offset=-1e-05)
    run = page_data([load_run(path)])["runs"][0]  # type: ignore[index]
    assert main([*shlex.split(run["repeat"])[1:], "--dry-run"]) == 0
    printed, written = capsys.readouterr().out.splitlines(), (path / "config.toml").read_text().splitlines()
    differing = [line for line in printed if line not in written]
    assert differing == (['cluster = "none"'] if cluster and ":" in cluster else [])


@pytest.mark.parametrize("text", ["</script>", "<!--", "]]>", "\u2028\u2029", "&lt;", "'\"\\"])
def test_data_cannot_leave_its_script_element(text: str) -> None:
    escaped = escape_json({text: text})
    assert not re.search("[<>&\u2028\u2029]", escaped)
    assert json.loads(escaped) == {text: text}


def test_the_page_asks_for_nothing_from_elsewhere(write_run: Write, tmp_path: Path) -> None:
    page = make_report([write_run(tmp_path / "a")])
    outside = [address for address in re.findall(r"https?://[^\s\"')]+", page) if "www.w3.org" not in address]
    assert outside == []
    assert "default-src 'none'" in page.replace("&#x27;", "'")


def test_the_final_score_is_that_of_the_status_and_the_best_of_any(write_run: Write, tmp_path: Path) -> None:
    data = page_data([load_run(write_run(tmp_path / "a"))])
    run = data["runs"][0]  # type: ignore[index]
    assert (run["score"], run["score_standard_error"], run["best_score"]) == (61.5, 0.25, 61.5)


def test_figures_are_written_in_both_formats_and_hold_the_quartiles(write_run: Write, tmp_path: Path) -> None:
    import numpy as np

    runs = [load_run(write_run(tmp_path / f"r{seed}", seed=seed)) for seed in range(2)]
    written = write_charts(runs, tmp_path / "figures")
    assert {path.name for path in written} == {f"{chart.field}.{kind}" for chart in CHARTS for kind in ("png", "svg")}
    assert all(path.stat().st_size > 2000 for path in written)
    lines = [(np.array([1.0, 2.0]), np.array([value, value])) for value in (1.0, 2.0, 4.0, 9.0)]
    grid, quartiles = band(lines)
    assert grid.tolist() == [1.0, 2.0]
    assert quartiles[:, 0].tolist() == np.percentile([1, 2, 4, 9], [25, 50, 75]).tolist()


def test_every_chart_of_the_page_is_a_figure_too() -> None:
    import clipup.report

    script = (Path(clipup.report.__file__).parent / "static" / "data.js").read_text(encoding="utf-8")
    assert [chart.field for chart in CHARTS] == re.findall(r"\{ key: '(\w+)'", script)


def test_figures_over_time_are_drawn_from_the_clock(write_run: Write, tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path / "a", generations=20))
    times, speeds = run_line(run, "steps_per_second", "time")
    assert times.tolist() == [line.seconds for line in run.clock]
    assert speeds.tolist() == [line.steps_per_second for line in run.clock]
    times, scores = run_line(run, "score", "time", unit=60.0)
    assert times.tolist() == [0.25 * generation / 60 for generation in (5, 10, 15, 20)]
    assert scores.tolist() == [15.0, 30.0, 45.0, 60.0]
    assert axis_unit([run], "time") == (1.0, "training time (seconds)")


@pytest.mark.parametrize(
    ("seconds", "unit", "name"),
    [(0.0, 1.0, "seconds"), (119.0, 1.0, "seconds"), (120.0, 60.0, "minutes"), (9000.0, 3600.0, "hours")],
)
def test_the_axis_of_time_has_the_unit_that_the_longest_run_asks_for(
    write_run: Write, tmp_path: Path, seconds: float, unit: float, name: str
) -> None:
    path = write_run(tmp_path / "a", generations=5)
    (path / "clock.jsonl").write_text(f'{{"generation": 5, "seconds": {seconds}, "steps_per_second": 1.0}}\n')
    assert axis_unit([load_run(path)], "time") == (unit, f"training time ({name})")


def test_a_run_without_a_clock_has_no_figures_over_time(
    write_run: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_run(tmp_path / "a")
    words = ["report", str(path), "-o", str(tmp_path / "page.html"), "--figures", str(tmp_path / "figures")]
    assert main([*words, "--axis", "time", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["figures"]) == 2 * len(CHARTS)
    (path / "clock.jsonl").unlink()
    assert main([*words, "--axis", "time"]) == 0
    assert "no figures: nothing was recorded over time" in capsys.readouterr().err
    assert main([*words, "--axis", "generations", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["figures"]) == 2 * (len(CHARTS) - 1)


def test_the_commands_write_and_say_what_they_wrote(
    write_run: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_run(tmp_path / "a")
    output = tmp_path / "page.html"
    assert main(["report", str(path), str(tmp_path / "gone"), "-o", str(output), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["bytes"] == output.stat().st_size
    assert "no such directory" in said["problems"][str(tmp_path / "gone")][0]
    assert main(["diagnose", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["findings"] == []
    assert main(["report", str(path), "-o", str(tmp_path / "no" / "where.html")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
