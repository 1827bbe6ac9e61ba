"""What every search keeps: all of ours in all their kinds, and a tiny search that lives in the tests."""

import copy
import importlib
import math
import pickle
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clipup import (
    ARS,
    CMAES,
    PGPE,
    SNES,
    XNES,
    Adam,
    Batch,
    ClipUp,
    CrossEntropy,
    HeavyBall,
    OpenAIES,
    SepCMAES,
)
from clipup.errors import ClipUpError, InvalidArgument, InvalidFitness, StateMismatch, WrongOrder
from clipup.searches import SEARCHES as REGISTERED
from clipup.searches import Figures, Search
from clipup.searches.maximize import optimize

sys.path.append(str(Path(__file__).parents[1] / "environments"))
HillClimber = importlib.import_module("hill_climber").HillClimber

START = [1.0, -2.0, 0.5, 3.0]
ADAPTIVE = {"interactions": 100, "population_max": 20}
SEARCHES = {
    "ranked": lambda **common: PGPE(max_speed=0.3, **common),
    "raw": lambda **common: PGPE(max_speed=0.3, fitness_shaping="raw", **common),
    "reward-normalized": lambda **common: PGPE(max_speed=0.3, fitness_shaping="reward-normalized", **common),
    "adam": lambda **common: PGPE(optimizer=Adam(0.1), stdev=0.5, **common),
    "noclip": lambda **common: PGPE(optimizer=ClipUp(0.1, None), stdev=0.5, **common),
    "heavy-ball": lambda **common: PGPE(optimizer=HeavyBall(0.1), stdev=0.5, stdev_max_change=None, **common),
    "unmirrored": lambda **common: PGPE(max_speed=0.3, symmetric=False, **common),
    "unmirrored-raw": lambda **common: PGPE(max_speed=0.3, symmetric=False, fitness_shaping="raw", **common),
    "orthogonal": lambda **common: PGPE(max_speed=0.3, orthogonal=True, **common),
    "nes": lambda **common: PGPE(max_speed=0.3, fitness_shaping="nes", stdev_min=0.1, stdev_max=9.0, **common),
    "linear": lambda **common: PGPE(max_speed=0.3, fitness_shaping="linear", **common),
    "normalized": lambda **common: PGPE(max_speed=0.3, fitness_shaping="normalized", **common),
    "openai-es": lambda **common: OpenAIES(stdev=0.1, step_size=0.1, weight_decay=0.01, **common),
    "openai-es-raw": lambda **common: OpenAIES(max_speed=0.3, fitness_shaping="raw", **common),
    "ars": lambda **common: ARS(stdev=0.1, step_size=0.1, **common),
    "ars-top": lambda **common: ARS(max_speed=0.3, top=2, **common),
    "snes": lambda **common: SNES(stdev=0.5, **common),
    "snes-unmirrored": lambda **common: SNES(stdev=0.5, symmetric=False, **common),
    "snes-clipup": lambda **common: SNES(max_speed=0.3, **common),
    "xnes": lambda **common: XNES(stdev=0.5, **common),
    "cma-es": lambda **common: CMAES(stdev=0.5, **common),
    "sep-cma-es": lambda **common: SepCMAES(stdev=0.5, **common),
    "cross-entropy": lambda **common: CrossEntropy(stdev=1.0, noise=0.2, **common),
    "hill-climber": lambda **common: HillClimber(stdev=0.5, **common),
}
for grown in (
    *(
        "ranked",
        "raw",
        "unmirrored",
        "orthogonal",
        "openai-es",
        "ars-top",
        "snes",
        "snes-unmirrored",
        "xnes",
        "cma-es",
        "sep-cma-es",
    ),
    *("cross-entropy", "hill-climber"),
):
    SEARCHES[f"adaptive-{grown}"] = partial(SEARCHES[grown], **ADAPTIVE)
BY_RANK = (
    *("ranked", "adam", "nes", "linear", "unmirrored", "orthogonal", "openai-es", "snes", "snes-unmirrored"),
    *("snes-clipup", "xnes", "cma-es", "sep-cma-es", "cross-entropy", "hill-climber"),
)
MIRRORED = (
    *(
        "ranked",
        "raw",
        "reward-normalized",
        "orthogonal",
        "nes",
        "openai-es",
        "openai-es-raw",
        "ars",
        "ars-top",
        "snes",
    ),
    *("snes-clipup",),
)
UNMIRRORED = ("unmirrored", "snes-unmirrored", "xnes", "cma-es", "sep-cma-es", "cross-entropy")

