import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clipup import candidates
from clipup.errors import InvalidArgument
from clipup.searches import directions, sampling
from clipup.searches.sampling import GaussianBatch, each_direction

CENTER = np.linspace(-1, 1, 7, dtype=np.float32)
STDEV = np.linspace(0.1, 2, 7, dtype=np.float32)
WHOLE = candidates(CENTER, STDEV, seed=9, generation=4, start=0, stop=30)


@given(st.integers(0, 30), st.integers(0, 30))
def test_any_part_of_the_population_has_the_bits_of_the_whole(one, other):
    start, stop = sorted((one, other))
    assert np.array_equal(candidates(CENTER, STDEV, 9, 4, start, stop), WHOLE[start:stop])


def test_candidates_are_the_center_plus_and_minus_the_scaled_direction():
    noise = directions(9, 4, 0, 15, 7)
    assert np.array_equal(WHOLE[0::2], CENTER + STDEV * noise)
    assert np.array_equal(WHOLE[1::2], CENTER - STDEV * noise)
    assert WHOLE.dtype == np.float32


def test_a_direction_is_the_philox_stream_of_its_key_and_counter():
    # Written out, so that a change of the stream cannot pass unseen: it would break every saved run.
    bits = np.random.Philox(key=np.array([9, 0x636C697075700001], np.uint64), counter=np.array([0, 6, 4, 0], np.uint64))
    expected = np.random.Generator(bits).standard_normal(7, dtype=np.float32)
    assert np.array_equal(directions(9, 4, 6, 7, 7)[0], expected)


@pytest.mark.parametrize("other", [(8, 4, 6), (9, 5, 6), (9, 4, 5), (9, 6, 4), (4, 9, 6)])
def test_seed_generation_and_index_each_make_another_direction(other):
    seed, generation, index = other
    one = directions(9, 4, 6, 7, 50)[0]
    assert np.abs(one - directions(seed, generation, index, index + 1, 50)[0]).min() > 0


def test_a_longer_direction_begins_with_the_shorter_one_of_any_parity():
    long = directions(1, 0, 0, 3, 101)
    for dimension in (1, 2, 3, 4, 5, 50, 100):
        assert np.array_equal(directions(1, 0, 0, 3, dimension), long[:, :dimension])


def test_directions_are_standard_normal_and_do_not_overlap():
    noise = directions(3, 0, 0, 400, 500).astype(np.float64)
    # The standard errors of these over 200,000 draws are 0.0022, 0.0032 and 0.011; the bounds are above 5 of them.
    assert abs(noise.mean()) < 0.012
    assert abs(np.square(noise).mean() - 1) < 0.017
    assert abs(np.power(noise, 4).mean() - 3) < 0.12
    assert np.unique(noise).size > 0.98 * noise.size  # float32 has few enough values for some to meet by chance
    neighbours = (noise[:-1] * noise[1:]).sum(axis=1) / 500
    assert np.abs(neighbours).max() < 6 / np.sqrt(500)


def test_the_buffer_may_have_any_number_of_rows():
    expected = directions(1, 2, 3, 13, 5)
    for rows in (1, 2, 7, 10, 64):
        buffer = np.empty((rows, 5), np.float32)
        seen = [(index, row.copy()) for index, row in each_direction(1, 2, 3, 13, buffer)]
        assert [index for index, _ in seen] == list(range(3, 13))
        assert np.array_equal([row for _, row in seen], expected)


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    monkeypatch.setattr(sampling, "_NORMALS_PER_THREAD", 1)
    monkeypatch.setattr(sampling, "available_threads", lambda: 5)
    assert np.array_equal(candidates(CENTER, STDEV, 9, 4, 0, 30), WHOLE)
    assert np.array_equal(candidates(CENTER, STDEV, 9, 4, 3, 8), WHOLE[3:8])
    noise = np.empty((15, 7), np.float32)
    assert np.array_equal(GaussianBatch(9, 4, 0, 30, CENTER, STDEV).candidates_keeping(noise), WHOLE)
    assert np.array_equal(noise, directions(9, 4, 0, 15, 7))


