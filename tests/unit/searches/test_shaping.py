import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clipup import centered_rank
from clipup.errors import InvalidArgument, InvalidFitness
from clipup.searches.shaping import (
    SHAPINGS,
    check_finite,
    check_shaping,
    nes_utilities,
    normalized,
    reward_normalized_weights,
    shape,
    tied_share,
    utility_weights,
)

fitness_lists = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40)


def test_ranks_run_linearly_from_minus_a_half_to_a_half():
    assert centered_rank([30.0, -1.0, 5.0, 7.0, 6.0]).tolist() == [0.5, -0.5, -0.25, 0.25, 0.0]


def test_ties_share_their_mean_rank():
    # sorted: 1 1 2 2 2 -> ranks 0 1 2 3 4; the ones share 0.5, the twos share 3
    assert centered_rank([2, 1, 2, 1, 2]).tolist() == [0.25, -0.375, 0.25, -0.375, 0.25]


def test_equal_fitnesses_all_rank_exactly_zero():
    for size in range(1, 200):
        assert not centered_rank(np.full(size, 3.7)).any()


def test_whatever_is_not_finite_ties_for_the_last_place():
    ranks = centered_rank([np.inf, 1.0, np.nan, -1e308, -np.inf])
    assert ranks.tolist() == [-0.25, 0.5, -0.25, 0.25, -0.25]


@given(fitness_lists)
def test_ranks_follow_the_order_and_sum_to_nothing(values):
    ranks = centered_rank(values)
    assert ranks.sum() == pytest.approx(0, abs=1e-9)
    for i, one in enumerate(values):
        for j, other in enumerate(values):
            assert (one < other) == (ranks[i] < ranks[j])


@given(fitness_lists, st.randoms(use_true_random=False))
def test_a_rank_belongs_to_the_value_not_to_its_place(values, random):
    order = list(range(len(values)))
    random.shuffle(order)
    assert centered_rank([values[i] for i in order]).tolist() == centered_rank(values)[order].tolist()


def test_the_weights_of_algorithm_1_by_hand():
    weights = utility_weights(np.array([4.0, 1.0, -2.0, 5.0]))  # mean 2
    assert weights.center.tolist() == [1.5, -3.5]
    assert weights.stdev.tolist() == [0.5, -0.5]


def test_the_weights_of_the_appendix_by_hand():
    # pairs (4, 1) and (-2, 5): means 2.5 and 1.5, baseline 2, maximum 10
    weights = reward_normalized_weights(np.array([4.0, 1.0, -2.0, 5.0]), 10.0)
    assert weights.center.tolist() == pytest.approx([1.5 / 7.5, -3.5 / 8.5])
    assert weights.stdev.tolist() == pytest.approx([0.5 / 8, -0.5 / 8])


def test_a_pair_that_lies_on_the_maximum_weighs_nothing_instead_of_dividing_by_zero():
    weights = reward_normalized_weights(np.array([5.0, 5.0, 3.0, 1.0]), 5.0)
    assert weights.center.tolist() == pytest.approx([0.0, 1.0 / 3.0])
    for value, count in ((5.0, 4), (0.1, 6), (-200.3, 20), (1 / 3, 50)):
        even = reward_normalized_weights(np.full(count, value), value)
        assert not even.center.any() and not even.stdev.any()
    flat = reward_normalized_weights(np.full(4, 5.0), 5.0)
    assert not flat.center.any()
    assert not flat.stdev.any()


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20).map(lambda x: x + x), st.sampled_from([1e-3, 1e3]))
def test_the_reward_normalization_does_not_see_the_scale(values, scale):
    fitnesses = np.array(values)
    top = fitnesses.max() + 1.0
    one, other = (reward_normalized_weights(fitnesses * s, top * s) for s in (1.0, scale))
    np.testing.assert_allclose(other.center, one.center, atol=1e-9)
    np.testing.assert_allclose(other.stdev, one.stdev, atol=1e-9)


def test_an_unknown_shaping_is_refused_with_the_names_that_exist():
    with pytest.raises(InvalidArgument, match=r"one of centered-rank, raw, .*, got 'rank'"):
        check_shaping("rank", None)


def test_every_shaping_has_its_weights():
    fitnesses = np.array([4.0, 1.0, -2.0, 5.0])
    expected = {
        "centered-rank": utility_weights(centered_rank(fitnesses)),
        "raw": utility_weights(fitnesses),
        "reward-normalized": reward_normalized_weights(fitnesses, 10.0),
        "nes": utility_weights(4 * nes_utilities(fitnesses)),
        "linear": utility_weights(centered_rank(fitnesses) + 0.5),
        "normalized": utility_weights(normalized(fitnesses)),
    }
    assert tuple(expected) == SHAPINGS
    for name, weights in expected.items():
        assert shape(fitnesses, name, 10.0).center.tolist() == weights.center.tolist()
        assert shape(fitnesses, name, 10.0).stdev.tolist() == weights.stdev.tolist()


def test_non_finite_fitnesses_are_refused_by_number_and_place():
    values = np.array([0.0, np.nan, 1.0, np.inf])
    with pytest.raises(InvalidFitness, match=r"got 2 non-finite \(candidates 1, 3\); .*centered-rank"):
        check_finite(values, "raw")
    with pytest.raises(InvalidFitness, match=r"got 20 non-finite \(candidates 0, 1, 2, 3, 4, 5, 6, 7, …\)"):
        check_finite(np.full(20, math.nan), "reward-normalized")
    check_finite(values, "centered-rank")


def test_the_tied_share_counts_those_that_share_a_rank():
    assert tied_share(np.array([1.0, 2.0, 3.0, 4.0])) == 0.0
    assert tied_share(np.array([1.0, 1.0, 3.0, 4.0])) == 0.5
    assert tied_share(np.array([np.nan, np.inf, 3.0, 4.0])) == 0.5
    assert tied_share(np.full(6, 2.0)) == 1.0
