import numpy as np
import pytest

from clipup import PGPE, Adam, ClipUp, GradientAscent, HeavyBall
from clipup.errors import Diverged, InvalidArgument, StateMismatch
from clipup.searches import directions
from clipup.searches.gradient import BLOCK
from clipup.searches.pgpe import STDEV_FLOOR


def sphere(candidates):
    return -np.square(candidates.astype(np.float64)).sum(axis=1)


def make(**settings):
    return PGPE(**({"dimension": 3, "max_speed": 0.5, "population_size": 6, "seed": 1} | settings))


def same_state(search, state):
    now = search.state_dict()
    assert now.keys() == state.keys()
    return all(np.array_equal(now[key], state[key]) for key in state)


def test_candidates_mirror_each_other_about_the_center():
    search = make(interactions=100, population_max=16)
    for _ in range(6):
        population, center = search.ask(), search.center
        np.testing.assert_allclose(population[0::2] - center, center - population[1::2], atol=1e-5)
        search.tell(sphere(population), 40)


def test_one_generation_by_hand():
    # One step of plain ascent moves the center by the gradient of line 3 and the stdev by 0.1 of that of line 4.
    search = PGPE(
        center=[1.0, -1.0], stdev=[0.5, 2.0], population_size=4, fitness_shaping="raw", stdev_max_change=None,
        optimizer=GradientAscent(1.0), seed=3,
    )  # fmt: skip
    z = directions(3, 0, 0, 2, 2).astype(np.float64)
    assert search.ask().shape == (4, 2)
    assert search.tell([3.0, 1.0, -2.0, 4.0])  # mean 1.5; halves of differences 1, -3; means above it 0.5, -0.5
    delta = z * [0.5, 2.0]
    center = (1.0 * delta[0] - 3.0 * delta[1]) / 2
    stdev = (0.5 * (delta[0] ** 2 - [0.25, 4.0]) - 0.5 * (delta[1] ** 2 - [0.25, 4.0])) / [0.5, 2.0] / 2
    np.testing.assert_allclose(search.center, np.array([1.0, -1.0]) + center, rtol=1e-6)
    np.testing.assert_allclose(search.stdev, np.array([0.5, 2.0]) + 0.1 * stdev, rtol=1e-6)
    assert search.generation == 1
    assert search.gradient_norm == search.speed == pytest.approx(np.linalg.norm(center))


@pytest.mark.parametrize(("sign", "factor"), [(1.0, 1.2), (-1.0, 0.8)])
def test_the_stdev_changes_by_a_fifth_at_most(sign, factor):
    # Pairs far from the center are very good, or very bad: the unlimited change would be many times the stdev.
    search = make(dimension=1, population_size=200, fitness_shaping="raw", stdev=0.5)
    distance = np.square(search.ask())[:, 0]
    search.tell(sign * 1e9 * distance)
    assert search.stdev.tolist() == pytest.approx([0.5 * factor])


def test_the_limit_of_the_stdevs_change_can_be_set_and_turned_off():
    narrow, free = (
        make(dimension=1, population_size=200, fitness_shaping="raw", stdev=0.5, stdev_max_change=limit)
        for limit in (0.05, None)
    )
    for search in (narrow, free):
        search.tell(1e3 * np.square(search.ask())[:, 0])
    assert narrow.stdev.tolist() == pytest.approx([0.525])
    assert free.stdev[0] > 5


def test_a_stdev_that_would_reach_zero_stops_at_the_smallest_normal_float32():
    search = make(dimension=1, population_size=200, fitness_shaping="raw", stdev=0.5, stdev_max_change=None)
    search.tell(-1e6 * np.square(search.ask())[:, 0])
    assert search.stdev.tolist() == [float(STDEV_FLOOR)]
    search.tell(np.arange(200.0) if search.ask().size else [])  # and the search goes on
    assert np.isfinite(search.center).all()
    assert (search.stdev >= STDEV_FLOOR).all()


def test_a_stdev_learning_rate_of_zero_keeps_the_stdev():
    search = make(stdev_learning_rate=0, population_size=20)
    before = search.stdev
    for _ in range(3):
        search.tell(sphere(search.ask() - 1))
    assert np.array_equal(search.stdev, before)


