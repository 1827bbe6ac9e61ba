import inspect
import math

import numpy as np
import pytest

import clipup
from clipup.errors import InvalidArgument, InvalidFitness
from clipup.searches.maximize import PGPEArguments


def sphere(candidates):
    return np.square(candidates).sum(axis=1)


def test_maximize_and_minimize_are_one_search_with_the_sign_turned():
    up = clipup.maximize(lambda x: -sphere(x), center=[2.0, -1.0], max_speed=0.2, generations=20, seed=4)
    down = clipup.minimize(sphere, center=[2.0, -1.0], max_speed=0.2, generations=20, seed=4)
    assert np.array_equal(up.center, down.center)
    assert np.array_equal(up.best, down.best)
    assert up.best_fitness == -down.best_fitness
    assert [s.best for s in up.history] == [-s.best for s in down.history]
    assert [s.mean for s in up.history] == [-s.mean for s in down.history]


def test_the_result_is_what_ask_and_tell_would_have_found():
    result = clipup.maximize(
        lambda x: -sphere(x), dimension=3, max_speed=0.2, population_size=10, generations=7, seed=4
    )
    search = clipup.PGPE(dimension=3, max_speed=0.2, population_size=10, seed=4)
    best, best_fitness = None, -math.inf
    for _ in range(7):
        population = search.ask()
        fitnesses = -sphere(population)
        search.tell(fitnesses)
        if fitnesses.max() > best_fitness:
            best, best_fitness = population[fitnesses.argmax()], fitnesses.max()
    assert np.array_equal(result.center, search.center)
    assert np.array_equal(result.best, best)
    assert result.best_fitness == best_fitness
    assert result.search.generation == 7
    assert result.stopped == "generations"
    assert [summary.generation for summary in result.history] == [1, 2, 3, 4, 5, 6, 7]
    assert result.history[-1].speed == search.speed
    assert result.history[-1].stdev_norm == pytest.approx(float(np.linalg.norm(search.stdev)))


def test_it_stops_at_the_generation_that_reaches_the_target():
    result = clipup.minimize(sphere, center=[3.0], max_speed=0.3, generations=200, target=0.5, seed=0)
    assert result.stopped == "target"
    assert result.best_fitness <= 0.5
    assert all(summary.best > 0.5 for summary in result.history[:-1])
    assert len(result.history) < 200


def test_a_score_that_writes_into_the_candidates_does_not_change_the_best():
    def vandal(candidates):
        scores = -sphere(candidates)
        candidates[:] = 1e6
        return scores

    tidy = clipup.maximize(lambda x: -sphere(x), dimension=2, max_speed=0.2, generations=5, seed=1)
    result = clipup.maximize(vandal, dimension=2, max_speed=0.2, generations=5, seed=1)
    assert np.array_equal(result.best, tidy.best)
    assert np.array_equal(result.center, tidy.center)


def test_ctrl_c_returns_what_was_found():
    calls = []

    def interrupted(candidates):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return -sphere(candidates)

    result = clipup.maximize(interrupted, dimension=2, max_speed=0.2, seed=1)
    assert result.stopped == "interrupted"
    assert len(result.history) == result.search.generation == 3
    result.search.tell(-sphere(result.search.ask()))  # and it can be gone on with
    assert result.search.generation == 4


def test_the_callback_sees_every_summary():
    seen = []
    result = clipup.minimize(sphere, dimension=2, max_speed=0.2, generations=3, seed=1, callback=seen.append)
    assert tuple(seen) == result.history


def test_non_finite_scores_never_win_and_are_counted():
    def score(candidates):
        values = sphere(candidates)
        values[:3] = [np.nan, np.inf, -np.inf]
        return values

    result = clipup.minimize(score, dimension=2, max_speed=0.2, generations=3, seed=1)
    assert math.isfinite(result.best_fitness)
    assert all(summary.nonfinite == 3 and math.isfinite(summary.mean) for summary in result.history)


