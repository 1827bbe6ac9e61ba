import dataclasses
from pathlib import Path

import pytest

from clipup.errors import FileFault, InvalidArgument
from clipup.reproduction.experiments import experiment_named
from clipup.reproduction.planned_runs import check_same_run, plan, run_name
from clipup.runs.config import RunConfig
from clipup.runs.rundir import RunDirectory

CONFIG = RunConfig(env="CartPole-v1", seed=3)


@pytest.mark.parametrize(
    "change", [{"generations": 7}, {"workers": 5}, {"cluster": "ray"}, {"checkpoint_seconds": 1.0}]
)
def test_the_name_of_a_run_does_not_depend_on_how_far_or_where_it_runs(change: dict[str, object]) -> None:
    assert run_name(dataclasses.replace(CONFIG, **change)) == run_name(CONFIG)  # type: ignore[arg-type]


@pytest.mark.parametrize("change", [{"seed": 4}, {"max_speed": 0.2}, {"lanes": 8}, {"env_options": {"a": 1}}])
def test_whatever_changes_results_changes_the_name(change: dict[str, object]) -> None:
    assert run_name(dataclasses.replace(CONFIG, **change)) != run_name(CONFIG)  # type: ignore[arg-type]


def test_groups_take_turns_so_that_a_reproduction_cut_short_compares_like_with_like() -> None:
    runs = plan(experiment_named("walker2d"), runs=2)
    assert [(run.group, run.seed) for run in runs] == [("clipup", 1), ("adam", 1), ("clipup", 2), ("adam", 2)]


def test_clipup_s_scales_come_before_adam_s() -> None:
    groups = [run.group for run in plan(experiment_named("fitness-scale"))]
    assert all(group.startswith("clipup") for group in groups[:40]) and groups[40].startswith("adam")


def test_the_number_of_the_paper_is_the_default() -> None:
    runs = plan(experiment_named("fitness-scale"))
    assert len(runs) == 160 and {run.wanted for run in runs} == {50}


def test_a_change_overrules_every_group() -> None:
    runs = plan(
        experiment_named("humanoid"),
        runs=1,
        changes={"population": 10, "interactions": "none", "population_max": "none"},
    )
    assert {run.config.population for run in runs} == {10}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"runs": 0}, "runs"), ({"generations": 0}, "generations"), ({"only": ["adan"]}, "did you mean 'adam'")],
)
def test_what_cannot_be_run_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        plan(experiment_named("walker2d"), **arguments)  # type: ignore[arg-type]


def test_a_directory_with_another_run_in_it_is_refused(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run")
    directory.create(CONFIG)
    directory.close()
    check_same_run(directory, dataclasses.replace(CONFIG, generations=1))
    with pytest.raises(FileFault, match="differs in max_speed"):
        check_same_run(directory, dataclasses.replace(CONFIG, max_speed=0.7))


def test_a_run_that_was_never_begun_has_no_generations(tmp_path: Path) -> None:
    run = plan(experiment_named("fitness-scale"), runs=1)[0]
    assert run.generations_done(tmp_path) == 0 and not run.is_finished(tmp_path)