@pytest.mark.parametrize("shaping", ["centered-rank", "raw", "reward-normalized"])
def test_equal_fitnesses_move_nothing(shaping):
    search = make(fitness_shaping=shaping, population_size=10)
    center, stdev = search.center, search.stdev
    search.ask()
    search.tell(np.full(10, 0.1))
    assert np.array_equal(search.center, center)
    assert np.array_equal(search.stdev, stdev)
    assert search.speed == search.gradient_norm == search.gradient_agreement == 0.0
    assert search.tied == 1.0
    assert not search.clipped


def test_after_equal_fitnesses_the_velocity_decays():
    search = make()
    search.tell(sphere(search.ask() - 3))
    first = search.speed
    search.ask()
    search.tell(np.ones(6))
    assert search.speed == pytest.approx(0.9 * first)


def test_a_population_of_two_moves_the_center_and_leaves_the_stdev():
    search = make(population_size=2, dimension=5)
    stdev = search.stdev
    population = search.ask()
    search.tell([1.0, 2.0])
    towards = population[1] - population.mean(axis=0)
    np.testing.assert_allclose(search.center, 0.25 * towards / np.linalg.norm(towards), rtol=1e-5)
    assert np.array_equal(search.stdev, stdev)


def test_one_dimension_is_enough():
    search = make(dimension=1, population_size=10, max_speed=0.2)
    for _ in range(60):
        search.tell(sphere(search.ask() - 2))
    assert abs(search.center[0] - 2) < 0.2


def test_a_million_dimensions_work():
    search = PGPE(dimension=1_000_000, max_speed=1.0, population_size=4, seed=1)
    for _ in range(2):
        before = search.center
        batch = search.batch()
        search.tell([float(batch.candidates(i, i + 1).sum(dtype=np.float64)) for i in range(4)])
        assert np.linalg.norm((search.center - before).astype(np.float64)) == pytest.approx(search.speed, rel=1e-5)
    assert search.stdev.shape == (1_000_000,)
    assert search.stdev[0] == pytest.approx(15 / 1000, rel=0.5)
    assert 0 < search.speed <= 1.0


def test_ties_give_no_direction_to_either_of_a_pair():
    # One pair tied at the top, one at the bottom: the stdev learns, the center must not move.
    search = make(population_size=4, dimension=2)
    search.ask()
    search.tell([5.0, 5.0, 1.0, 1.0])
    assert not search.center.any()
    assert search.speed == 0.0
    assert search.tied == 1.0


def test_non_finite_fitnesses_are_counted_and_rank_last():
    one, other = make(population_size=8), make(population_size=8)
    one.ask(), other.ask()
    one.tell([1.0, np.nan, 3.0, np.inf, 5.0, -np.inf, 7.0, 8.0])
    other.tell([1.0, -9.0, 3.0, -9.0, 5.0, -9.0, 7.0, 8.0])
    assert one.nonfinite == 3
    assert other.nonfinite == 0
    assert np.array_equal(one.center, other.center)
    assert np.array_equal(one.stdev, other.stdev)


def test_the_reward_normalization_uses_the_best_so_far_where_no_maximum_is_given():
    search, told = (make(fitness_shaping="reward-normalized", fitness_max=top) for top in (None, 9.0))
    fitnesses = [1.0, 2.0, 3.0, 4.0, 9.0, 6.0]
    search.ask(), told.ask()
    search.tell(fitnesses), told.tell(fitnesses)
    assert np.array_equal(search.stdev, told.stdev)
    # A worse generation: the maximum is remembered.
    search.ask(), told.ask()
    search.tell(np.zeros(6) - np.arange(6.0)), told.tell(np.zeros(6) - np.arange(6.0))
    assert np.array_equal(search.center, told.center)
    assert search.state_dict()["fitness_max"] == 9.0


def test_raw_fitnesses_of_a_tiny_scale_still_give_a_full_step():
    tiny, plain = (make(fitness_shaping="raw", population_size=20) for _ in range(2))
    tiny.tell(1e-300 * sphere(tiny.ask() - 1))
    plain.tell(sphere(plain.ask() - 1))
    np.testing.assert_allclose(tiny.center, plain.center, rtol=1e-5)
    assert tiny.gradient_norm == pytest.approx(1e-300 * plain.gradient_norm)
    assert tiny.gradient_agreement == pytest.approx(plain.gradient_agreement)