def test_global_randomness_is_neither_used_nor_moved():
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    directions(1, 0, 0, 4, 5)
    sampling.draw_seed()
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_the_arguments_are_not_changed_and_not_kept():
    center, stdev = CENTER.copy(), STDEV.copy()
    center.flags.writeable = stdev.flags.writeable = False
    rows = candidates(center, stdev, 9, 4, 0, 4)
    assert not np.shares_memory(rows, center)
    assert rows.flags.writeable


def test_lists_and_one_stdev_for_all_coordinates_will_do():
    assert np.array_equal(candidates([1, 2], 0.5, 1, 0, 0, 4), candidates([1.0, 2.0], [0.5, 0.5], 1, 0, 0, 4))


@pytest.mark.parametrize(
    ("generation", "start", "stop"), [(-1, 0, 2), (0, -2, 2), (0, 4, 2), (0, 0, 2.5), (0.5, 0, 2), (2**63, 0, 2)]
)
def test_a_range_that_makes_no_sense_is_refused(generation, start, stop):
    with pytest.raises(InvalidArgument, match=r"0 <= generation and 0 <= start <= stop are needed, got generation="):
        candidates(CENTER, STDEV, 1, generation, start, stop)


def test_a_center_and_a_stdev_of_different_sizes_are_refused():
    with pytest.raises(InvalidArgument, match=r"got \(7,\) and \(3,\)"):
        candidates(CENTER, STDEV[:3], 1, 0, 0, 2)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "1", None, True])
def test_a_seed_is_one_word_of_64_bits(seed):
    with pytest.raises(InvalidArgument, match=r"seed must be an integer from 0 to 2\*\*64 - 1, got"):
        candidates(CENTER, STDEV, seed, 0, 0, 2)


def test_the_largest_seed_and_numpy_integers_are_seeds():
    assert np.array_equal(
        candidates(CENTER, STDEV, np.uint64(2**64 - 1), np.int64(1), np.int32(0), 2),
        candidates(CENTER, STDEV, 2**64 - 1, 1, 0, 2),
    )


def test_a_batch_makes_its_own_candidates_and_no_others():
    batch = GaussianBatch(seed=9, generation=4, start=10, stop=20, center=CENTER, stdev=STDEV)
    assert len(batch) == 10
    assert batch.dimension == 7
    assert np.array_equal(batch.candidates(), WHOLE[10:20])
    assert np.array_equal(batch.candidates(13, 15), WHOLE[13:15])
    assert batch.candidates(20).shape == (0, 7)
    for start, stop in ((9, 12), (15, 21), (16, 14)):
        with pytest.raises(InvalidArgument, match=rf"10..20 is needed, got {start}..{stop}"):
            batch.candidates(start, stop)


def test_a_batch_goes_on_where_it_ends():
    batch = GaussianBatch(9, 4, 10, 20, CENTER, STDEV)
    assert np.array_equal(batch.until(30).candidates(), WHOLE[20:30])


def test_batches_of_one_generation_have_the_same_seed_center_and_stdev():
    batch = GaussianBatch(9, 4, 0, 10, CENTER, STDEV)
    assert batch.same_generation(GaussianBatch(9, 4, 10, 30, CENTER.copy(), STDEV.copy()))
    for other in (
        GaussianBatch(8, 4, 0, 10, CENTER, STDEV),
        GaussianBatch(9, 5, 0, 10, CENTER, STDEV),
        GaussianBatch(9, 4, 0, 10, STDEV, STDEV),
        GaussianBatch(9, 4, 0, 10, CENTER, CENTER),
        GaussianBatch(9, 4, 0, 10, CENTER[:3], STDEV[:3]),
        "a batch",
    ):
        assert not batch.same_generation(other)


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int16, np.uint64, np.int64])
def test_integers_of_numpy_give_the_same_candidates(kind):
    center, stdev = np.zeros(3, np.float32), np.ones(3, np.float32)
    plain = candidates(center, stdev, seed=1, generation=2, start=4, stop=9)
    same = candidates(center, stdev, seed=1, generation=kind(2), start=kind(4), stop=kind(9))
    assert np.array_equal(plain, same)
