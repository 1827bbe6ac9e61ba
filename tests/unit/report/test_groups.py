"""Tasks are kept apart, and a group is named by what differs within its task."""

from __future__ import annotations

from pathlib import Path

import pytest

from clipup.report.charts import write_charts
from clipup.report.groups import group_runs
from clipup.report.loading import load_runs
from clipup.runs.config import RunConfig
from clipup.runs.records import ClockRecord, Record, encode_line
from clipup.runs.rundir import RunDirectory


def make(root: Path, name: str, **settings: object) -> None:
    directory = RunDirectory(root / name)
    directory.create(RunConfig(**settings))  # type: ignore[arg-type]
    record = Record(1, 4, 10, 10, 1.0, 2.0, 2.0, 1.0, 0.1, 0.1, 0.1, False, 1.0, 1.0, 0.5, 0, 0.0, False)
    directory.records_path.write_bytes(encode_line(record))
    directory.clock_path.write_bytes(encode_line(ClockRecord(1, 1.0, 10.0)))
    directory.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for seed in (0, 1):
        make(tmp_path, f"a-{seed}", env="A-v0", policy="linear", population=50, max_speed=0.3, seed=seed)
    make(tmp_path, "b-slow", env="B-v1", policy="mlp:8", population=20, max_speed=0.1)
    make(tmp_path, "b-fast", env="B-v1", policy="mlp:8", population=20, max_speed=0.5)
    return tmp_path


def test_a_group_is_named_by_what_differs_within_its_task(root: Path) -> None:
    groups = group_runs(load_runs([root])[0])
    assert [(group.task, group.label) for group in groups] == [
        ("A-v0", "A-v0"),
        ("B-v1", "max_speed 0.1"),
        ("B-v1", "max_speed 0.5"),
    ]


def test_each_task_has_figures_of_its_own(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    runs = load_runs([root])[0]
    names = {path.name for path in write_charts(runs, tmp_path / "all")}
    assert {"score-A-v0.png", "score-B-v1.svg"} <= names and "score.png" not in names
    one = [run for run in runs if run.settings["env"] == "A-v0"]
    assert "score.png" in {path.name for path in write_charts(one, tmp_path / "one")}