def test_an_overflowing_gradient_is_refused_and_nothing_changes():
    search = make(fitness_shaping="raw")
    search.ask()
    state = search.state_dict()
    with pytest.raises(Diverged, match="the gradient overflowed: scale the fitnesses down, or use"):
        search.tell([1.7e308, -1.7e308] * 3)
    assert same_state(search, state)
    assert search.tell(np.arange(6.0))


@pytest.mark.parametrize("optimizer", [GradientAscent(1e30), ClipUp(1e37, None), Adam(1e38)])
def test_a_step_beyond_float32_is_refused_and_nothing_changes(optimizer):
    search = PGPE(center=[1e37, 0.0], stdev=1e36, optimizer=optimizer, population_size=6, fitness_shaping="raw", seed=1)
    for _ in range(60):
        population = search.ask()
        state = search.state_dict()
        try:
            search.tell(population[:, 0] / 1e30)
        except Diverged as error:
            assert "leave the range of float32 at coordinate" in str(error)
            break
        assert np.isfinite(search.center).all()
    else:
        pytest.fail("the search should have left the range")
    assert same_state(search, state)
    assert np.array_equal(search.ask(), population)


class Faulty(GradientAscent):
    """Advances its state, then fails in the way that it is told to."""

    def __init__(self, fault):
        super().__init__(1.0)
        self.fault, self.calls = fault, 0

    def ascent(self, gradient):
        self.calls += 1
        return self.fault(super().ascent(gradient))

    def state_dict(self):
        return super().state_dict() | {"calls": self.calls}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.calls = state["calls"]


def interrupt(_):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (interrupt, KeyboardInterrupt),
        (lambda step: step[:1], InvalidArgument),
        (lambda step: np.outer(step, step), InvalidArgument),
        (lambda step: step * np.nan, Diverged),
    ],
)
def test_an_optimizer_that_fails_or_is_interrupted_takes_its_own_step_back(fault, error):
    search = PGPE(dimension=3, stdev=1.0, population_size=4, optimizer=Faulty(fault), seed=1)
    search.ask()
    state = search.state_dict()
    with pytest.raises(error):
        search.tell([1.0, 2.0, 3.0, 4.0])
    assert same_state(search, state)


def test_a_gradient_summed_elsewhere_has_the_same_bits():
    one, other = (make(population_size=2 * (3 * BLOCK + 10)) for _ in range(2))

    def elsewhere(work):
        backwards = {number: work.block(number) for number in reversed(range(work.block_count))}
        return [backwards[number] for number in range(work.block_count)]

    for _ in range(3):
        fitnesses = sphere(one.ask() - 1)
        other.batch()
        one.tell(fitnesses)
        other.tell(fitnesses, sum_blocks=elsewhere)
        assert np.array_equal(one.center, other.center)
        assert np.array_equal(one.stdev, other.stdev)


def test_workers_that_die_change_nothing():
    search = make()
    search.ask()
    state = search.state_dict()

    def dead(_):
        raise OSError("worker lost")

    with pytest.raises(OSError, match="worker lost"):
        search.tell(np.arange(6.0), sum_blocks=dead)
    with pytest.raises(InvalidArgument, match="the sums of 1 blocks are needed, got 0"):
        search.tell(np.arange(6.0), sum_blocks=lambda _: [])
    assert same_state(search, state)
    assert search.tell(np.arange(6.0))


def test_materialized_or_not_the_bits_are_the_same():
    asked, lazy, mixed = (make(population_size=10, interactions=100, population_max=40) for _ in range(3))
    for round_number in range(12):
        fitnesses = sphere(asked.ask() - 1)
        batch = lazy.batch()
        np.testing.assert_array_equal(sphere(batch.candidates() - 1), fitnesses)
        mixed.ask() if round_number % 3 else mixed.batch()
        ended = [search.tell(fitnesses, 30) for search in (asked, lazy, mixed)]
        assert len(set(ended)) == 1
    assert asked.generation == 3
    for other in (lazy, mixed):
        assert np.array_equal(asked.center, other.center)
        assert np.array_equal(asked.stdev, other.stdev)


