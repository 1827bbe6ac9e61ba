"""What every search keeps, whatever its shaping, its optimizer and the way its population is sized."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clipup import PGPE, Adam, ClipUp, HeavyBall
from clipup.errors import ClipUpError, InvalidFitness, StateMismatch, WrongOrder

SEARCHES = {
    "ranked": {"max_speed": 0.3},
    "raw": {"max_speed": 0.3, "fitness_shaping": "raw"},
    "reward-normalized": {"max_speed": 0.3, "fitness_shaping": "reward-normalized"},
    "adam": {"optimizer": lambda: Adam(0.1), "stdev": 0.5},
    "noclip": {"optimizer": lambda: ClipUp(0.1, None), "stdev": 0.5},
    "heavy-ball": {"optimizer": lambda: HeavyBall(0.1), "stdev": 0.5, "stdev_max_change": None},
    "adaptive": {"max_speed": 0.3, "interactions": 100, "population_max": 20},
    "adaptive-raw": {"max_speed": 0.3, "interactions": 100, "population_max": 20, "fitness_shaping": "raw"},
}

each = pytest.mark.parametrize("name", SEARCHES)


def make(name, seed=1):
    arguments = {key: value() if callable(value) else value for key, value in SEARCHES[name].items()}
    return PGPE(center=[1.0, -2.0, 0.5, 3.0], population_size=8, seed=seed, **arguments)


def interactions(name):
    return 40 if name.startswith("adaptive") else None


def advance(search, name, rounds):
    for _ in range(rounds):
        search.tell(-np.square(search.ask()).sum(axis=1), interactions(name))


def same(one, other):
    assert one.keys() == other.keys()
    return all(np.array_equal(one[key], other[key]) for key in one)


@each
def test_candidates_are_float32_rows_that_mirror_each_other_about_the_center(name):
    search = make(name)
    for _ in range(6):
        population, center, stdev = search.ask(), search.center, search.stdev
        assert population.dtype == center.dtype == stdev.dtype == np.float32
        assert population.shape == (len(search.batch()), 4)
        np.testing.assert_allclose(population[0::2] - center, center - population[1::2], atol=1e-5)
        search.tell(-np.square(population).sum(axis=1), interactions(name))


@each
def test_asking_again_before_telling_gives_the_same(name):
    search = make(name)
    advance(search, name, 3)
    population, batch = search.ask(), search.batch()
    assert np.array_equal(search.ask(), population)
    assert np.array_equal(batch.candidates(), population)
    fitnesses = -np.square(population).sum(axis=1)
    twin = make(name)
    advance(twin, name, 3)
    twin.ask()
    twin.tell(fitnesses, interactions(name))
    search.tell(fitnesses, interactions(name))
    assert same(search.state_dict(), twin.state_dict())


@each
def test_the_seed_fixes_everything_and_two_seeds_differ(name):
    one, twin, other = make(name), make(name), make(name, seed=2)
    for search in (one, twin, other):
        advance(search, name, 5)
    assert same(one.state_dict(), twin.state_dict())
    assert np.array_equal(one.ask(), twin.ask())
    assert (one.ask() != other.ask()).all()


@each
@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("asked", [False, True])
def test_a_restored_search_goes_on_to_the_same_bits(name, rounds, asked):
    search = make(name)
    advance(search, name, rounds)
    if asked:
        search.ask()
    restored = make(name, seed=77)
    advance(restored, name, 4)  # whatever it did before is forgotten
    restored.load_state_dict(search.state_dict())
    assert same(restored.state_dict(), search.state_dict())
    for _ in range(7):
        population = search.ask()
        assert np.array_equal(restored.ask(), population)
        fitnesses = -np.square(population).sum(axis=1)
        assert search.tell(fitnesses, interactions(name)) == restored.tell(fitnesses, interactions(name))
        assert same(restored.state_dict(), search.state_dict())


@each
def test_the_state_is_flat_and_plain(name):
    search = make(name)
    advance(search, name, 3)
    assert all(type(value) in {np.ndarray, int, float, str} for value in search.state_dict().values())


@each
def test_nothing_that_is_given_out_or_taken_in_is_shared(name):
    search, twin = make(name), make(name)
    for each_search in (search, twin):
        advance(each_search, name, 3)
    population = search.ask()
    fitnesses = -np.square(population).sum(axis=1)
    told = fitnesses.astype(np.float64)
    state = search.state_dict()
    given_out = [population, search.center, search.stdev, search.batch().center, search.batch().stdev]
    for array in given_out + [value for value in state.values() if isinstance(value, np.ndarray)]:
        array[...] = 1e6
    twin.ask()
    search.tell(told, interactions(name))
    twin.tell(fitnesses, interactions(name))
    told[:] = 1e6
    assert same(search.state_dict(), twin.state_dict())


@each
def test_a_loaded_state_is_not_shared_with_its_source(name):
    search, twin = make(name), make(name)
    advance(search, name, 3)
    source = search.state_dict()
    twin.load_state_dict(source)
    for value in source.values():
        if isinstance(value, np.ndarray):
            value[...] = 1e6
    assert same(twin.state_dict(), search.state_dict())


@each
def test_the_callers_arrays_are_never_changed(name):
    center, spread = np.array([1.0, 2.0]), np.array([0.5, 0.25])
    arguments = {key: value() if callable(value) else value for key, value in SEARCHES[name].items()}
    search = PGPE(center=center, population_size=8, seed=1, **(arguments | {"stdev": spread}))
    fitnesses = np.array([3.0, 1.0, 2.0, 8.0, 5.0, 4.0, 7.0, 6.0])
    counts = np.full(8, 50)
    search.ask()
    search.tell(fitnesses, counts if name.startswith("adaptive") else None)
    assert center.tolist() == [1.0, 2.0]
    assert spread.tolist() == [0.5, 0.25]
    assert fitnesses.tolist() == [3.0, 1.0, 2.0, 8.0, 5.0, 4.0, 7.0, 6.0]
    assert counts.tolist() == [50] * 8


@each
def test_lists_integers_and_booleans_are_fitnesses_too(name):
    values = [1, 0, 0, 1, 1, 1, 0, 1]
    ends = []
    for fitnesses in (values, tuple(values), np.array(values, np.float32), np.array(values), np.array(values, bool)):
        search = make(name)
        search.ask()
        search.tell(fitnesses, interactions(name) and 200)
        ends.append(search.state_dict())
    assert all(same(end, ends[0]) for end in ends)


@each
def test_telling_without_asking_is_refused(name):
    search = make(name)
    for rounds in (0, 1, 2):
        advance(search, name, rounds)
        with pytest.raises(WrongOrder, match=r"call ask\(\) first, then tell\(\) once"):
            search.tell(np.zeros(8), interactions(name))


@each
@pytest.mark.parametrize(
    "fitnesses",
    [[1.0] * 7, [1.0] * 9, [], 1.0, np.zeros((8, 1)), ["a"] * 8, [None] * 8, [1j] * 8, [[1.0], [1.0, 2.0]]],
    ids=["fewer", "more", "none", "scalar", "column", "text", "none-objects", "complex", "ragged"],
)
def test_bad_fitnesses_are_refused_and_nothing_changes(name, fitnesses):
    search = make(name)
    advance(search, name, 1)
    search.ask()
    before = search.state_dict()
    with pytest.raises(InvalidFitness):
        search.tell(fitnesses, interactions(name))
    assert same(search.state_dict(), before)
    advance(search, name, 1)


@each
@pytest.mark.parametrize("key", [*make("ranked").state_dict(), "optimizer.kind", None])
def test_a_damaged_state_is_refused_and_nothing_changes(name, key):
    search, other = make(name), make(name, seed=5)
    advance(search, name, 3)
    advance(other, name, 5)
    before, saved = search.state_dict(), other.state_dict()
    damages = [{}] if key is None else []
    if key in saved:
        damages.append({k: v for k, v in saved.items() if k != key})
        damages.append(saved | {key: -7 if not isinstance(saved[key], int) else "7"})
        if isinstance(saved[key], np.ndarray):
            damages.append(saved | {key: np.full(3, np.nan)})
            damages.append(saved | {key: saved[key].astype(np.int64)})
    for damaged in damages:
        try:
            search.load_state_dict(damaged)
        except StateMismatch as error:
            assert "\n" not in str(error)
            assert same(search.state_dict(), before)
        else:
            # A number that may be negative is the only damage that can pass for a value.
            assert damaged.get(key) == -7
            search.load_state_dict(before)


@each
def test_a_state_of_another_search_is_refused(name):
    search = make(name)
    advance(search, name, 1)
    before = search.state_dict()
    bigger = PGPE(dimension=5, max_speed=0.1, population_size=8)
    with pytest.raises(StateMismatch, match="must be 4 numbers of float32, got float32 of shape"):
        search.load_state_dict(bigger.state_dict())
    stranger = Adam(0.5) if search.optimizer.kind != "adam" else HeavyBall(0.5)
    with pytest.raises(StateMismatch, match="the saved optimizer does not fit: a state of a"):
        search.load_state_dict(PGPE(dimension=4, stdev=0.1, optimizer=stranger, population_size=8).state_dict())
    assert same(search.state_dict(), before)


def test_a_generation_under_way_is_refused_by_a_search_that_could_not_have_begun_it():
    adaptive = make("adaptive")
    advance(adaptive, "adaptive", 1)
    for other in (
        make("ranked"),
        PGPE(dimension=4, max_speed=0.3, population_size=6, interactions=100, population_max=20),
        PGPE(dimension=4, max_speed=0.3, population_size=8, interactions=100, population_max=8),
    ):
        before = other.state_dict()
        with pytest.raises(StateMismatch, match=r"the saved generation \(8 fitnesses told, 0 asked\) does not fit"):
            other.load_state_dict(adaptive.state_dict())
        assert same(other.state_dict(), before)


def test_saved_fitnesses_that_the_shaping_cannot_use_are_refused():
    ranked, raw = make("adaptive"), make("adaptive-raw")
    ranked.ask()
    ranked.tell([np.nan] * 8, 10)
    with pytest.raises(StateMismatch, match="the saved fitnesses must be finite for 'raw' shaping"):
        raw.load_state_dict(ranked.state_dict())


@given(
    name=st.sampled_from(sorted(SEARCHES)),
    rounds=st.lists(
        st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=8, max_size=8), min_size=1, max_size=5
    ),
)
@settings(max_examples=60)
def test_whatever_is_told_the_search_stays_finite_or_refuses_and_stays_as_it_was(name, rounds):
    search = make(name)
    for fitnesses in rounds:
        size = len(search.ask())
        before = copy.deepcopy(search.state_dict())
        try:
            search.tell(fitnesses[:size], interactions(name))
        except ClipUpError:
            assert same(search.state_dict(), before)
        assert np.isfinite(search.center).all()
        assert (search.stdev > 0).all()
        assert np.isfinite(search.stdev).all()
        assert np.isfinite(search.ask()).all()
        if search.max_speed is not None:
            assert search.speed <= search.max_speed
