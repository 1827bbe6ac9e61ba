import math

import numpy as np
import pytest

from clipup import PGPE, Adam, ClipUp
from clipup.errors import ClipUpError, InvalidArgument


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "a search needs dimension=… or center=…, got neither"),
        ({"dimension": 0}, "dimension must be a positive whole number, got 0"),
        ({"dimension": 2.0}, "dimension must be a positive whole number, got 2.0"),
        ({"dimension": True}, "dimension must be a positive whole number, got True"),
        ({"dimension": 3, "center": [1.0, 2.0]}, "dimension=3 contradicts a center of 2 numbers"),
        ({"center": []}, r"center must be a vector of at least one number, got shape \(0,\)"),
        ({"center": [[1.0]]}, r"center must be a vector of at least one number, got shape \(1, 1\)"),
        ({"center": 1.0}, r"center must be a vector of at least one number, got shape \(\)"),
        ({"center": ["x"]}, "center must be an array of real numbers"),
        ({"center": [math.inf]}, "center must be finite and fit float32 .* got a largest of .*inf"),
        ({"center": [1e38]}, "center must be finite and fit float32"),
        ({"dimension": 2, "population_size": 7}, "population_size must be an even number of at least 2 .* got 7"),
        ({"dimension": 2, "population_size": 0}, "population_size must be an even number of at least 2 .* got 0"),
        ({"dimension": 2, "population_size": -2}, "population_size must be an even number of at least 2 .* got -2"),
        ({"dimension": 2, "population_size": 4.0}, "population_size must be an even number .* got 4.0"),
        ({"dimension": 2, "max_speed": 0.0}, "max_speed must be a positive number, got 0.0"),
        ({"dimension": 2, "max_speed": -1}, "max_speed must be a positive number, got -1"),
        (
            {"dimension": 2, "max_speed": None},
            "a search needs max_speed=…, the longest step of the center, or optimizer=…",
        ),
        ({"dimension": 2, "step_size": -1}, "step_size must be a positive number, got -1"),
        ({"dimension": 2, "momentum": 1}, "momentum must be at least 0 and less than 1, got 1"),
        ({"dimension": 2, "radius": 0}, "radius must be a positive number, got 0"),
        ({"dimension": 2, "radius": 1.0, "stdev": 1.0}, "radius=1.0 and stdev mean the same thing"),
        ({"dimension": 2, "stdev": 0.0}, "stdev must be positive in every coordinate, got a smallest of .*0.0"),
        (
            {"dimension": 2, "stdev": [1.0, -1.0]},
            "stdev must be positive in every coordinate, .* smallest of .*-1.0",
        ),
        ({"dimension": 2, "stdev": [1.0, 1.0, 1.0]}, r"stdev must be one number or 2 of them, got shape \(3,\)"),
        ({"dimension": 2, "stdev": 1e-40}, "stdev must be at least 1.17.* got .*1e-40"),
        ({"dimension": 2, "stdev_learning_rate": -0.1}, "stdev_learning_rate must be positive, or 0 .* got -0.1"),
        ({"dimension": 2, "stdev_learning_rate": math.nan}, "stdev_learning_rate must be a finite number, got nan"),
        ({"dimension": 2, "stdev_max_change": 0}, "stdev_max_change must lie between 0 and 1, or be None .* got 0"),
        ({"dimension": 2, "stdev_max_change": 1.0}, "stdev_max_change must lie between 0 and 1"),
        (
            {"dimension": 2, "fitness_shaping": "rank"},
            "one of centered-rank, raw, reward-normalized, nes, linear, normalized, got 'rank'",
        ),
        ({"dimension": 2, "fitness_max": 1.0}, "fitness_max belongs to 'reward-normalized' shaping"),
        (
            {"dimension": 2, "fitness_shaping": "reward-normalized", "fitness_max": math.inf},
            "fitness_max must be a finite number, got inf",
        ),
        (
            {"dimension": 2, "population_max": 100},
            "population_max=100 bounds an adaptive population",
        ),
        ({"dimension": 2, "interactions": 0}, "interactions must be a positive whole number, got 0"),
        ({"dimension": 2, "interactions": 10.0}, "interactions must be a positive whole number, got 10.0"),
        (
            {"dimension": 2, "population_size": 10, "interactions": 5, "population_max": 8},
            "population_max must be at least population_size=10, got 8",
        ),
        (
            {"dimension": 2, "population_size": 10, "interactions": 5, "population_max": 15},
            "population_max must be an even number of at least 2",
        ),
        ({"dimension": 2, "seed": -1}, r"seed must be an integer from 0 to 2\*\*64 - 1, got -1"),
        ({"dimension": 2, "optimizer": Adam(0.1)}, "max_speed describes the default optimizer; set it in"),
        ({"dimension": 2, "max_speed": None, "optimizer": Adam}, "optimizer must be an instance with kind, ascent"),
        ({"dimension": 2, "max_speed": None, "optimizer": "adam"}, "optimizer must be an instance .* got 'adam'"),
        (
            {"dimension": 2, "max_speed": None, "optimizer": Adam(0.1), "momentum": 0.5},
            "momentum describes the default optimizer",
        ),
        ({"dimension": 2, "max_speed": None, "optimizer": Adam(0.1)}, "give radius=… or stdev=…"),
    ],
)
def test_bad_arguments_are_refused_with_the_rule_and_the_value(arguments, message):
    with pytest.raises(InvalidArgument, match=message) as caught:
        PGPE(**({"max_speed": 0.1} | arguments))
    assert isinstance(caught.value, ClipUpError)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


