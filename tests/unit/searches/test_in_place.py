"""A search in the arrays of its user: candidates come and go without a trace, and nothing of their size is kept."""

import tracemalloc

import numpy as np
import pytest

import clipup
from clipup.errors import InvalidArgument, StateMismatch, WrongOrder
from clipup.searches import in_place


def make(seed=1, scale=1.0, **settings):
    random = np.random.default_rng(seed)
    arrays = [scale * random.standard_normal(shape).astype(np.float32) for shape in ((30, 7), (11,), (), (0,))]
    arrays = [np.asarray(array, np.float32) for array in arrays]
    return arrays, clipup.InPlaceES(arrays, **({"stdev": 0.02, "max_speed": 0.3, "seed": 3} | settings))


def generation(search, arrays):
    fitnesses = []
    for candidate in search.ask():
        with search.applied(candidate):
            fitnesses.append(-sum(np.square(array - 1).sum(dtype=np.float64) for array in arrays))
    search.tell(fitnesses)


def values(arrays):
    return np.concatenate([array.ravel() for array in arrays])


@pytest.mark.parametrize("scale", [1e-3, 1.0, 40.0])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_candidate_is_taken_back_to_the_same_bits(scale, momentum):
    arrays, search = make(scale=scale, momentum=momentum)
    for _ in range(5):
        before = values(arrays)
        for candidate in search.ask():
            with search.applied(candidate):
                assert np.abs(values(arrays) - before).mean() > 0.01
            assert values(arrays).tobytes() == before.tobytes()
        with pytest.raises(ZeroDivisionError), search.applied(search.ask()[0]):
            1 / 0  # noqa: B018
        assert values(arrays).tobytes() == before.tobytes()
        generation(search, arrays)


def test_candidates_are_those_of_the_noise_by_index_in_mirrored_pairs():
    arrays, search = make()
    center = values(arrays).astype(np.float64)
    found = []
    for candidate in search.ask():
        with search.applied(candidate):
            found.append(values(arrays))
    expected = clipup.candidates(center.astype(np.float32), np.full(center.size, 0.02, np.float32), 3, 0, 0, 16)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_parts_change_nothing(monkeypatch):
    ends = []
    for chunk in (2**16, 7):
        monkeypatch.setattr(in_place, "CHUNK", chunk)
        arrays, search = make(momentum=0.5)
        for _ in range(3):
            generation(search, arrays)
        ends.append(values(arrays))
    np.testing.assert_allclose(*ends, atol=2e-6)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_it_climbs_and_no_step_is_longer_than_max_speed(momentum):
    arrays, search = make(momentum=momentum, population_size=40, stdev=0.1)
    first = np.square(values(arrays) - 1).sum()
    for _ in range(80):
        before = values(arrays)
        generation(search, arrays)
        assert np.linalg.norm(values(arrays) - before) <= 0.3 * (1 + 1e-3)
    assert np.square(values(arrays) - 1).sum() < 0.8 * first


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_saved_search_goes_on_to_the_same_bits(momentum):
    arrays, search = make(momentum=momentum)
    for _ in range(3):
        generation(search, arrays)
    state, copies = search.state_dict(), [array.copy() for array in arrays]
    restored = clipup.InPlaceES(copies, stdev=0.02, max_speed=0.3, momentum=momentum, seed=9)
    restored.load_state_dict(state)
    for _ in range(3):
        generation(search, arrays)
        generation(restored, copies)
    assert values(arrays).tobytes() == values(copies).tobytes()
    with pytest.raises(StateMismatch):
        restored.load_state_dict(state | {"grid": np.ones(2)})
    with pytest.raises(StateMismatch):
        restored.load_state_dict({"kind": "pgpe"})


def test_memory_holds_one_copy():
    weights = [np.zeros(2_000_000, np.float32)]
    search = clipup.InPlaceES(weights, stdev=0.01, max_speed=1.0, population_size=4, seed=1)
    tracemalloc.start()
    try:
        for candidate in search.ask():
            with search.applied(candidate):
                pass
        search.tell([1.0, 2.0, 3.0, 5.0])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert weights[0].any()
    assert peak < 0.5 * weights[0].nbytes


def test_calls_in_the_wrong_order_are_refused():
    arrays, search = make()
    with pytest.raises(WrongOrder, match="call ask"):
        search.tell(np.zeros(16))
    old = search.ask()
    with search.applied(old[0]):
        with pytest.raises(WrongOrder, match="hold candidate 0 already"), search.applied(old[1]):
            pass
        with pytest.raises(WrongOrder, match="leave its block"):
            search.tell(np.zeros(16))
    generation(search, arrays)
    with pytest.raises(WrongOrder, match="another generation"), search.applied(old[0]):
        pass


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([], "at least one parameter"),
        ([np.zeros(3)], "float32"),
        ([[1.0, 2.0]], "float32"),
        ([np.zeros((4, 4), np.float32)[:, ::2]], "in one piece"),
        ([np.array([np.nan], np.float32)], "finite"),
        ([np.array([1e6], np.float32)], "stdev=0.01 is lost beside parameters"),
    ],
)
def test_arrays_that_cannot_be_searched_are_refused(arrays, message):
    with pytest.raises(InvalidArgument, match=message):
        clipup.InPlaceES(arrays, stdev=0.01, max_speed=0.1)