each = pytest.mark.parametrize("name", SEARCHES)
each_fixed = pytest.mark.parametrize("name", [name for name in SEARCHES if not name.startswith("adaptive")])
each_adaptive = pytest.mark.parametrize("name", [name for name in SEARCHES if name.startswith("adaptive")])


def make(name, seed=1, center=START, population_size=8):
    return SEARCHES[name](center=center, population_size=population_size, seed=seed)


def interactions(name):
    return 40 if name.startswith("adaptive") else None  # so that a generation has batches of 8, 8 and 4


def score(population):
    return -np.square(population).sum(axis=1)


def advance(search, name, rounds):
    for _ in range(rounds):
        search.tell(score(search.ask()), interactions(name))


def same(one, other):
    assert one.keys() == other.keys()
    return all(np.array_equal(one[key], other[key]) for key in one)


def arrays(state):
    return [value for value in state.values() if isinstance(value, np.ndarray)]


# -- what it is -------------------------------------------------------------------------------------------------------


@each
def test_it_is_a_search(name):
    search = make(name)
    assert isinstance(search, Search)
    assert search.kind == type(search).kind
    assert (search.dimension, search.seed, search.generation) == (4, 1, 0)
    assert search.center.tolist() == START


def test_every_registered_search_goes_through_this_suite():
    assert {make(name).kind for name in SEARCHES} >= set(REGISTERED)


@each
def test_its_settings_are_plain_values_that_never_change(name):
    search = make(name)
    before = dict(search.settings())
    assert before["population_size"] == 8
    assert all(type(value) in {int, float, str, type(None)} for value in before.values())
    advance(search, name, 4)
    assert search.settings() == before


@each
def test_it_climbs(name):
    search = make(name)
    advance(search, name, 60)
    assert score(search.center[np.newaxis])[0] > 0.8 * score(np.array([START]))[0]


@each_fixed
def test_it_runs_in_one_call(name):
    search = make(name)
    result = optimize(search, lambda x: -score(x), -1.0, 5, None, None)
    twin = make(name)
    advance(twin, name, 5)
    assert result.search is search
    assert np.array_equal(result.center, twin.center)
    assert [summary.generation for summary in result.history] == [1, 2, 3, 4, 5]
    assert result.history[-1].stdev_norm == twin.figures().stdev_norm
    assert score(result.best[np.newaxis])[0] == -result.best_fitness


# -- batches ----------------------------------------------------------------------------------------------------------


@each
def test_candidates_are_finite_float32_rows(name):
    search = make(name)
    for _ in range(6):
        population = search.ask()
        assert population.dtype == search.center.dtype == np.float32
        assert population.shape == (len(search.batch()), 4)
        assert np.isfinite(population).all()
        search.tell(score(population), interactions(name))


@each
def test_asking_again_before_telling_gives_the_same(name):
    search, twin = make(name), make(name)
    for each_search in (search, twin):
        advance(each_search, name, 3)
    population, batch = search.ask(), search.batch()
    assert np.array_equal(search.ask(), population)
    assert np.array_equal(batch.candidates(), population)
    twin.batch()  # never made here
    for each_search in (search, twin):
        each_search.tell(score(population), interactions(name))
    assert same(search.state_dict(), twin.state_dict())


@each
def test_any_part_of_a_batch_has_the_bits_of_the_whole_also_in_another_process(name):
    search = make(name)
    for _ in range(4):
        batch, population = search.batch(), search.ask()
        assert isinstance(batch, Batch)
        sent = pickle.loads(pickle.dumps(batch))
        assert sent.same_generation(batch)
        for made in (batch, sent):
            for start in range(batch.start, batch.stop + 1):
                for stop in range(start, batch.stop + 1):
                    expected = population[start - batch.start : stop - batch.start]
                    assert np.array_equal(made.candidates(start, stop), expected)
            assert np.array_equal(made.candidates(), population)
        for start, stop in ((batch.start - 1, batch.stop), (batch.start, batch.stop + 1), (batch.stop, batch.start)):
            with pytest.raises(InvalidArgument, match="a range within"):
                batch.candidates(start, stop)
        search.tell(score(population), interactions(name))


@each
def test_batches_of_a_generation_know_each_other_by_value(name):
    search, twin, other = make(name), make(name), make(name, seed=2)
    batch = search.batch()
    assert batch.same_generation(twin.batch())
    assert batch.same_generation(batch.until(12))
    assert not batch.same_generation(other.batch())
    assert not batch.same_generation(make(name, center=[1.0, -2.0, 0.5, 4.0]).batch())
    assert not batch.same_generation(None)
    advance(search, name, 3)
    assert search.generation > 0
    assert not batch.same_generation(search.batch())


