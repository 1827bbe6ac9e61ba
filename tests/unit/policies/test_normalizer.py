"""Observation statistics equal those of all observations at once, however they were split."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clipup.errors import InvalidArgument, StateMismatch
from clipup.policies import Moments, Normalizer, Statistics


def merged(parts: list[np.ndarray], size: int) -> Normalizer:
    normalizer = Normalizer(size)
    for part in parts:
        normalizer.merge(Moments.of(part))
    return normalizer


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 5),
    cuts=st.lists(st.integers(0, 300), max_size=12),
    center=st.floats(-1e3, 1e3),
    spread=st.floats(1e-2, 1e3),
)
def test_merged_moments_equal_those_of_the_concatenation(
    seed: int, size: int, cuts: list[int], center: float, spread: float
) -> None:
    values = np.random.default_rng(seed).normal(center, spread, (300, size))
    parts = np.split(values, sorted(cuts))
    normalizer = merged(parts, size)
    assert normalizer.count == 300
    # A value far from zero has few digits left for its distance from the mean; numpy's own sum differs by processor.
    lost = 1e-14 * abs(center) / spread
    np.testing.assert_allclose(normalizer.variance, values.var(axis=0), rtol=1e-10 + lost)
    np.testing.assert_allclose(normalizer.mean, values.mean(axis=0), rtol=1e-10, atol=1e-12 * spread)


def test_grouping_of_candidates_into_calls_does_not_change_a_bit() -> None:
    generator = np.random.default_rng(0)
    rows = [Moments.of(generator.normal(3.0, 2.0, (int(length), 4))) for length in generator.integers(0, 50, 20)]
    one, several = Normalizer(4), Normalizer(4)
    one.merge(Moments.concatenate(rows))
    for start in range(0, 20, 3):
        several.merge(Moments.concatenate(rows[start : start + 3]))
    assert one.mean.tobytes() == several.mean.tobytes()
    assert one.variance.tobytes() == several.variance.tobytes()


def test_a_constant_feature_keeps_its_mean_after_a_hundred_million_observations() -> None:
    normalizer = Normalizer(1)
    many = Moments(np.full(1000, 100_000), np.full((1000, 1), 8.907), np.zeros((1000, 1)))
    normalizer.merge(many)
    assert normalizer.count == 10**8
    assert normalizer.mean[0] == pytest.approx(8.907, rel=1e-14)
    assert normalizer.variance[0] < 1e-20


def test_nothing_seen_is_the_identity() -> None:
    normalizer = Normalizer(2)
    assert normalizer.statistics() is None
    normalizer.merge(Moments.zeros(5, 2))
    assert normalizer.statistics() is None


def test_the_variance_has_a_floor() -> None:
    normalizer = merged([np.array([[1.0, 0.0], [1.0, 4.0]])], 2)
    statistics = normalizer.statistics()
    assert statistics is not None
    assert statistics.stdev.tolist() == [0.1, 2.0]


def test_normalizing_is_the_same_for_a_row_alone() -> None:
    generator = np.random.default_rng(0)
    statistics = Statistics(generator.normal(size=7), generator.uniform(0.1, 2.0, 7))
    rows = generator.normal(size=(9, 7))
    together = statistics.normalize(rows)
    assert together.dtype == np.float32
    np.testing.assert_allclose(together, (rows - statistics.mean) / statistics.stdev, rtol=1e-6)
    assert statistics.normalize(rows[4:5]).tobytes() == together[4:5].tobytes()


def test_statistics_must_be_usable() -> None:
    for mean, stdev in [([0.0], [0.0]), ([np.nan], [1.0]), ([0.0, 1.0], [1.0]), ([0.0], [np.inf])]:
        with pytest.raises(InvalidArgument):
            Statistics(np.array(mean), np.array(stdev))


def test_state_goes_out_and_comes_back() -> None:
    normalizer = merged([np.random.default_rng(0).normal(size=(30, 3))], 3)
    other = Normalizer(3)
    other.load_state_dict(normalizer.state_dict())
    assert other.count == 30
    assert other.mean.tobytes() == normalizer.mean.tobytes()
    assert other.variance.tobytes() == normalizer.variance.tobytes()


def test_a_state_that_does_not_fit_is_refused_and_changes_nothing() -> None:
    normalizer = merged([np.ones((2, 3))], 3)
    good = normalizer.state_dict()
    for wrong in [{}, {**good, "mean": np.zeros(2)}, {**good, "m2": -np.ones(3)}, {**good, "count": np.array(-1)}]:
        with pytest.raises(StateMismatch):
            normalizer.load_state_dict(wrong)
    assert normalizer.count == 2


def test_moments_of_another_size_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="size 3"):
        Normalizer(3).merge(Moments.zeros(2, 4))


@pytest.mark.parametrize("huge", [1e200, -1e160, 1e300])
def test_numbers_beyond_their_squares_change_nothing(huge: float) -> None:
    normalizer, clean = Normalizer(2), Normalizer(2)
    good = Moments.of(np.array([[1.0, 2.0], [3.0, 5.0]]))
    with np.errstate(all="ignore"):
        bad = Moments.of(np.array([[1.0, 2.0], [3.0, huge]]))
    normalizer.merge(Moments.concatenate([good, bad, good]))
    clean.merge(Moments.concatenate([good, good]))
    assert normalizer.count == 4
    assert normalizer.mean.tobytes() == clean.mean.tobytes()
    assert normalizer.statistics() is not None
