from collections.abc import Callable

import pytest

from clipup.reproduction.experiments import experiment_named
from clipup.reproduction.results import GroupResult, Provenance, Results, RunResult

MakeResults = Callable[..., Results]


def run_result(seed: int, score: float, **changes: object) -> RunResult:
    values: dict[str, object] = {
        "seed": seed,
        "generations": 50,
        "interactions": 4000,
        "seconds": 10.0,
        "complete": True,
        "score": score,
        "score_standard_error": 1.0,
        "score_interactions": (1000, 2000, 4000),
        "scores": (score / 4, score / 2, score),
        "speeds": (),
        "speed_peak": 0.3,
    }
    return RunResult(**(values | changes))  # type: ignore[arg-type]


@pytest.fixture
def make_results() -> MakeResults:
    """Results of an experiment from a table of group name -> runs; groups not named are empty."""

    def make(name: str, runs: dict[str, list[RunResult]], **changes: object) -> Results:
        experiment = experiment_named(name)
        groups = tuple(
            GroupResult(
                group.name,
                group.label,
                "settings",
                ("run",) * len(runs.get(group.name, [])),
                tuple(runs.get(group.name, [])),
            )
            for group in experiment.groups
        )
        provenance = Provenance(f"clipup reproduce {name}", "2026-01-01 00:00 UTC", "abc", {"numpy": "2"}, {"cpu": "x"})
        values: dict[str, object] = {
            "experiment": name,
            "runs": experiment.runs,
            "generations": experiment.generations,
            "provenance": provenance,
            "groups": groups,
        }
        return Results(**(values | changes))  # type: ignore[arg-type]

    return make