@each
def test_a_batch_can_be_gone_on_with(name):
    batch = make(name).batch()
    more = batch.until(13)
    assert (len(batch), len(more), more.start, more.stop) == (8, 5, 8, 13)
    assert (more.seed, more.generation) == (batch.seed, batch.generation)
    assert np.array_equal(more.candidates(), make(name, population_size=20).batch().candidates(8, 13))


@each
def test_the_seed_fixes_everything_and_two_seeds_differ(name):
    one, twin, other = make(name), make(name), make(name, seed=2)
    for search in (one, twin, other):
        advance(search, name, 5)
    assert same(one.state_dict(), twin.state_dict())
    assert np.array_equal(one.ask(), twin.ask())
    assert (one.ask() != other.ask()).all()


@pytest.mark.parametrize("name", MIRRORED)
def test_candidates_come_in_mirrored_pairs_where_promised(name):
    search = make(name)
    advance(search, name, 2)
    population, center = search.ask().astype(np.float64), search.center
    np.testing.assert_allclose(population[0::2] - center, center - population[1::2], atol=1e-6)
    for bad in (0, 1, 7, -2, 2.0, True, "8"):
        with pytest.raises(InvalidArgument, match="population_size must be an even number of at least 2"):
            make(name, population_size=bad)


@pytest.mark.parametrize("name", UNMIRRORED)
def test_candidates_come_one_by_one_where_promised(name):
    search = make(name, population_size=7)
    for _ in range(3):
        population = search.ask() - search.center
        assert population.shape == (7, 4)
        cosines = population @ population.T / np.outer(*[np.linalg.norm(population, axis=1)] * 2)
        assert (np.abs(cosines[~np.eye(7, dtype=bool)]) < 0.9999).all()
        search.tell(score(population))
    for bad in (0, 1, -2, 2.5, True, "8"):
        with pytest.raises(InvalidArgument, match="population_size must be a whole number of at least 2"):
            make(name, population_size=bad)


@pytest.mark.parametrize("name", BY_RANK)
@pytest.mark.parametrize(
    "change",
    [lambda f: 1000 * f, lambda f: f / 7, np.cbrt, lambda f: np.arctan(f) + 5],
    ids=["times 1000", "by 7", "cube root", "arc tangent"],
)
def test_by_rank_any_increasing_change_of_the_fitness_leaves_the_same_bits(name, change):
    one, other = make(name), make(name)
    for _ in range(6):
        fitnesses = np.linspace(-3, 2, 8)[np.argsort(np.argsort(score(one.ask())))]
        other.ask()
        one.tell(fitnesses)
        other.tell(change(fitnesses))
        assert np.array_equal(one.center, other.center)
        assert np.array_equal(one.ask(), other.ask())


@pytest.mark.parametrize("name", ["ars", "ars-top", "normalized", "openai-es-raw"])
@pytest.mark.parametrize("scale", [2.0**20, 2.0**-20, 2.0**-900])
def test_the_scale_of_the_fitness_does_not_matter_where_promised(name, scale):
    one, other = make(name), make(name)
    for _ in range(6):
        fitnesses = score(one.ask().astype(np.float64))
        other.ask()
        one.tell(fitnesses)
        other.tell(scale * fitnesses)
    np.testing.assert_allclose(one.center, other.center, rtol=1e-6, atol=1e-6)


# -- growing generations ----------------------------------------------------------------------------------------------


@each_fixed
def test_nothing_follows_the_batch_of_a_fixed_population(name):
    search = make(name)
    for _ in range(3):
        assert search.following() is None
        assert search.batch().start == 0
        assert search.tell(np.arange(8.0))


@each_adaptive
def test_the_batch_that_follows_is_the_one_that_comes_if_the_generation_grows(name):
    search = make(name)
    for _ in range(2):
        expected = [(0, 8), (8, 16), (16, 20)]  # and no further: the population's bound is 20
        for span, after in pairwise([*expected, None]):
            before = search.state_dict()
            following = search.following()
            assert same(search.state_dict(), before)  # it is only looked at
            batch = search.batch()
            assert (batch.start, batch.stop) == span
            assert (following and (following.start, following.stop)) == after
            ended = search.tell(score(batch.candidates()), 1)
            assert ended == (following is None)
            if following is not None:
                assert following.same_generation(search.batch())
                assert np.array_equal(following.candidates(), search.ask())


