import argparse
import json
import shlex
from pathlib import Path

import pytest

from clipup.cli.reproduce import configure
from clipup.reproduction.experiments import EXPERIMENTS
from clipup.reproduction.page import build_page
from clipup.reproduction.results import encode, read_results
from clipup.reproduction.verdicts import verdicts
from tests.unit.reproduction.conftest import MakeResults, run_result

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reproduction.md"
RESULTS = ROOT / "results"


def test_the_page_is_what_the_committed_results_make_it() -> None:
    assert PAGE.read_text("utf-8") == build_page(RESULTS, PAGE), (
        "run: clipup reproduce --page docs/reproduction.md --results results"
    )


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.name)
def test_every_committed_result_names_its_command_and_has_the_verdicts_of_its_numbers(path: Path) -> None:
    results = read_results(path)
    assert results.experiment == path.stem
    assert results.provenance.command.startswith(f"clipup reproduce {path.stem}")
    assert results.provenance.commit and results.provenance.versions and results.provenance.hardware
    kept = [verdict["verdict"] for verdict in json.loads(path.read_bytes())["verdicts"]]
    assert kept == [verdict.verdict for verdict in verdicts(results)]


def test_an_experiment_without_results_says_that_it_was_not_run(tmp_path: Path) -> None:
    page = build_page(tmp_path, tmp_path / "page.md")
    assert all(f"Not run yet: `clipup reproduce {name}`" in page for name in EXPERIMENTS)


def test_the_commands_of_the_plan_name_experiments_groups_and_settings_that_exist() -> None:
    plan = PAGE.read_text("utf-8").partition("## A plan of the computing time")[2].partition("\n## ")[0]
    parser = argparse.ArgumentParser()
    configure(parser)
    commands = [shlex.split(line, comments=True) for line in plan.splitlines() if line.startswith("clipup reproduce")]
    assert len(commands) == 5
    for words in commands:
        found = parser.parse_args(words[2:])
        assert set(found.group) <= {group.name for group in EXPERIMENTS[found.name].groups}


def test_the_plan_counts_with_the_speeds_that_were_measured() -> None:
    measured = json.loads((ROOT / "benchmarks/results/compiled_speed.json").read_text())["tasks"]
    humanoid, walker = measured["Humanoid-v4"], measured["Walker2d-v4"]["first"]["compiled"]
    speeds = (humanoid["first"]["compiled"], humanoid["late"]["compiled"], walker, humanoid["late"]["envpool"])
    first, walking, walker2d, envpool = (f"{round(speed, -2):,.0f}" for speed in speeds)
    plan = " ".join(PAGE.read_text("utf-8").split())
    assert f"the Humanoid makes {first} interactions a second while it falls and {walking} when it walks" in plan
    assert f"Walker2d makes {walker2d}" in plan and f"a Humanoid that walks makes {envpool}." in plan


def test_runs_that_are_not_all_there_are_counted(make_results: MakeResults, tmp_path: Path) -> None:
    runs = [run_result(1, 300.0), run_result(2, 100.0, complete=False, generations=77)]
    (tmp_path / "walker2d.json").write_bytes(encode(make_results("walker2d", {"clipup": runs})))
    page = build_page(tmp_path, tmp_path / "page.md")
    assert "| [walker2d](#walker2d) | 1 of 60 (and 1 begun) | 0 | 0 | 0 | 0 | 1 |" in page
    assert "| ClipUp | – | 300.00 | 300.00 | 1 of 30 | 1, farthest at generation 77: 100 |" in page


def test_every_run_says_what_it_took_to_the_threshold(make_results: MakeResults, tmp_path: Path) -> None:
    way = {"score_interactions": (1_000_000, 24_330_000, 25_000_000), "scores": (300.0, 6001.0, 5900.0)}
    runs = [
        run_result(1, 5900.0, complete=False, engine="compiled", interactions=25_000_000, **way),
        run_result(2, 842.0),
    ]
    groups = {"clipup-small": runs, "noclip-small": [run_result(1, 2298.0)]}
    (tmp_path / "small-population.json").write_bytes(encode(make_results("small-population", groups)))
    page = build_page(tmp_path, tmp_path / "page.md")
    passed = "1 of 2 with ClipUp, λ = 80 (after 24.3 million interactions); 0 of 1 with NoClip, λ = 80."
    assert f"Runs that passed 6000, the solving threshold: {passed}" in page
    assert "| best score | interactions to 6000 |" in page
    assert "| ClipUp, λ = 80 | 1 | compiled | 50 | 25.00 | 5900 | 6001 | 24.33 |" in page
    assert "| 842 | 842 | – |" in page


