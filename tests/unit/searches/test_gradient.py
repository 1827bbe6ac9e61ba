import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clipup.errors import InvalidArgument
from clipup.searches import directions
from clipup.searches.gradient import BLOCK, GradientWork, Sums, estimate
from clipup.searches.shaping import Weights, shape


def gradients(work, stdev, kept=None):
    return estimate(work, stdev, (work.block(number, kept) for number in range(work.block_count)))


def paper(fitnesses, stdev, noise):
    """Algorithm 1, lines 3 and 4, sum by sum, in the paper's own terms."""
    pairs = len(fitnesses) // 2
    baseline = sum(fitnesses) / len(fitnesses)
    center, spread = np.zeros(len(stdev)), np.zeros(len(stdev))
    for i in range(pairs):
        delta = stdev.astype(np.float64) * noise[i].astype(np.float64)  # d+ - x
        above, below = fitnesses[2 * i], fitnesses[2 * i + 1]
        center += (above - below) / 2 * delta
        spread += ((above + below) / 2 - baseline) * ((delta**2 - stdev.astype(np.float64) ** 2) / stdev)
    return center / pairs, spread / pairs


def paper_appendix(fitnesses, stdev, noise, top):
    pairs = len(fitnesses) // 2
    baseline = sum(fitnesses) / len(fitnesses)
    center, spread = np.zeros(len(stdev)), np.zeros(len(stdev))
    for i in range(pairs):
        delta = stdev.astype(np.float64) * noise[i].astype(np.float64)
        above, below = fitnesses[2 * i], fitnesses[2 * i + 1]
        mean = (above + below) / 2
        center += (above - below) / 2 / (top - mean) * delta
        spread += (mean - baseline) / (top - baseline) * ((delta**2 - stdev.astype(np.float64) ** 2) / stdev)
    return center / pairs, spread / pairs


def test_one_direction_by_hand():
    kept = [np.array([2.0, -1.0], np.float32)]
    stdev = np.array([0.5, 3.0], np.float32)
    result = gradients(GradientWork(Weights(np.array([4.0]), np.array([10.0])), 0, 0, 2), stdev, kept)
    # center: 4 * (0.5 * 2, 3 * -1); stdev: 10 * (0.5 * (4 - 1), 3 * (1 - 1))
    assert result.center.tolist() == [4.0, -12.0]
    assert result.stdev.tolist() == [15.0, 0.0]


def test_two_directions_by_hand():
    kept = [np.array([1.0], np.float32), np.array([-3.0], np.float32)]
    weights = Weights(np.array([1.0, 2.0]), np.array([5.0, -1.0]))
    result = gradients(GradientWork(weights, 0, 0, 1), np.array([2.0], np.float32), kept)
    # center: 2 / 2 * (1 * 1 + 2 * -3) = -5; stdev: 2 / 2 * (5 * (1 - 1) - 1 * (9 - 1)) = -8
    assert result.center.tolist() == [-5.0]
    assert result.stdev.tolist() == [-8.0]
    assert result.agreement == -1.0  # the two halves point in opposite directions


@given(seed=st.integers(0, 2**64 - 1), pairs=st.integers(1, 150), dimension=st.integers(1, 9))
@settings(max_examples=30)
def test_the_sums_equal_the_formulas_of_the_paper_and_of_its_appendix(seed, pairs, dimension):
    generator = np.random.default_rng(seed)
    fitnesses, stdev = generator.normal(size=2 * pairs), generator.uniform(0.1, 3, dimension).astype(np.float32)
    noise = directions(seed, 3, 0, pairs, dimension)
    result = gradients(GradientWork(shape(fitnesses, "raw", 0.0), seed, 3, dimension), stdev)
    center, spread = paper(fitnesses.tolist(), stdev, noise)
    np.testing.assert_allclose(result.center, center, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(result.stdev, spread, rtol=1e-9, atol=1e-12)
    top = fitnesses.max() + 0.5
    result = gradients(GradientWork(shape(fitnesses, "reward-normalized", top), seed, 3, dimension), stdev)
    center, spread = paper_appendix(fitnesses.tolist(), stdev, noise, top)
    np.testing.assert_allclose(result.center, center, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(result.stdev, spread, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("pairs", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
def test_made_again_or_kept_and_summed_by_any_number_of_workers_the_bits_are_the_same(pairs):
    stdev = np.linspace(0.1, 2, 6, dtype=np.float32)
    fitnesses = np.random.default_rng(pairs).normal(size=2 * pairs) * 1e3
    work = GradientWork(shape(fitnesses, "raw", 0.0), 7, 2, 6)
    one = gradients(work, stdev)
    kept = gradients(work, stdev, list(directions(7, 2, 0, pairs, 6)))
    # three workers that take turns, the last first; the sums come back in the order of the blocks
    shared: dict[int, Sums] = {}
    for worker in (2, 1, 0):
        shared |= {number: work.block(number) for number in range(worker, work.block_count, 3)}
    split = estimate(work, stdev, [shared[number] for number in range(work.block_count)])
    for other in (kept, split):
        assert np.array_equal(one.center, other.center)
        assert np.array_equal(one.stdev, other.stdev)
        assert one.agreement == other.agreement


def test_blocks_cover_every_direction_once():
    for pairs in (1, BLOCK, BLOCK + 1, 5 * BLOCK):
        work = GradientWork(Weights(np.ones(pairs), np.ones(pairs)), 1, 0, 3)
        total = sum((work.block(n).even + work.block(n).odd for n in range(work.block_count)), np.zeros(3))
        np.testing.assert_allclose(total, directions(1, 0, 0, pairs, 3).astype(np.float64).sum(axis=0), atol=1e-9)


def test_its_size_is_that_of_all_directions():
    assert GradientWork(Weights(np.ones(70), np.ones(70)), 1, 0, 3).size == 210


def test_lost_blocks_are_noticed():
    work = GradientWork(Weights(np.ones(2 * BLOCK), np.ones(2 * BLOCK)), 1, 0, 3)
    with pytest.raises(InvalidArgument, match="the sums of 2 blocks are needed, got 1"):
        estimate(work, np.ones(3, np.float32), [work.block(0)])


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e150])
def test_the_agreement_of_the_halves_knows_no_scale(scale):
    fitnesses = np.random.default_rng(0).normal(size=80)
    one = gradients(GradientWork(shape(fitnesses, "raw", 0.0), 1, 0, 4), np.ones(4, np.float32))
    other = gradients(GradientWork(shape(fitnesses * scale, "raw", 0.0), 1, 0, 4), np.ones(4, np.float32))
    assert other.agreement == pytest.approx(one.agreement, rel=1e-9)
    assert -1 <= one.agreement <= 1


def test_no_gradient_agrees_with_nothing():
    work = GradientWork(Weights(np.zeros(4), np.zeros(4)), 1, 0, 3)
    assert gradients(work, np.ones(3, np.float32)).agreement == 0.0
