from pathlib import Path

import numpy as np
import pytest

from clipup.reproduction.experiments import EXPERIMENTS
from clipup.reproduction.figures import FEW, draw
from clipup.reproduction.page import scale_table, tables
from clipup.reproduction.verdicts import verdicts
from tests.unit.reproduction.conftest import MakeResults, run_result

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("count", [2, FEW + 1])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_its_figures_as_png_and_svg(
    name: str, count: int, make_results: MakeResults, tmp_path: Path
) -> None:
    experiment = EXPERIMENTS[name]
    runs = {
        group.name: [run_result(seed, 100.0 * seed, speeds=(0.1, 0.2, 0.3)) for seed in range(1, count + 1)]
        for group in experiment.groups
    }
    files = draw(experiment, make_results(name, runs), tmp_path)
    assert [path.suffix for path in files] == [".png", ".svg"] * len(experiment.figures)
    assert all(path.stat().st_size > 1000 for path in files)


def test_the_same_results_give_the_same_picture(make_results: MakeResults, tmp_path: Path) -> None:
    results = make_results("walker2d", {"clipup": [run_result(1, 100.0), run_result(2, 110.0)]})
    first = draw(EXPERIMENTS["walker2d"], results, tmp_path / "a")
    second = draw(EXPERIMENTS["walker2d"], results, tmp_path / "b")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


@pytest.mark.parametrize(("count", "title"), [(FEW, "each line is a run"), (FEW + 1, "lines: medians")])
def test_few_runs_are_drawn_one_by_one(count: int, title: str, make_results: MakeResults, tmp_path: Path) -> None:
    runs = [run_result(seed, 100.0 * seed) for seed in range(1, count + 1)]
    _, picture = draw(EXPERIMENTS["walker2d"], make_results("walker2d", {"clipup": runs, "adam": runs[:1]}), tmp_path)
    assert title in picture.read_text("utf-8")


def test_without_runs_no_curve_is_drawn(make_results: MakeResults, tmp_path: Path) -> None:
    assert draw(EXPERIMENTS["humanoid"], make_results("humanoid", {}), tmp_path) == []


def test_runs_evaluated_once_are_drawn_as_a_point(make_results: MakeResults, tmp_path: Path) -> None:
    runs = [run_result(seed, 9.0, score_interactions=(1000 + seed,), scores=(9.0 * seed,)) for seed in (1, 2)]
    results = make_results("walker2d", {"clipup": runs})
    grid, curves = results.group("clipup").curves()
    assert grid.tolist() == [1001.5] and curves.tolist() == [[9.0], [18.0]]
    assert len(draw(EXPERIMENTS["walker2d"], results, tmp_path)) == 2


def test_speeds_are_drawn_as_far_as_the_longest_run(make_results: MakeResults, tmp_path: Path) -> None:
    def picture(name: str, generations: int) -> bytes:
        runs = [run_result(1, 9.0, speeds=(0.1, 0.2, 0.3)), run_result(2, 9.0, speeds=(0.2,) * generations)]
        results = make_results("update-magnitudes", {"clipup": runs})
        return draw(EXPERIMENTS["update-magnitudes"], results, tmp_path / name)[0].read_bytes()

    assert picture("long", 40) != picture("short", 3)


def test_a_run_is_not_drawn_beyond_its_end(make_results: MakeResults) -> None:
    short = run_result(2, 50.0, score_interactions=(1000, 2000), scores=(10.0, 50.0))
    results = make_results("walker2d", {"clipup": [run_result(1, 100.0), short]})
    grid, curves = results.group("clipup").curves()
    assert grid[0] == 1000 and grid[-1] == 4000
    assert np.isnan(curves[1][grid > 2000]).all() and not np.isnan(curves[0]).any()


def test_the_scale_table_has_percentages_of_the_ranked_mean(make_results: MakeResults) -> None:
    runs = {"clipup-ranks": [run_result(1, 200.0)], "clipup-raw": [run_result(1, 150.0)]}
    table = scale_table(make_results("fitness-scale", runs))
    assert table.rows[1][:3] == ("raw rewards", "150.00 (75.00 %)", "270.15 (100.07 %)")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_tables_have_as_many_cells_as_their_header(name: str, make_results: MakeResults) -> None:
    results = make_results(name, {})
    for table in tables(results, verdicts(results)):
        assert all(len(row) == len(table.header) for row in table.rows)
        assert table.text() and table.markdown()
