"""Where `max_speed` cannot matter, it is recognized, and no rule advises another value of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import clipup
from clipup.diagnosis import diagnose
from clipup.diagnosis.scale import is_scale_free
from clipup.runs.config import RunConfig
from clipup.runs.records import Record

Run = Callable[..., tuple[list[Record], RunConfig]]


@pytest.mark.parametrize(
    ("settings", "actions", "free"),
    [
        ({"policy": "linear"}, "discrete", True),
        ({"policy": "linear-bias"}, "discrete", True),
        ({"policy": "linear-bias", "radius_factor": 3.0, "step_ratio": 0.9}, "discrete", True),
        ({"policy": "linear"}, "box", False),
        ({"policy": "linear"}, "", False),
        ({"policy": "mlp:8"}, "discrete", False),
        ({"policy": "linear", "radius": 0.3}, "discrete", False),
        ({"policy": "linear", "step_size": 0.3}, "discrete", False),
        ({"policy": "linear", "optimizer": "adam"}, "discrete", False),
    ],
)
def test_only_linear_policies_with_discrete_actions_are_free_of_scale(
    settings: dict[str, object], actions: str, free: bool
) -> None:
    assert is_scale_free(RunConfig(env="A", **settings), actions) is free  # type: ignore[arg-type]
    assert not is_scale_free(None, actions)


@pytest.mark.parametrize("env", ["CartPole-v1", "Acrobot-v1", "MountainCar-v0"])
def test_runs_of_very_different_max_speed_are_the_same_there(env: str) -> None:
    pytest.importorskip("envpool")
    settings = {"generations": 3, "population": 12, "evaluate_every": 1, "evaluation_episodes": 2, "seed": 2}
    runs = [clipup.train(env, max_speed=speed, **settings) for speed in (0.0625, 4.0)]  # type: ignore[arg-type]
    assert [record.fitness_mean for record in runs[0].records] == [record.fitness_mean for record in runs[1].records]
    assert runs[0].score == runs[1].score


FAULTY: list[tuple[Callable[[np.ndarray], np.ndarray], dict[str, object]]] = [
    (lambda x: np.zeros(len(x)), {}),
    (lambda x: -np.square(x - 1.0).sum(axis=1), {"max_speed": 1e-4}),
    (lambda x: -np.square(x - 1.0).sum(axis=1), {"max_speed": 30.0}),
    (lambda x: -np.square(x - 1.0).sum(axis=1) * 1e-9, {"noise": 1.0}),
    (lambda x: x.sum(axis=1), {"max_speed": 1e-4, "noise": 1e-4}),
]


@pytest.mark.parametrize("case", range(len(FAULTY)))
def test_no_rule_advises_another_max_speed_where_it_has_no_effect(run: Run, case: int) -> None:
    function, settings = FAULTY[case]
    records, config = run(function, **settings)
    config = replace(config, policy="linear")
    before = diagnose(records, config, "box")
    now = diagnose(records, config, "discrete")
    assert before and any("max_speed" in finding.change for finding in before)
    assert [finding.rule for finding in now] == [finding.rule for finding in before]
    for finding in now:
        assert "max_speed" not in finding.change and "Try max_speed" not in finding.suggestion
        assert finding.change
