"""What is learned is told from what is there without training."""

from __future__ import annotations

from pathlib import Path

import pytest

from clipup.evaluation import summarize
from clipup.runs.config import RunConfig
from clipup.tuning import TuningSettings, tune
from clipup.tuning.baseline import Baseline, gain_over, measure_baseline
from clipup.tuning.speed_search import Point, Standing

pytest.importorskip("optuna")
pytest.importorskip("envpool")

CHEAP = TuningSettings(points=3, budget=6)


def config(env: str, **settings: object) -> RunConfig:
    small = {"generations": 4, "population": 8, "evaluation_episodes": 4, "workers": 1}
    return RunConfig(env=env, **(small | settings))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "learned"),
    [((10.0, 10.5, 11.0), False), ((30.0, 31.0, 29.0), True), ((30.0, 2.0), False), ((13.0,), False), ((30.0,), True)],
)
def test_learned_means_better_than_no_training_beyond_luck(values: tuple[float, ...], learned: bool) -> None:
    baseline = Baseline(summarize([9.0, 11.0] * 8), summarize([4.0, 6.0] * 8))
    gain = gain_over(baseline, Standing(Point(0.1), values), evaluation_error=3.0)
    assert gain.learned is learned and gain.name == "the untrained policy" and gain.baseline == 10


def test_the_baseline_of_the_cart_pole_is_short_episodes() -> None:
    found = measure_baseline(config("CartPole-v1"))
    assert found.untrained.mean < 15 and found.better[0] == "random policies" and found.random.mean < 80


def test_no_winner_is_named_where_nothing_learned_and_no_best_settings_are_left(tmp_path: Path) -> None:
    settings, best = config("Pendulum-v1", policy="mlp:2"), tmp_path / "tune" / "best.toml"
    tune(settings, tmp_path / "tune", settings=CHEAP)
    assert not best.exists()
    best.write_text("of a search with a smaller budget")
    result = tune(settings, tmp_path / "tune", settings=CHEAP)
    assert not result.learned and result.setting == "max_speed"
    assert any("None of these learned" in note for note in result.notes)
    assert not best.exists() and "chosen" not in (tmp_path / "tune" / "score-by-max-speed.svg").read_text()


def test_what_matters_is_tuned_where_max_speed_does_not(tmp_path: Path) -> None:
    settings = config("CartPole-v1", generations=6, population=16)
    result = tune(settings, tmp_path / "tune", settings=CHEAP)
    assert result.setting == "radius_factor" and result.notes[0].startswith("max_speed has no effect here")
    assert all("max_speed" not in standing.point.settings() for standing in result.standings)
    assert result.config.max_speed == settings.max_speed
    assert (tmp_path / "tune" / "score-by-radius-factor.png").is_file()
