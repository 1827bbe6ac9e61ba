import math

import pytest

from clipup.errors import InvalidArgument
from clipup.reproduction.experiments import EXPERIMENTS, experiment_named
from clipup.reproduction.planned_runs import PlannedRun, plan
from clipup.training.setup import make_search

PARAMETERS = {"fitness-scale": 16, "walker2d": 108, "humanoid": 6409, "humanoid-bullet": 3985}


def first(experiment: str, group: str) -> PlannedRun:
    return plan(experiment_named(experiment), runs=1, only=[group])[0]


@pytest.mark.parametrize(
    ("experiment", "group", "published"),
    [
        # λ, λ_max, T, v_max, r, α, generations: the paper's tables of hyperparameters
        ("fitness-scale", "clipup-ranks", (200, 0, 0, 0.3, 4.5, 0.15, 50)),
        ("walker2d", "clipup", (100, 800, 75_000, 1.5e-2, 0.225, 7.5e-3, 500)),
        ("humanoid", "clipup", (200, 3200, 150_000, 1.5e-2, 0.27, 7.5e-3, 1000)),
        ("step-size", "clipup-fast", (200, 3200, 150_000, 1.5e-2, 0.27, 1.1e-2, 1000)),
        ("small-population", "clipup-small", (80, 400, 60_000, 1.5e-2, 0.27, 7.5e-3, 1000)),
        ("humanoid-bullet", "clipup", (10_000, 80_000, 1_500_000, 0.15, 2.25, 0.075, 1000)),
    ],
)
def test_clipup_runs_with_the_paper_s_hyperparameters(
    experiment: str, group: str, published: tuple[float, ...]
) -> None:
    config = first(experiment, group).config
    search = make_search(config, PARAMETERS.get(experiment, 6409))
    radius = math.sqrt(float((search.stdev.astype(float) ** 2).sum()))
    found = (
        config.population, config.population_max or 0, config.interactions or 0, search.max_speed, radius,
        search.optimizer.step_size, config.generations,  # type: ignore[attr-defined]
    )  # fmt: skip
    assert found == pytest.approx(published, rel=1e-5)
    assert config.momentum == 0.9 and config.stdev_learning_rate == 0.1 and config.stdev_max_change == 0.2
    assert config.episodes == 1 and config.evaluation_episodes == 16


@pytest.mark.parametrize(("experiment", "step_size"), [("walker2d", 4e-3), ("humanoid", 6e-4)])
def test_adam_runs_with_the_paper_s_hyperparameters(experiment: str, step_size: float) -> None:
    adam, clipup = first(experiment, "adam").config, first(experiment, "clipup").config
    assert (adam.optimizer, adam.step_size, adam.beta1, adam.beta2, adam.epsilon) == (
        "adam",
        step_size,
        0.9,
        0.999,
        1e-8,
    )
    assert adam.radius_factor * adam.max_speed == clipup.radius_factor * clipup.max_speed


@pytest.mark.parametrize(
    ("experiment", "policy", "normalize", "offset"),
    [
        ("fitness-scale", "linear", False, 0.0),
        ("walker2d", "linear-bias", True, -1.0),
        ("humanoid", "linear-bias", True, -5.0),
    ],
)
def test_policies_and_removed_bonuses_are_the_paper_s(
    experiment: str, policy: str, normalize: bool, offset: float
) -> None:
    config = plan(experiment_named(experiment), runs=1)[0].config
    assert (config.policy, config.normalize, config.reward_offset) == (policy, normalize, offset)


def test_bullet_trains_on_short_episodes_without_the_alive_bonus() -> None:
    config = first("humanoid-bullet", "clipup").config
    assert (config.max_episode_steps, config.reward_terms, config.policy) == (200, "1,2,3,4", "mlp:64")


def test_noclip_is_clipup_without_its_clipping() -> None:
    config = first("clipping", "noclip-fast").config
    assert make_search(config, 6409).max_speed is None and config.step_size == 1.1e-2


def test_the_four_scales_differ_in_the_fitness_alone() -> None:
    runs = {run.group: run.config for run in plan(experiment_named("fitness-scale"), runs=1)}
    scales = [(runs[f"clipup-{scale}"].fitness_shaping, runs[f"clipup-{scale}"].fitness_scale)
              for scale in ("ranks", "raw", "times-1000", "over-1000")]  # fmt: skip
    assert scales == [("centered-rank", 1.0), ("raw", 1.0), ("raw", 1000.0), ("raw", 0.001)]


def test_experiments_with_equal_settings_share_their_runs() -> None:
    names = {
        name: {run.name for run in plan(EXPERIMENTS[name])}
        for name in ("humanoid", "update-magnitudes", "step-size", "clipping", "small-population")
    }
    assert names["humanoid"] < names["update-magnitudes"]
    assert len(names["humanoid"] & names["step-size"]) == 30
    assert len(names["clipping"] & names["step-size"]) == 60
    assert len(names["clipping"] & names["update-magnitudes"]) == 60
    assert not names["small-population"] & names["humanoid"]


def test_an_unknown_experiment_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InvalidArgument, match="did you mean 'walker2d'"):
        experiment_named("walker-2d")
