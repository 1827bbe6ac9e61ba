"""What every optimizer keeps, whatever its rule."""

import copy
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import clipup
from clipup.errors import Diverged, InvalidArgument, StateMismatch
from clipup.optimizers import OPTIMIZERS as REGISTERED
from clipup.optimizers import OptimizerSettings, make_optimizer

SETTINGS = OptimizerSettings(max_speed=0.3, step_size=0.2)
OPTIMIZERS = {name: partial(make_optimizer, name, SETTINGS, 5) for name in REGISTERED} | {
    "ascent": lambda: clipup.GradientAscent(0.2),
    "heavy-ball": lambda: clipup.HeavyBall(0.2),
}
GRADIENTS = np.random.default_rng(11).standard_normal((8, 5))

each = pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())


def same(one, other):
    assert one.keys() == other.keys()
    return all(np.array_equal(one[key], other[key]) for key in one)


@each
def test_it_is_an_optimizer_and_tells_how_it_was_made(make):
    optimizer = make()
    assert isinstance(optimizer, clipup.Optimizer)
    assert repr(optimizer).startswith(type(optimizer).__name__ + "(step_size=0.2")


@each
def test_it_climbs(make):
    assert float(make().ascent(GRADIENTS[0]) @ GRADIENTS[0]) > 0


@each
def test_the_step_is_a_new_float64_vector_and_the_gradient_stays_as_it_was(make):
    optimizer, gradient = make(), GRADIENTS[0].copy()
    gradient.flags.writeable = False
    first = optimizer.ascent(gradient)
    assert first.dtype == np.float64
    assert first.shape == gradient.shape
    assert not np.shares_memory(first, gradient)
    twin = make()
    twin.ascent(gradient)
    first[:] = 1e9  # what the caller does to a step is no business of the optimizer
    assert np.array_equal(optimizer.ascent(GRADIENTS[1]), twin.ascent(GRADIENTS[1]))


@each
def test_lists_float32_and_integers_are_gradients_too(make):
    expected = make().ascent(np.array([1.0, -2.0, 0.0]))
    for gradient in ([1, -2, 0], (1.0, -2.0, 0.0), np.array([1, -2, 0], np.float32), np.array([1, -2, 0])):
        assert np.array_equal(make().ascent(gradient), expected)


@each
def test_a_zero_gradient_is_legal(make):
    optimizer = make()
    assert not optimizer.ascent(np.zeros(4)).any()
    optimizer.ascent(np.ones(4))
    assert np.isfinite(optimizer.ascent(np.zeros(4))).all()


@each
@pytest.mark.parametrize("steps", [0, 1, 4])
def test_a_restored_state_goes_on_to_the_same_bits(make, steps):
    optimizer, restored = make(), make()
    for gradient in GRADIENTS[:steps]:
        optimizer.ascent(gradient)
    restored.load_state_dict(optimizer.state_dict())
    assert same(restored.state_dict(), optimizer.state_dict())
    for gradient in GRADIENTS[steps:]:
        assert np.array_equal(optimizer.ascent(gradient), restored.ascent(gradient))


@each
def test_the_state_is_flat_plain_and_a_copy(make):
    optimizer = make()
    optimizer.ascent(GRADIENTS[0])
    state = optimizer.state_dict()
    assert all(type(value) in {np.ndarray, int, float, str} for value in state.values())
    kept = copy.deepcopy(state)
    for value in state.values():
        if isinstance(value, np.ndarray):
            value[:] = np.nan
    assert same(optimizer.state_dict(), kept)
    fresh = make()
    source = copy.deepcopy(kept)
    fresh.load_state_dict(source)
    for value in source.values():
        if isinstance(value, np.ndarray):
            value[:] = np.nan
    assert same(fresh.state_dict(), kept)


@each
@pytest.mark.parametrize(
    "gradient",
    [[1.0, np.nan, 0.0, 0.0, 0.0], [np.inf] * 5, np.zeros((5, 1)), np.zeros(4), 3.0, ["a"] * 5],
    ids=["nan", "inf", "matrix", "shorter", "scalar", "text"],
)
def test_a_bad_gradient_is_refused_before_anything_changes(make, gradient):
    optimizer = make()
    optimizer.ascent(GRADIENTS[0])
    before = optimizer.state_dict()
    if len(np.shape(gradient)) == 1 and len(gradient) == 4 and optimizer.kind == "ascent":
        optimizer.ascent(gradient)  # it has no memory that could be of another size
    else:
        with pytest.raises(InvalidArgument, match="the gradient must be"):
            optimizer.ascent(gradient)
    assert same(optimizer.state_dict(), before)


@each
def test_a_state_of_another_kind_is_refused_and_nothing_changes(make):
    optimizer = make()
    optimizer.ascent(GRADIENTS[0])
    before = optimizer.state_dict()
    for foreign in ({}, {"kind": "sgd"}, {"kind": optimizer.kind + "!"} | {"velocity": np.zeros(5)}):
        with pytest.raises(StateMismatch, match=f"a state of a {optimizer.kind!r} optimizer is needed, got one of"):
            optimizer.load_state_dict(foreign)
    assert same(optimizer.state_dict(), before)


@each
def test_a_missing_field_is_refused_and_nothing_changes(make):
    optimizer = make()
    optimizer.ascent(GRADIENTS[0])
    before = optimizer.state_dict()
    for missing in before.keys() - {"kind"}:
        damaged = {key: value for key, value in before.items() if key != missing}
        damaged |= {key: value * 2 for key, value in damaged.items() if isinstance(value, np.ndarray)}
        with pytest.raises(StateMismatch):
            optimizer.load_state_dict(damaged)
        assert same(optimizer.state_dict(), before)


@each
@given(
    sequence=st.lists(
        hnp.arrays(np.float64, 3, elements=st.floats(allow_nan=False, allow_infinity=False)), min_size=1, max_size=5
    )
)
def test_every_finite_gradient_gives_a_finite_step_or_an_overflow_that_changes_nothing(make, sequence):
    optimizer = make()
    for gradient in sequence:
        before = optimizer.state_dict()
        try:
            assert np.isfinite(optimizer.ascent(gradient)).all()
        except Diverged:
            assert same(optimizer.state_dict(), before)
            assert np.abs(gradient).max() > 1e100


@each
def test_a_search_runs_with_it(make):
    optimizer = make()
    search = clipup.PGPE(center=[3.0, -2.0], stdev=0.5, population_size=40, optimizer=optimizer, seed=2)
    before = np.square(search.center).sum()
    for _ in range(30):
        search.tell(-np.square(search.ask()).sum(axis=1))
    assert np.square(search.center).sum() < 0.8 * before  # plain ascent, the slowest, is here at 0.57
    assert search.optimizer is optimizer
