"""Schedules: settings that change over a run."""

import math
from dataclasses import replace

import numpy as np
import pytest

from clipup.errors import Diverged, InvalidArgument, StateMismatch, WrongOrder
from clipup.searches import SEARCHES, SearchSettings, make_search
from clipup.searches.schedules import Schedule, parse_schedules, scheduled

SETTINGS = SearchSettings(
    seed=1, population=8, max_speed=0.3, stdev_learning_rate=0.1, stdev_max_change=0.2, fitness_shaping="centered-rank"
)


def factors(text, positions):
    ((_, schedule),) = parse_schedules(text).items()
    unit = "interactions" if schedule.unit == "interactions" else "generations"
    other = "generations" if unit == "interactions" else "interactions"
    return [schedule.factor(**{unit: at, other: 7}) for at in positions]


def test_each_shape_gives_its_factors():
    assert factors("max_speed: constant 0.5", [0, 9, 10**9]) == [0.5, 0.5, 0.5]
    assert factors("max_speed: linear 1 to 3 over 10 generations", [0, 5, 10, 99]) == [1, 2, 3, 3]
    cosine = factors("max_speed: cosine 1 to 0.5 over 1e3 interactions", [0, 250, 500, 1000, 2000])
    np.testing.assert_allclose(cosine, [1, 0.75 + math.sqrt(2) / 8, 0.75, 0.5, 0.5], atol=1e-12)
    steps = "population: piecewise 1, 2 at 100, 0.5 at 300 generations"
    assert factors(steps, [0, 99, 100, 299, 300, 9999]) == [1, 1, 2, 2, 0.5, 0.5]


def test_several_schedules_stand_in_one_text():
    text = "max_speed: linear 1 to 0.1 over 50 generations;  stdev_learning_rate: constant 2 ; step_ratio: constant 0.5"
    assert list(parse_schedules(text)) == ["max_speed", "stdev_learning_rate", "step_ratio"]
    assert parse_schedules(text)["step_ratio"] == Schedule("constant", ((0.0, 0.5),))


@pytest.mark.parametrize(
    "text",
    [
        "", ";", "max_speed", "momentum: constant 1", "max_speed: constant", "max_speed: constant 0",
        "max_speed: constant -1", "max_speed: constant inf", "max_speed: constant nan", "max_speed: constant 1e999",
        "max_speed: linear 1 to 2", "max_speed: linear 1 to 2 over 0 generations",
        "max_speed: linear 1 to 2 over 5 days", "max_speed: exponential 1 to 2 over 5 generations",
        "max_speed: piecewise 1 generations", "max_speed: piecewise 1, 2 at 5, 3 at 5 generations",
        "max_speed: piecewise 1, 2 at 5", "max_speed: constant 1; max_speed: constant 2",
        "max_speed: constant 1;", "max_speed: linear 1..2 to 2 over 5 generations",
    ],
)  # fmt: skip
def test_what_is_no_schedule_is_refused_in_one_line(text):
    with pytest.raises(InvalidArgument) as caught:
        parse_schedules(text)
    assert "\n" not in str(caught.value)


def test_the_settings_of_a_generation_follow():
    schedules = parse_schedules("max_speed: constant 0.5; population: linear 1 to 4 over 10 generations")
    now = scheduled(SETTINGS, schedules, generations=5, interactions=0)
    assert (now.max_speed, now.population, now.stdev_learning_rate) == (0.15, 20, 0.1)
    small = scheduled(SETTINGS, parse_schedules("population: constant 0.01"), 0, 0)
    assert small.population == 2
    bound = replace(SETTINGS, interactions=100, population_max=12)
    assert scheduled(bound, parse_schedules("population: constant 9"), 0, 0).population == 12


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_search_goes_on_with_what_it_has_and_the_new_settings(kind):
    search = make_search(kind, SETTINGS, 4)
    for _ in range(3):
        search.tell(-np.square(search.ask() - 1).sum(axis=1))
    before = search.state_dict()
    search.adjust(replace(SETTINGS, population=12, max_speed=0.01))
    after = search.state_dict()
    assert all(np.array_equal(before[key], after[key]) for key in before)
    population = search.ask()
    assert len(population) == 12
    with pytest.raises(WrongOrder, match="not in the middle of one"):
        search.adjust(SETTINGS)
    search.tell(-np.square(population - 1).sum(axis=1))
    figures = search.figures()
    assert figures.population == 12
    if figures.max_speed is not None:
        assert figures.speed <= figures.max_speed == 0.01


@pytest.mark.parametrize("kind", ["pgpe", "openai-es", "ars"])
def test_a_radius_follows_its_schedule_and_a_loaded_search_knows_where_it_was(kind):
    settings = replace(SETTINGS, stdev_learning_rate=0.0, radius=2.0)
    search = make_search(kind, settings, 4)
    radii = []
    for scale in (1.0, 0.5, 0.5, 0.25, 2.0):
        search.adjust(settings, radius_scale=scale)
        search.tell(-np.square(search.ask() - 1).sum(axis=1))
        radii.append(search.figures().stdev_norm)
        loaded = make_search(kind, settings, 4)
        loaded.load_state_dict(search.state_dict())
        search = loaded
    np.testing.assert_allclose(radii, [2.0, 1.0, 1.0, 0.5, 4.0], rtol=1e-6)


def test_the_radius_that_a_search_has_learned_is_scaled_not_replaced():
    one, other = make_search("pgpe", SETTINGS, 4), make_search("pgpe", SETTINGS, 4)
    for _ in range(3):
        fitnesses = -np.square(one.ask() - 1).sum(axis=1)
        other.ask()
        one.tell(fitnesses)
        other.tell(fitnesses)
    assert len(set(one.stdev)) > 1
    other.adjust(SETTINGS, radius_scale=0.25)
    assert np.array_equal(other.stdev, one.stdev / 4)


def test_a_state_from_before_schedules_of_the_radius_can_be_loaded():
    search = make_search("pgpe", SETTINGS, 4)
    state = {key: value for key, value in search.state_dict().items() if key != "radius_scale"}
    search.load_state_dict(state)
    assert search.state_dict()["radius_scale"] == 1.0
    for wrong in (0.0, -1.0, math.inf, math.nan, "1"):
        with pytest.raises(StateMismatch, match="radius_scale"):
            search.load_state_dict(state | {"radius_scale": wrong})


def test_a_radius_that_no_candidate_can_have_is_refused():
    search = make_search("pgpe", SETTINGS, 4)
    before = search.state_dict()
    for wrong, error in ((1e39, Diverged), (0.0, InvalidArgument), (math.nan, InvalidArgument)):
        with pytest.raises(error):
            search.adjust(SETTINGS, radius_scale=wrong)
    assert all(np.array_equal(before[key], value) for key, value in search.state_dict().items())
    search.adjust(SETTINGS, radius_scale=1e-300)
    assert (search.stdev > 0).all()
    with pytest.raises(InvalidArgument, match="finds its own radius"):
        make_search("cma-es", SETTINGS, 4).adjust(SETTINGS, radius_scale=0.5)


def test_the_same_settings_change_no_bit():
    one, other = make_search("pgpe", SETTINGS, 4), make_search("pgpe", SETTINGS, 4)
    for _ in range(5):
        other.adjust(SETTINGS)
        fitnesses = -np.square(one.ask() - 1).sum(axis=1)
        other.ask()
        one.tell(fitnesses)
        other.tell(fitnesses)
    assert np.array_equal(one.center, other.center)