def test_settings_that_are_not_the_paper_s_are_said(make_results: MakeResults, tmp_path: Path) -> None:
    results = make_results("humanoid-bullet", {"clipup": [run_result(1, 3.0)]}, changes={"population": "200"})
    (tmp_path / "humanoid-bullet.json").write_bytes(encode(results))
    page = build_page(tmp_path, tmp_path / "page.md")
    assert "**These are not the paper's settings**: population = 200" in page
    assert "| 0 of 10 (and 1 of 1000 generations, with other settings) | 0 | 0 | 0 | 0 | 2 |" in page


def test_bullet_s_time_on_64_cores_is_projected_from_the_pace_of_its_runs(
    make_results: MakeResults, tmp_path: Path
) -> None:
    run = run_result(1, 80.0, interactions=36_000, seconds=36.0, workers=2, fitness_start=-7.0, fitness_end=5.5)
    (tmp_path / "humanoid-bullet.json").write_bytes(encode(make_results("humanoid-bullet", {"clipup": [run]})))
    page = build_page(tmp_path, tmp_path / "page.md")
    assert "from 20 at the first evaluation to 80 at the last" in page
    assert "went from -7.00 to 5.50" in page
    assert "made 500 interactions per second and core" in page and "would take 6.5 and 8.7 hours on 64 cores" in page


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        (50.0, "gains 50 per million. It reaches 3500, the solving threshold, after 70 million: 7 more hours of two"),
        (-1.0, "gains -1 per million: it never reaches 3500"),
        (90.0, None),  # solved
    ],
)
def test_bullet_s_curve_says_where_it_leads(
    gain: float, said: str | None, make_results: MakeResults, tmp_path: Path
) -> None:
    places = [million * 1_000_000 for million in range(1, 41)]
    scores = [40.0 if place <= 10e6 else gain * place / 1e6 for place in places]  # its first part counts for nothing
    way = {"score_interactions": tuple(places), "scores": tuple(scores)}
    run = run_result(1, scores[-1], interactions=40_000_000, seconds=64_000.0, workers=1, **way)
    (tmp_path / "humanoid-bullet.json").write_bytes(encode(make_results("humanoid-bullet", {"clipup": [run]})))
    page = build_page(tmp_path, tmp_path / "page.md")
    assert ("Runs that passed 3500" in page) == (said is None)
    assert page.count("A straight line through the scores of the second half of seed 1, from 20.0 million") == bool(
        said
    )
    assert said is None or said in page


def test_what_the_scale_does_to_the_standard_deviation_is_told(make_results: MakeResults, tmp_path: Path) -> None:
    scales = ("ranks", "raw", "times-1000", "over-1000")
    runs = {
        f"clipup-{scale}": [run_result(1, 9.0, stdev_norm=norm)]
        for scale, norm in zip(scales, (4, 1, 2, 3), strict=True)
    }
    (tmp_path / "fitness-scale.json").write_bytes(encode(make_results("fitness-scale", runs)))
    page = build_page(tmp_path, tmp_path / "page.md")
    assert "fitness ranking 4.00 (4.00 … 4.00); raw rewards 1.00" in page


def test_the_page_shows_what_few_runs_support_and_what_would_overturn_it(
    make_results: MakeResults, tmp_path: Path
) -> None:
    runs = [run_result(1, 6200.0, complete=False, scores=(6100.0, 6200.0), score_interactions=(1, 2))]
    (tmp_path / "humanoid.json").write_bytes(encode(make_results("humanoid", {"clipup": runs})))
    page = build_page(tmp_path, tmp_path / "page.md")
    assert "| [humanoid](#humanoid) | 0 of 60 (and 1 begun) | 0 | 0 | 1 | 0 | 3 |" in page
    assert "supported by 1 of 1 run; 15 finished runs with a mean of 6000 or less would overturn this |" in page
