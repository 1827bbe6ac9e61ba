import math

import numpy as np
import pytest

from clipup.errors import StateMismatch
from clipup.optimizers import Adam


def published_recursion(gradients, alpha, beta1, beta2, epsilon):
    """Kingma and Ba (2015), Algorithm 1, number by number; the sign is that of ascent."""
    first, second = [0.0] * len(gradients[0]), [0.0] * len(gradients[0])
    for t, gradient in enumerate(gradients, start=1):
        step = []
        for i, g in enumerate(gradient):
            first[i] = beta1 * first[i] + (1 - beta1) * g
            second[i] = beta2 * second[i] + (1 - beta2) * g * g
            corrected_first = first[i] / (1 - beta1**t)
            corrected_second = second[i] / (1 - beta2**t)
            step.append(alpha * corrected_first / (math.sqrt(corrected_second) + epsilon))
        yield step


@pytest.mark.parametrize(("beta1", "beta2", "epsilon"), [(0.9, 0.999, 1e-8), (0.0, 0.5, 1e-2), (0.5, 0.0, 1.0)])
def test_every_step_equals_the_published_recursion(beta1, beta2, epsilon):
    gradients = np.random.default_rng(5).normal(size=(40, 6)) * np.array([1, 10, 1e-3, 1e3, 0, 1e-9])
    optimizer = Adam(0.15, beta1, beta2, epsilon)
    for gradient, expected in zip(
        gradients, published_recursion(gradients.tolist(), 0.15, beta1, beta2, epsilon), strict=True
    ):
        np.testing.assert_allclose(optimizer.ascent(gradient), expected, rtol=1e-12, atol=0)


def test_the_defaults_are_those_of_kingma_and_ba():
    assert repr(Adam(0.1)) == "Adam(step_size=0.1, beta1=0.9, beta2=0.999, epsilon=1e-08)"


@pytest.mark.parametrize(
    "damage",
    [
        {"steps": -1},
        {"steps": 1.5},
        {"steps": True},
        {"steps": 0},
        {"square": np.array([1.0, -1.0])},
        {"square": np.array([1.0])},
        {"square": np.empty(0)},
        {"mean": np.array([1.0, np.nan])},
        {"mean": np.array([1.0, 2.0], np.float32)},
        {"mean": "none"},
    ],
)
def test_a_damaged_state_is_refused_and_nothing_changes(damage):
    optimizer = Adam(0.1)
    optimizer.ascent([1.0, 2.0])
    good = optimizer.state_dict()
    with pytest.raises(StateMismatch):
        optimizer.load_state_dict(good | damage)
    untouched = optimizer.state_dict()
    assert untouched["steps"] == 1
    assert np.array_equal(untouched["mean"], good["mean"])
    assert np.array_equal(untouched["square"], good["square"])
