from dataclasses import replace

import pytest

from clipup import PGPE
from clipup.errors import InvalidArgument
from clipup.searches import SEARCHES, SearchSettings, make_search

SETTINGS = SearchSettings(
    max_speed=0.3, seed=7, population=8, stdev_learning_rate=0.2, stdev_max_change=0.1, fitness_shaping="raw"
)


def test_the_first_name_is_the_default():
    assert SEARCHES[0] == "pgpe"


def test_a_search_is_made_from_settings():
    search = make_search("pgpe", SETTINGS, 9)
    same = PGPE(
        dimension=9, seed=7, population_size=8, max_speed=0.3, stdev_learning_rate=0.2, stdev_max_change=0.1,
        fitness_shaping="raw",
    )  # fmt: skip
    assert repr(search) == repr(same)
    assert search.settings() == same.settings()
    assert search.ask().tobytes() == same.ask().tobytes()


def test_the_radius_is_given_or_follows_from_the_maximum_speed():
    factor, given = replace(SETTINGS, radius_factor=2.0), replace(SETTINGS, radius=4.0)
    assert make_search("pgpe", factor, 9).settings()["radius"] == pytest.approx(0.6)
    assert make_search("pgpe", given, 9).settings()["radius"] == pytest.approx(4.0)


def test_the_bound_of_a_population_counts_only_where_it_grows():
    bounded = replace(SETTINGS, population_max=24)
    assert make_search("pgpe", bounded, 9).following() is None
    grown = make_search("pgpe", replace(bounded, interactions=100), 9)
    assert grown.settings()["population_max"] == 24
    assert len(grown.following()) == 8


def test_the_optimizer_is_chosen_by_its_name():
    made = make_search("pgpe", replace(SETTINGS, optimizer="adam"), 9)
    assert made.settings()["optimizer"] == "Adam(step_size=0.3, beta1=0.9, beta2=0.999, epsilon=1e-08)"


def test_an_unknown_search_is_refused_with_the_names_that_exist():
    with pytest.raises(InvalidArgument, match=r"search must be one of pgpe, openai-es, .*, got 'cma'"):
        make_search("cma", SETTINGS, 9)