@each_adaptive
def test_a_generation_ends_when_it_has_enough_interactions(name):
    search = make(name)
    ends = []
    for count in (100, 99, 1, 40, [5] * 8, np.full(4, 5)):
        ends.append(search.tell(score(search.ask()), count))
    assert ends == [True, False, True, False, False, True]
    assert search.figures().population == 20


@each
def test_bad_interactions_are_refused_and_nothing_changes(name):
    search = make(name)
    search.ask()
    before = search.state_dict()
    for bad in (-1, 2.5, [1] * 7, ["a"] * 8) if name.startswith("adaptive") else (1, [1] * 8):
        with pytest.raises(InvalidArgument, match="interactions"):
            search.tell(np.zeros(8), bad)
        assert same(search.state_dict(), before)
    if name.startswith("adaptive"):
        with pytest.raises(InvalidArgument, match="tell needs interactions="):
            search.tell(np.zeros(8))


# -- telling ----------------------------------------------------------------------------------------------------------


@each_fixed
def test_an_update_shared_among_workers_has_the_same_bits(name):
    one, other = make(name, population_size=200), make(name, population_size=200)

    def elsewhere(work):
        sent = pickle.loads(pickle.dumps(work))
        assert sent.size > 0
        backwards = {number: sent.block(number) for number in reversed(range(sent.block_count))}
        assert all(isinstance(block, tuple) and block[0].dtype == np.float64 for block in backwards.values())
        return (backwards[number] for number in range(sent.block_count))

    for _ in range(3):
        fitnesses = score(one.ask())
        other.batch()
        one.tell(fitnesses)
        other.tell(fitnesses, sum_blocks=elsewhere)
        assert same(one.state_dict(), other.state_dict())


@each
def test_nothing_that_is_given_out_or_taken_in_is_shared(name):
    search, twin = make(name), make(name)
    for each_search in (search, twin):
        advance(each_search, name, 3)
    population = search.ask()
    fitnesses = score(population)
    told = fitnesses.astype(np.float64)
    batch = search.batch()
    given_out = [population, search.center, batch.candidates(), *arrays(vars(batch)), *arrays(search.state_dict())]
    for array in given_out:
        array[...] = 1e6
    twin.ask()
    search.tell(told, interactions(name))
    twin.tell(fitnesses, interactions(name))
    told[:] = 1e6
    assert same(search.state_dict(), twin.state_dict())


@each
def test_the_callers_arrays_are_never_changed(name):
    center = np.array([1.0, 2.0])
    search = make(name, center=center)
    fitnesses, counts = np.array([3.0, 1.0, 2.0, 8.0, 5.0, 4.0, 7.0, 6.0]), np.full(8, 50)
    search.ask()
    search.tell(fitnesses, counts if name.startswith("adaptive") else None)
    assert center.tolist() == [1.0, 2.0]
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


@given(
    name=st.sampled_from(sorted(SEARCHES)),
    rounds=st.lists(
        st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=8, max_size=8), min_size=1, max_size=5
    ),
)
@settings(max_examples=80)
def test_whatever_is_told_the_search_stays_finite_or_refuses_and_stays_as_it_was(name, rounds):
    search = make(name)
    for fitnesses in rounds:
        size = len(search.ask())
        before = copy.deepcopy(search.state_dict())
        try:
            search.tell(fitnesses[:size], interactions(name))
        except ClipUpError:
            assert same(search.state_dict(), before)
        figures = search.figures()
        assert np.isfinite(search.center).all()
        assert np.isfinite(search.ask()).all()
        assert 0 < figures.stdev_norm < math.inf
        if figures.max_speed is not None:
            assert figures.speed <= figures.max_speed


# -- figures ----------------------------------------------------------------------------------------------------------


@each
def test_before_the_first_generation_there_is_little_to_say(name):
    figures = make(name).figures()
    assert isinstance(figures, Figures)
    assert (figures.population, figures.speed, figures.clipped) == (8, 0.0, False)
    assert (figures.nonfinite, figures.tied) == (0, 0.0)
    assert figures.stdev_norm > 0


