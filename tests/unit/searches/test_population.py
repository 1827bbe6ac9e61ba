"""The paper's adaptive population: it grows by λ until the interactions reach T or the candidates λ_max."""

import numpy as np
import pytest

from clipup import PGPE
from clipup.errors import InvalidArgument, InvalidFitness, StateMismatch
from clipup.searches.gradient import GradientWork, estimate
from clipup.searches.population import PopulationSize
from clipup.searches.shaping import centered_rank, utility_weights


def make(**settings):
    return PGPE(**({"dimension": 3, "max_speed": 0.5, "population_size": 10, "seed": 1} | settings))


def play(search, interactions):
    """Play batches of the given total interactions; return the number of candidates of each generation."""
    generations, candidates = [], 0
    for total in interactions:
        population = search.ask()
        candidates += len(population)
        if search.tell(population.sum(axis=1), total):
            generations.append(candidates)
            assert search.population_size == candidates
            candidates = 0
    return generations


def test_it_grows_by_batches_until_the_interactions_reach_t():
    assert play(make(interactions=100, population_max=80), [100, 99, 1, 40, 40, 40, 500]) == [10, 20, 30, 10]


def test_it_stops_at_its_bound():
    assert play(make(interactions=100, population_max=30), [1] * 9) == [30, 30, 30]


def test_a_last_batch_is_cut_at_the_bound():
    search = make(interactions=100, population_max=26)
    assert [len(search.ask()), search.tell(np.zeros(10), 1)] == [10, False]
    assert [len(search.ask()), search.tell(np.zeros(10), 1)] == [10, False]
    assert [len(search.ask()), search.tell(np.zeros(6), 1)] == [6, True]
    assert len(search.ask()) == 10


def test_exactly_t_is_enough():
    assert play(make(interactions=100), [100]) == [10]
    assert play(make(interactions=100), [99]) == []


def test_a_generation_without_interactions_grows_to_its_bound():
    assert play(make(interactions=1, population_max=40), [0, 0, 0, 0]) == [40]


def test_the_candidates_of_a_generation_continue_one_numbering_and_share_one_distribution():
    grown, whole = make(interactions=100, population_max=30), make(population_size=30)
    parts = []
    for _ in range(3):
        parts.append(grown.ask())
        grown.tell(parts[-1].sum(axis=1), 1)
    population = whole.ask()
    assert np.array_equal(np.concatenate(parts), population)
    whole.tell(population.sum(axis=1))
    # Ranked together, not batch by batch: the update is that of one population of 30.
    assert np.array_equal(grown.center, whole.center)
    assert np.array_equal(grown.stdev, whole.stdev)


def test_the_update_uses_every_candidate_of_the_generation():
    search = make(interactions=100, population_max=20)
    fitnesses = []
    for _ in range(2):
        fitnesses.extend(np.square(search.ask()).sum(axis=1).tolist())
        stdev = search.stdev
        search.tell(fitnesses[-10:], 1)
    work = GradientWork(utility_weights(centered_rank(fitnesses)), 1, 0, 3)
    expected = estimate(work, stdev, [work.block(0)])
    assert search.gradient_norm == pytest.approx(np.linalg.norm(expected.center))


def test_interactions_come_as_a_total_or_one_by_one():
    for told in (100, np.int32(100), [10] * 10, np.full(10, 10, np.uint8), (9,) * 9 + (19,)):
        search = make(interactions=100)
        search.ask()
        assert search.tell(np.zeros(10), told)


@pytest.mark.parametrize(
    ("interactions", "message"),
    [
        (None, "tell needs interactions=…, .* until they reach 100, got none"),
        (-1, "interactions must not be negative, got -1"),
        ([5] * 9, r"one whole number or 10 of them, got shape \(9,\)"),
        (10.0, "one whole number or 10 of them, got shape .* of float64"),
        ([True] * 10, "of bool"),
        (10**30, "of object"),
    ],
)
def test_bad_interactions_are_refused_and_nothing_changes(interactions, message):
    search = make(interactions=100)
    population = search.ask()
    with pytest.raises(InvalidArgument, match=message):
        search.tell(np.zeros(10), interactions)
    assert np.array_equal(search.ask(), population)
    assert search.state_dict()["interactions_done"] == 0


def test_interactions_are_refused_where_the_population_is_not_adaptive():
    search = make()
    search.ask()
    with pytest.raises(InvalidArgument, match="interactions were told, but the population is not adaptive"):
        search.tell(np.zeros(10), 5)


def test_a_refused_batch_can_be_told_again_in_the_middle_of_a_generation():
    search, calm = (make(interactions=100, fitness_shaping="raw") for _ in range(2))
    for each in (search, calm):
        each.ask()
        each.tell(np.arange(10.0), 50)
        each.ask()
    with pytest.raises(InvalidFitness, match="got 1 non-finite"):
        search.tell([np.nan] + [0.0] * 9, 60)
    for each in (search, calm):
        assert each.tell(np.arange(10.0), 60)
    assert np.array_equal(search.center, calm.center)


def test_a_fixed_population_is_one_batch():
    size = PopulationSize.of(2, 10, None, None)
    assert (size.stop(0), size.stop(10)) == (10, 10)
    assert not size.grows(10, 0)


@pytest.mark.parametrize(
    ("size", "told", "asked"),
    [
        (PopulationSize(8), 8, 0),
        (PopulationSize(8), 0, 6),
        (PopulationSize(8, 100, 20), 6, 0),
        (PopulationSize(8, 100, 20), 8, 4),
        (PopulationSize(8, 100, 20), 16, 8),
        (PopulationSize(8, 100, 20), 24, 0),
        (PopulationSize(8, 100, 8), 8, 0),
    ],
)
def test_progress_that_no_search_of_this_size_makes_is_refused(size, told, asked):
    with pytest.raises(StateMismatch, match=rf"\({told} fitnesses told, {asked} asked\) does not fit a search with"):
        size.check_progress(told, asked)


def test_progress_that_it_makes_is_accepted():
    for told, asked in ((0, 0), (0, 8), (8, 0), (8, 8), (16, 0), (16, 4)):
        PopulationSize(8, 100, 20).check_progress(told, asked)
