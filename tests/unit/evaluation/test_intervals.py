import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clipup.errors import InvalidArgument
from clipup.evaluation.intervals import (
    bootstrap_interval,
    difference,
    interquartile_mean,
    mean,
    percent_reduction,
    summarize_group,
)

scores = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


@given(scores)
def test_the_interquartile_mean_lies_between_the_quartiles(values: list[float]) -> None:
    found = float(interquartile_mean(values))
    low, high = np.quantile(values, [0.25, 0.75], method="inverted_cdf")
    assert low - 1e-6 <= found <= high + 1e-6


@pytest.mark.parametrize("count", [4, 8, 12])
def test_the_interquartile_mean_is_the_mean_of_the_middle_half(count: int) -> None:
    values = np.random.default_rng(1).normal(size=count)
    assert float(interquartile_mean(values)) == pytest.approx(np.sort(values)[count // 4 : -count // 4].mean())


def test_edges_count_by_the_part_of_them_that_is_inside() -> None:
    # Of ten scores the middle half goes from 2.5 to 7.5: half of the third and half of the eighth are inside.
    values = np.arange(10.0)
    assert float(interquartile_mean(values)) == pytest.approx((0.5 * 2 + 3 + 4 + 5 + 6 + 0.5 * 7) / 5)


def test_an_outlier_does_not_move_the_interquartile_mean() -> None:
    assert float(interquartile_mean([1.0, 2.0, 3.0, math.inf])) == 2.5


def test_a_bootstrap_interval_covers_the_mean_as_often_as_it_says() -> None:
    generator = np.random.default_rng(7)
    held = sum(
        bootstrap_interval([generator.normal(size=30)], mean, confidence=0.9, resamples=400).holds(0.0)
        for _ in range(300)
    )
    assert 0.82 <= held / 300 <= 0.96


def test_groups_are_resampled_each_from_its_own_scores() -> None:
    interval = bootstrap_interval([[1.0, 1.0], [5.0, 5.0, 5.0]], lambda a, b: mean(b) - mean(a))
    assert (interval.low, interval.high) == (4.0, 4.0)


def test_equal_scores_give_equal_intervals() -> None:
    assert summarize_group([1.0, 2.0, 5.0]) == summarize_group([1.0, 2.0, 5.0])


def test_a_single_score_has_no_standard_deviation() -> None:
    summary = summarize_group([3.0])
    assert math.isnan(summary.stdev) and summary.mean == summary.interval.low == summary.interval.high == 3.0


def test_a_fifth_fewer_interactions_is_a_reduction_of_twenty_percent() -> None:
    estimate, interval = percent_reduction([100.0, 100.0], [80.0, 80.0])
    assert estimate == pytest.approx(20.0) and interval.low == pytest.approx(20.0) and interval.confidence == 0.9
    assert difference([1.0, 1.0], [3.0, 3.0])[0] == 2.0


@pytest.mark.parametrize("bad", [[], [[1.0]]])
def test_no_scores_are_refused(bad: list[float]) -> None:
    with pytest.raises(InvalidArgument):
        summarize_group(bad)
    with pytest.raises(InvalidArgument):
        bootstrap_interval([bad], mean)
