"""The scale of the fitness does not reach the steps of the center."""

import numpy as np
import pytest

from clipup import PGPE, Adam
from clipup.optimizers.protocol import norm

TARGET = np.linspace(-1, 1, 12)


def score(candidates):
    x = candidates.astype(np.float64)
    return -np.square(x - TARGET).sum(axis=1) + np.cos(5 * x).sum(axis=1)


def run(scale, generations, **settings):
    search = PGPE(dimension=12, population_size=40, seed=6, **({"max_speed": 0.3} | settings))
    centers = []
    for _ in range(generations):
        search.tell(scale * score(search.ask()))
        centers.append(search.center)
    return np.array(centers), search


@pytest.mark.parametrize("scale", [1000.0, 0.001, 1e-300, 1e290])
def test_ranked_a_whole_run_has_the_same_bits_at_any_scale(scale):
    plain, scaled = run(1.0, 20)[0], run(scale, 20)[0]
    assert np.array_equal(plain, scaled)


@pytest.mark.parametrize("scale", [2.0**10, 2.0**-10, 2.0**-900])
def test_raw_with_a_fixed_stdev_a_whole_run_has_the_same_bits_at_powers_of_two(scale):
    settings = {"fitness_shaping": "raw", "stdev_learning_rate": 0.0}
    assert np.array_equal(run(1.0, 20, **settings)[0], run(scale, 20, **settings)[0])


@pytest.mark.parametrize("scale", [1000.0, 0.001])
def test_raw_the_step_is_the_same_but_for_rounding(scale):
    # One step: from the second generation on the stdev, whose update the paper does not normalize, differs.
    np.testing.assert_allclose(
        run(1.0, 1, fitness_shaping="raw")[0], run(scale, 1, fitness_shaping="raw")[0], rtol=1e-6
    )


@pytest.mark.parametrize("scale", [1000.0, 0.001])
@pytest.mark.parametrize("shaping", ["raw", "reward-normalized"])
def test_with_a_fixed_stdev_a_whole_run_is_the_same_but_for_rounding(scale, shaping):
    settings = {"fitness_shaping": shaping, "stdev_learning_rate": 0.0}
    np.testing.assert_allclose(run(1.0, 10, **settings)[0], run(scale, 10, **settings)[0], atol=1e-4)


@pytest.mark.parametrize("shaping", ["centered-rank", "raw", "reward-normalized"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_no_step_is_longer_than_max_speed(shaping, scale):
    centers, search = run(scale, 30, fitness_shaping=shaping)
    steps = np.diff(np.vstack([np.zeros(12), centers]), axis=0)
    # The step itself keeps the cap to the bit; the center then rounds to float32.
    assert search.speed <= 0.3
    assert max(norm(step) for step in steps) <= 0.3 + 12 * np.finfo(np.float32).eps


def test_adam_on_raw_fitnesses_is_what_clipup_is_compared_with():
    # Its steps too hardly know the scale, but for where epsilon matters.
    settings = {"fitness_shaping": "raw", "stdev_learning_rate": 0.0, "max_speed": None, "stdev": 1.0}
    plain = run(1.0, 1, optimizer=Adam(0.1), **settings)[0]
    tiny = run(1e-9, 1, optimizer=Adam(0.1), **settings)[0]
    assert norm(tiny[0]) < 0.9 * norm(plain[0])