def test_the_agreement_is_high_on_a_slope_and_low_in_noise():
    slope, noise = (make(population_size=4000, dimension=4, fitness_shaping="raw") for _ in range(2))
    slope.tell(slope.ask().sum(axis=1))
    noise.ask()
    noise.tell(np.random.default_rng(0).standard_normal(4000))
    assert slope.gradient_agreement > 0.95
    assert slope.gradient_agreement > noise.gradient_agreement


def test_an_optimizer_of_ones_own_may_keep_what_it_likes():
    class Remembering(GradientAscent):
        kind = "remembering"

        def __init__(self):
            super().__init__(step_size=0.1)
            self.history = np.zeros((5, 3))

        def state_dict(self):
            return {"kind": self.kind, "history": self.history}

        def load_state_dict(self, state):
            self.history = state["history"]

    search = PGPE(dimension=3, optimizer=Remembering(), population_size=6, stdev=1.0, seed=1)
    search.load_state_dict(search.state_dict())


class Plain:
    """An optimizer with nothing but what the protocol asks for."""

    kind = "plain"

    def ascent(self, gradient):
        return 0.01 * np.sign(gradient)

    def state_dict(self):
        return {"kind": self.kind}

    def load_state_dict(self, state):
        pass


def test_an_optimizer_that_says_nothing_of_its_speed_has_no_cap_and_never_clips():
    search = PGPE(dimension=3, optimizer=Plain(), population_size=6, stdev=1.0, seed=1)
    search.tell(sphere(search.ask() - 1))
    assert (search.max_speed, search.clipped) == (None, False)
    assert (search.figures().max_speed, search.figures().clipped) == (None, False)
    assert search.speed == pytest.approx(0.01 * np.sqrt(3))
    with pytest.raises(InvalidArgument, match="an optimizer without a max_speed has no scale"):
        PGPE(dimension=3, optimizer=Plain())


def test_an_optimizer_of_ones_own_reports_its_cap_and_gives_the_scale():
    class Capped(Plain):
        max_speed, clipped = 0.2, True

    search = PGPE(dimension=4, optimizer=Capped(), population_size=6, seed=1)
    search.tell(sphere(search.ask() - 1))
    assert (search.max_speed, search.clipped) == (0.2, True)
    assert (search.figures().max_speed, search.figures().clipped) == (0.2, True)
    assert search.settings()["radius"] == pytest.approx(15 * 0.2)


def test_the_figures_are_those_that_its_properties_give():
    search = make(population_size=20)
    search.tell(sphere(search.ask() - 1))
    figures = search.figures()
    assert figures.gradient_norm == search.gradient_norm > 0
    assert figures.gradient_agreement == search.gradient_agreement
    assert (figures.speed, figures.max_speed, figures.clipped) == (search.speed, 0.5, search.clipped)
    assert (figures.population, figures.nonfinite, figures.tied) == (20, 0, 0.0)
    assert figures.stdev_norm == float(np.sqrt(np.square(search.stdev, dtype=np.float64).sum()))


def test_a_state_with_another_optimizer_is_refused():
    search = make()
    search.tell(sphere(search.ask()))
    before = search.state_dict()
    for stranger in (Adam(0.5), HeavyBall(0.5)):
        other = PGPE(dimension=3, stdev=0.1, optimizer=stranger, population_size=6)
        with pytest.raises(StateMismatch, match="the saved optimizer does not fit: a state of a"):
            search.load_state_dict(other.state_dict())
    with pytest.raises(StateMismatch, match="the saved optimizer does not fit: the optimizer's 'velocity' must have 3"):
        search.load_state_dict(before | {"optimizer.velocity": np.zeros(2)})
    assert same_state(search, before)


def test_saved_fitnesses_that_the_shaping_cannot_use_are_refused():
    ranked, raw = (make(interactions=100, fitness_shaping=shaping) for shaping in ("centered-rank", "raw"))
    ranked.ask()
    ranked.tell([np.nan] * 6, 10)
    with pytest.raises(StateMismatch, match="the saved fitnesses must be finite for 'raw' shaping"):
        raw.load_state_dict(ranked.state_dict())