@each
def test_the_figures_tell_of_the_last_generation(name):
    search = make(name)
    advance(search, name, 3)
    for _ in range(3):
        before, ended = search.center, False
        while not ended:
            ended = search.tell(score(search.ask()), interactions(name))
        figures = search.figures()
        moved = np.linalg.norm((search.center - before).astype(np.float64))
        assert figures.speed == pytest.approx(moved, rel=1e-5)
        assert figures.population == (20 if name.startswith("adaptive") else 8)
        assert (figures.nonfinite, figures.tied) == (0, 0.0)
        for number in (figures.gradient_norm, figures.gradient_agreement, figures.max_speed):
            assert number is None or math.isfinite(number)


@pytest.mark.parametrize("name", BY_RANK)
def test_faults_and_ties_are_counted(name):
    search = make(name)
    search.ask()
    search.tell([1.0, 2.0, 2.0, 3.0, np.nan, np.inf, -np.inf, 4.0])
    assert search.figures().nonfinite == 3
    assert search.figures().tied == 5 / 8


@each
def test_the_figures_are_part_of_the_state(name):
    search, restored = make(name), make(name, seed=5)
    advance(search, name, 7)
    restored.load_state_dict(search.state_dict())
    assert restored.figures() == search.figures()


# -- state ------------------------------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("asked", [False, True])
def test_a_restored_search_goes_on_to_the_same_bits_also_from_the_middle_of_a_generation(name, rounds, asked):
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
        fitnesses = score(population)
        assert search.tell(fitnesses, interactions(name)) == restored.tell(fitnesses, interactions(name))
        assert same(restored.state_dict(), search.state_dict())


@each
def test_the_state_is_flat_and_plain_and_goes_through_a_file_of_numpy(name, tmp_path):
    search, restored = make(name), make(name, seed=9)
    advance(search, name, 3)
    state = search.state_dict()
    assert state["kind"] == search.kind
    assert all(type(value) in {np.ndarray, int, float, str} for value in state.values())
    np.savez(tmp_path / "state.npz", **state)
    with np.load(tmp_path / "state.npz") as file:
        restored.load_state_dict(dict(file))
    assert same(restored.state_dict(), state)


@each
def test_a_loaded_state_is_not_shared_with_its_source(name):
    search, twin = make(name), make(name)
    advance(search, name, 3)
    source = search.state_dict()
    twin.load_state_dict(source)
    for array in arrays(source):
        array[...] = 1e6
    assert same(twin.state_dict(), search.state_dict())


@each
def test_a_damaged_state_is_refused_and_nothing_changes(name):
    search, other = make(name), make(name, seed=5)
    advance(search, name, 3)
    advance(other, name, 5)
    before, saved = search.state_dict(), other.state_dict()
    damages = [(None, {})]
    for key, value in saved.items():
        damages.append((key, {k: v for k, v in saved.items() if k != key}))
        damages.append((key, saved | {key: -7 if not isinstance(value, int) else "7"}))
        if isinstance(value, np.ndarray):
            damages.append((key, saved | {key: np.full(3, np.nan)}))
            damages.append((key, saved | {key: value.astype(np.int64)}))
    damages.append(("center", saved | {"center": np.full_like(saved["center"], np.nan)}))
    for key, damaged in damages:
        try:
            search.load_state_dict(damaged)
        except StateMismatch as error:
            assert "\n" not in str(error)
            assert same(search.state_dict(), before)
        else:
            # A number that may be negative can pass for a value. States of 0.1 have no radius_scale: there it was 1.
            assert damaged.get(key) == -7 or (key == "radius_scale" and key not in damaged)
            search.load_state_dict(before)


@each
def test_a_state_of_another_search_is_refused(name):
    search = make(name)
    advance(search, name, 1)
    before = search.state_dict()
    stranger = PGPE(dimension=4, max_speed=0.1) if isinstance(search, HillClimber) else HillClimber(START, 0.5)
    with pytest.raises(StateMismatch, match=f"a state of a '{search.kind}' search is needed, got one of"):
        search.load_state_dict(stranger.state_dict())
    with pytest.raises(StateMismatch, match="must be 4 numbers of float32, got float32 of shape"):
        search.load_state_dict(make(name, center=[0.0] * 5).state_dict())
    assert same(search.state_dict(), before)


@each_adaptive
def test_a_generation_under_way_is_refused_by_a_search_that_could_not_have_begun_it(name):
    search = make(name)
    advance(search, name, 1)
    fixed = name.removeprefix("adaptive-")
    for other in (make(fixed), make(name, population_size=6)):
        before = other.state_dict()
        with pytest.raises(StateMismatch, match=r"the saved generation \(8 fitnesses told, 0 asked\) does not fit"):
            other.load_state_dict(search.state_dict())
        assert same(other.state_dict(), before)
