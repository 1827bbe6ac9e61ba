"""`clipup.optax.clipup` is our ClipUp, and a good citizen of JAX."""

import numpy as np
import pytest

import clipup
from clipup.errors import InvalidArgument

optax = pytest.importorskip("optax", reason="optax is not installed; install it with: pip install 'clipup[optax]'")
jax = pytest.importorskip("jax", reason="jax is not installed; install it with: pip install 'clipup[optax]'")
transformation = pytest.importorskip("clipup.optax").clipup
jnp = jax.numpy


@pytest.fixture
def double():
    with jax.enable_x64(True):
        yield


def tree(vector):
    """Cut a vector of 10 numbers into a tree of arrays."""
    v = jnp.asarray(vector)
    return {"layer": {"weights": v[:6].reshape(2, 3), "bias": v[6:9]}, "scale": [v[9]]}


def flat(values):
    return np.concatenate([np.asarray(leaf, np.float64).ravel() for leaf in jax.tree.leaves(values)])


def in_order(vector):
    """Return the numbers in the order in which JAX visits the leaves of `tree`."""
    return flat(tree(vector))


def random_gradients(seed, steps):
    random = np.random.default_rng(seed)
    for _ in range(steps):
        yield random.standard_normal(10) * random.choice([0.0, 1e-200, 1e-12, 1e-3, 1.0, 1e6, 1e200])


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_it_takes_the_steps_of_our_clipup(jit, maximize, seed):
    random = np.random.default_rng(100 + seed)
    speed, ratio, momentum = random.uniform(0.01, 3.0), random.uniform(0.05, 1.5), random.uniform(0.0, 0.99)
    ours = clipup.ClipUp(step_size=ratio * speed, max_speed=speed, momentum=momentum)
    theirs = transformation(speed, ratio, momentum, maximize=maximize)
    update = jax.jit(theirs.update) if jit else theirs.update
    state = theirs.init(tree(np.zeros(10)))
    for gradient in random_gradients(seed, 30):
        updates, state = update(tree(gradient), state)
        expected = ours.ascent(gradient if maximize else -gradient)
        np.testing.assert_allclose(flat(updates), in_order(expected), rtol=1e-12, atol=1e-12)


def test_in_float32_it_does_so_to_rounding():
    ours, theirs = clipup.ClipUp(0.1, 0.2), transformation(0.2)
    state, update = theirs.init(tree(np.zeros(10, np.float32))), jax.jit(theirs.update)
    for gradient in np.random.default_rng(1).standard_normal((40, 10)).astype(np.float32):
        updates, state = update(tree(gradient), state)
        np.testing.assert_allclose(flat(updates), in_order(ours.ascent(-gradient)), rtol=1e-4, atol=1e-6)


def test_a_batch_of_searches_runs_under_vmap():
    theirs = transformation(0.3)
    gradients = np.random.default_rng(2).standard_normal((8, 5, 10)).astype(np.float32)
    states = jax.vmap(theirs.init)(jax.vmap(tree)(jnp.zeros((5, 10))))
    alone = [theirs.init(tree(np.zeros(10, np.float32))) for _ in range(5)]
    for step in gradients:
        updates, states = jax.jit(jax.vmap(theirs.update))(jax.vmap(tree)(step), states)
        for number in range(5):
            own, alone[number] = theirs.update(tree(step[number]), alone[number])
            mine = jax.tree.map(lambda leaf, number=number: leaf[number], updates)
            np.testing.assert_allclose(flat(mine), flat(own), rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("double")
def test_parts_of_a_tree_are_normalized_apart_where_asked():
    labels = {"layer": {"weights": "w", "bias": "rest"}, "scale": ["rest"]}
    apart = optax.partition({"w": transformation(0.3), "rest": transformation(0.3)}, labels)
    first, second = clipup.ClipUp(0.15, 0.3), clipup.ClipUp(0.15, 0.3)
    state = apart.init(tree(np.zeros(10)))
    for gradient in random_gradients(4, 20):
        updates, state = apart.update(tree(gradient), state)
        expected = np.concatenate([first.ascent(-gradient[:6]), second.ascent(-gradient[6:])])
        np.testing.assert_allclose(flat(updates), in_order(expected), atol=1e-12)


def test_max_speed_may_be_a_schedule():
    theirs = transformation(optax.linear_schedule(1.0, 0.0625, 15))
    state = theirs.init(tree(np.zeros(10, np.float32)))
    for number in range(20):
        updates, state = jax.jit(theirs.update)(tree(np.ones(10, np.float32)), state)
        assert np.linalg.norm(flat(updates)) <= max(1 - number / 16, 0.0625) * (1 + 1e-5)
    assert int(state.count) == 20


def test_it_goes_with_other_transformations_and_minimizes():
    chain = optax.chain(optax.zero_nans(), transformation(0.2))
    parameters = tree(np.full(10, 2.0, np.float32))
    state = chain.init(parameters)

    @jax.jit
    def step(parameters, state):
        gradient = jax.grad(lambda p: sum(jnp.square(leaf).sum() for leaf in jax.tree.leaves(p)))(parameters)
        updates, state = chain.update(gradient, state, parameters)
        return optax.apply_updates(parameters, updates), state

    for _ in range(80):
        parameters, state = step(parameters, state)
    assert np.abs(flat(parameters)).max() < 0.3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_speed": 0.0}, "max_speed must be a positive number, got 0.0"),
        ({"max_speed": 1.0, "step_ratio": -1.0}, "step_ratio must be a positive number"),
        ({"max_speed": 1.0, "momentum": 1.0}, "momentum must be at least 0 and less than 1"),
    ],
)
def test_numbers_that_break_a_rule_are_refused(settings, message):
    with pytest.raises(InvalidArgument, match=message):
        transformation(**settings)