def test_all_follows_from_the_maximum_speed_by_the_papers_rules():
    search = PGPE(dimension=100, max_speed=0.3)
    assert repr(search.optimizer) == "ClipUp(step_size=0.15, max_speed=0.3, momentum=0.9)"
    assert search.stdev.tolist() == pytest.approx([15 * 0.3 / 10] * 100)
    assert not search.center.any()
    assert search.population_size == 2 * math.ceil(10 + math.sqrt(100))


def test_what_is_given_overrides_what_follows():
    search = PGPE(dimension=4, max_speed=0.3, step_size=0.2, momentum=0.5, radius=8.0)
    assert repr(search.optimizer) == "ClipUp(step_size=0.2, max_speed=0.3, momentum=0.5)"
    assert search.stdev.tolist() == [4.0] * 4


def test_a_clipup_given_as_the_optimizer_tells_the_scale_too():
    assert PGPE(dimension=4, optimizer=ClipUp(0.1, 0.2)).stdev.tolist() == pytest.approx([1.5] * 4)


def test_the_bound_of_an_adaptive_population_is_eight_batches_unless_given():
    assert PGPE(dimension=2, max_speed=1, population_size=10, interactions=5).population_max == 80
    assert PGPE(dimension=2, max_speed=1, population_size=10).population_max is None


@pytest.mark.parametrize("center", [[1, 2], (1.0, 2.0), np.array([1, 2], np.int16), np.array([1.0, 2.0], np.float32)])
def test_lists_integers_and_read_only_arrays_are_centers(center):
    if isinstance(center, np.ndarray):
        center.flags.writeable = False
    search = PGPE(center=center, max_speed=np.float32(0.5), population_size=np.int64(4), seed=np.uint8(3))
    assert search.center.tolist() == [1.0, 2.0]
    assert search.center.dtype == np.float32


def test_one_stdev_or_one_for_each_coordinate():
    assert PGPE(dimension=3, max_speed=1, stdev=2).stdev.tolist() == [2.0, 2.0, 2.0]
    assert PGPE(dimension=3, max_speed=1, stdev=[1, 2, 3]).stdev.tolist() == [1.0, 2.0, 3.0]


def test_searches_without_a_seed_differ_and_tell_their_seed():
    one, other = PGPE(dimension=3, max_speed=1), PGPE(dimension=3, max_speed=1)
    assert one.seed != other.seed
    assert np.array_equal(one.ask(), PGPE(dimension=3, max_speed=1, seed=one.seed).ask())