@pytest.mark.parametrize("run", [clipup.maximize, clipup.minimize])
def test_a_score_that_is_never_finite_is_said(run):
    with pytest.raises(clipup.ClipUpError, match="no fitness of generation 1 is a finite number"):
        run(lambda x: np.full(len(x), np.nan), center=[1.0, 2.0], max_speed=0.2, generations=2, seed=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"generations": 0}, "generations must be a positive whole number, got 0"),
        ({"generations": 2.5}, "generations must be a positive whole number, got 2.5"),
        ({"target": math.nan}, "target must be a finite number, got nan"),
        ({"interactions": 100}, "'interactions' is not an argument of this search; it takes dimension, center"),
        ({"popsize": 100}, "'popsize' is not an argument of this search"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_scored(arguments, message):
    def never(_):
        raise AssertionError

    with pytest.raises(InvalidArgument, match=message):
        clipup.maximize(never, **({"dimension": 2, "max_speed": 0.1} | arguments))


@pytest.mark.parametrize("scores", [[1.0], "none", [[1.0] * 22], None])
def test_scores_of_the_wrong_shape_or_kind_are_refused(scores):
    with pytest.raises(InvalidFitness):
        clipup.maximize(lambda _: scores, dimension=1, population_size=22, max_speed=0.1)


def test_the_typed_settings_are_the_arguments_of_the_search():
    arguments = inspect.signature(clipup.PGPE).parameters.keys()
    assert PGPEArguments.__annotations__.keys() == arguments - {"interactions", "population_max"}


def test_minimizing_takes_the_lowest_score_possible_as_what_it_is() -> None:
    def score(x: np.ndarray) -> np.ndarray:
        return np.square(x).sum(axis=1) + 5.0

    settings = dict(center=[2.0, 2.0], max_speed=0.1, fitness_shaping="reward-normalized", seed=1, generations=20)
    down = clipup.minimize(score, fitness_max=5.0, **settings)
    up = clipup.maximize(lambda x: -score(x), fitness_max=-5.0, **settings)
    assert down.center.tobytes() == up.center.tobytes()


# -- other searches, bounds, restarts, batches ------------------------------------------------------------------------


OTHERS = {
    clipup.OpenAIES: {"max_speed": 0.3},
    clipup.ARS: {"max_speed": 0.3},
    clipup.SNES: {"stdev": 1.0},
    clipup.XNES: {"stdev": 1.0},
    clipup.CMAES: {"stdev": 1.0},
    clipup.SepCMAES: {"stdev": 1.0},
    clipup.CrossEntropy: {"stdev": 1.0, "noise": 0.01},
}


@pytest.mark.parametrize("search", OTHERS, ids=lambda kind: kind.__name__)
def test_every_search_runs_in_one_call(search):
    result = clipup.minimize(
        lambda x: sphere(x - 1), search=search, dimension=3, population_size=20, seed=1, **OTHERS[search]
    )
    assert type(result.search) is search
    assert np.abs(result.center - 1).max() < 0.3
    assert result.history[-1].population == 20


def test_arguments_that_a_search_does_not_know_are_refused():
    with pytest.raises(InvalidArgument, match=r"the search refused its arguments: .*'max_speed'"):
        clipup.maximize(sphere, search=clipup.CMAES, dimension=2, max_speed=0.1)
    with pytest.raises(InvalidArgument, match="'interactions' is not an argument of this search, because"):
        clipup.maximize(sphere, search=clipup.SNES, dimension=2, stdev=1.0, interactions=5)


@pytest.mark.parametrize("search", [clipup.PGPE, *OTHERS], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "bounds", [(-0.1, 1 / 3), ([-0.1, -math.inf, 0.1], [1 / 3, 0.7, math.inf])], ids=["box", "open"]
)
def test_a_score_sees_candidates_within_the_bounds_only(search, bounds):
    low, high = (np.broadcast_to(limit, 3) for limit in bounds)

    def score(x):
        assert ((x.astype(np.float64) >= low) & (x.astype(np.float64) <= high)).all()
        return x.sum(axis=1)

    settings = OTHERS.get(search, {"max_speed": 0.3})
    result = clipup.maximize(
        score, search=search, dimension=3, bounds=bounds, population_size=20, generations=60, seed=1, **settings
    )
    for solution in (result.center, result.best):
        assert ((solution >= low - 1e-9) & (solution <= high + 1e-9)).all()
    if bounds == (-0.1, 1 / 3):
        assert result.best.sum() > 0.9


def test_without_a_center_a_search_starts_in_the_middle_of_its_bounds():
    seen = []
    clipup.maximize(
        lambda x: seen.append(x.mean(axis=0)) or x.sum(axis=1), bounds=([0.0, 4.0], [2.0, 10.0]), max_speed=1e-3,
        generations=1, seed=1,
    )  # fmt: skip
    np.testing.assert_allclose(seen[0], [1.0, 7.0], atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bounds": 3}, "bounds must be a pair"),
        ({"bounds": (1.0, 1.0)}, "each lower bound must be below its upper bound"),
        ({"bounds": (math.nan, 1.0)}, "each lower bound must be below its upper bound"),
        ({"bounds": ([0.0] * 3, [1.0] * 3)}, "dimension=2 contradicts a center of 3 numbers"),
        ({"bounds": ([0.0] * 3, math.inf)}, "bounds for 3 parameters were given, but the search has 2"),
        ({"bounds": ([0.0] * 2, [1.0] * 3)}, "vectors of one size"),
        ({"batch_size": 0}, "batch_size must be a positive whole number, got 0"),
        ({"restarts": -1}, "restarts must be a whole number, not negative, got -1"),
        ({"restarts": 1.5}, "restarts must be a whole number, not negative, got 1.5"),
    ],
)
def test_bad_bounds_batches_and_restarts_are_refused(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        clipup.maximize(sphere, **({"dimension": 2, "max_speed": 0.1} | arguments))


def test_batches_change_nothing_but_how_many_are_scored_at_once():
    sizes = []

    def score(x):
        sizes.append(len(x))
        return -sphere(x)

    whole = clipup.maximize(score, dimension=2, max_speed=0.2, population_size=20, generations=5, seed=1)
    assert set(sizes) == {20}
    sizes.clear()
    parts = clipup.maximize(score, dimension=2, max_speed=0.2, population_size=20, generations=5, seed=1, batch_size=8)
    assert sizes == [8, 8, 4] * 5
    assert np.array_equal(parts.center, whole.center)
    with pytest.raises(InvalidFitness, match="one score for each of 8 candidates"):
        clipup.maximize(lambda _: np.zeros(3), dimension=2, max_speed=0.2, population_size=20, batch_size=8)


def rastrigin(x):
    return 10 * x.shape[1] + (np.square(x) - 10 * np.cos(2 * np.pi * x.astype(np.float64))).sum(axis=1)


def test_a_stalled_search_starts_anew_with_twice_the_candidates():
    settings = dict(search=clipup.CMAES, dimension=4, stdev=0.3, bounds=(-5.0, 5.0), center=[4.2] * 4, seed=3)
    once = clipup.minimize(rastrigin, generations=2000, restarts=0, **settings)
    assert once.stopped == "stalled"
    assert {summary.restart for summary in once.history} == {0}
    often = clipup.minimize(rastrigin, generations=2000, restarts=6, **settings)
    populations = {summary.restart: summary.population for summary in often.history}
    assert len(populations) > 1
    assert all(populations[number] == populations[0] * 2**number for number in populations)
    assert often.best_fitness < 0.5 * once.best_fitness
    assert [summary.generation for summary in often.history] == list(range(1, len(often.history) + 1))
    assert rastrigin(often.best[np.newaxis])[0] == often.best_fitness
    again = clipup.minimize(rastrigin, generations=2000, restarts=6, **settings)
    assert np.array_equal(again.best, often.best)
    short = clipup.minimize(rastrigin, generations=len(once.history) + 5, restarts=6, **settings)
    assert short.stopped == "generations"
    assert len(short.history) == len(once.history) + 5


def test_without_bounds_a_restart_begins_somewhere_else_too():
    starts = []

    def flat(x):
        starts.append(x.mean(axis=0).tolist())
        return np.zeros(len(x))

    result = clipup.maximize(flat, dimension=2, max_speed=0.1, population_size=20, restarts=2, seed=1, generations=400)
    assert result.stopped == "stalled"
    assert {summary.restart for summary in result.history} == {0, 1, 2}
