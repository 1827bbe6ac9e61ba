"""The one act: the same bits in machine code, in numpy, for one row and for many."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from clipup.errors import InvalidArgument
from clipup.policies import compiled
from clipup.policies.compiled import Forward, observe_one, observe_rows
from clipup.policies.feedforward import Network
from clipup.policies.normalizer import Moments, Statistics

NETWORKS = [
    Network(17, 6), Network(8, 2, bias=False), Network(376, 17), Network(44, 17, (64,)),
    Network(5, 3, (7, 9), activation="relu"), Network(3, 1, (4,), bias=False),
]  # fmt: skip
GENERATOR = np.random.default_rng(0)


@pytest.fixture(autouse=True, scope="module")
def machine_code_of_the_session(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.environ.get("CLIPUP_CACHE_DIR")
    if before is None:
        os.environ["CLIPUP_CACHE_DIR"] = str(request.config.cache.mkdir("clipup-machine-code"))  # type: ignore[union-attr]
    yield
    if before is None:
        del os.environ["CLIPUP_CACHE_DIR"]


def case(network: Network, rows: int) -> tuple[Any, Any, Statistics]:
    parameters = GENERATOR.normal(size=(rows, network.parameter_count)).astype(np.float32)
    observations = GENERATOR.normal(size=(rows, network.observation_size)) * 3
    size = network.observation_size
    return parameters, observations, Statistics(GENERATOR.normal(size=size), GENERATOR.uniform(0.1, 2.0, size))


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.describe())
def test_rows_do_not_depend_on_each_other_and_are_near_those_of_blas(network: Network) -> None:
    parameters, observations, statistics = case(network, 40)
    forward = Forward(network, statistics, compiled=False)
    arranged = forward.arrange(parameters)
    outputs = forward(arranged, observations)
    for row in (0, 17, 39):
        one = slice(row, row + 1)
        assert forward(arranged[one], observations[one]).tobytes() == outputs[one].tobytes()
    expected = network.forward(parameters, statistics.normalize(observations))
    np.testing.assert_allclose(outputs, expected, rtol=2e-4, atol=2e-4)


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="Numba is not installed")
@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.describe())
def test_machine_code_and_numpy_give_the_same_bits(network: Network) -> None:
    for rows in (1, 5, 40):
        parameters, observations, statistics = case(network, rows)
        for given in (statistics, None):
            forms = [Forward(network, given, compiled=flag) for flag in (True, False)]
            arranged = forms[0].arrange(parameters)
            one, other = (form(arranged, observations) for form in forms)
            assert one.tobytes() == other.tobytes()
            one, other = (form(arranged[:1], observations) for form in forms)
            assert one.tobytes() == other.tobytes()


def in_plain_python(network: Network, parameters: Any, observation: Any, statistics: Statistics) -> Any:
    """Return one row's outputs by the functions that machine code is made of."""
    sizes = compiled.layer_sizes(network)
    arranged = np.zeros(network.parameter_count, np.float32)
    values = np.zeros((len(sizes), int(sizes.max())), np.float32)
    compiled.arrange_one(parameters, sizes, network.bias, arranged)
    assert compiled.normalize_one(observation, statistics.mean, statistics.scale, values[0])
    assert compiled.forward_one(arranged, sizes, network.bias, network.activation == "relu", values)
    return values[-1, : network.action_size]


@pytest.mark.parametrize("network", NETWORKS[:2] + NETWORKS[4:], ids=lambda network: network.describe())
def test_the_functions_for_one_row_give_the_same_bits(network: Network) -> None:
    parameters, observations, statistics = case(network, 3)
    forward = Forward(network, statistics, compiled=False)
    outputs = forward(forward.arrange(parameters), observations)
    for row in range(3):
        one = in_plain_python(network, parameters[row], observations[row], statistics)
        assert one.tobytes() == outputs[row].tobytes()


def test_numbers_that_are_not_finite_go_through() -> None:
    network = Network(2, 1, (2,))
    parameters = np.array([[np.nan] * 9, [np.inf] * 9, [2e38] * 9], np.float32)
    forms = [Forward(network, None, compiled=False)]
    if importlib.util.find_spec("numba"):
        forms.append(Forward(network, None))
    for form in forms:
        outputs = form(form.arrange(parameters), np.full((3, 2), 10.0))
        assert np.isnan(outputs[0]) and not np.isfinite(outputs[1]) and not np.isfinite(outputs[2])


def test_a_wrong_number_of_parameters_is_refused() -> None:
    forward = Forward(Network(2, 1), None, compiled=False)
    with pytest.raises(InvalidArgument, match=r"must have shape \(2, 3\) or one row, got \(3, 3\)"):
        forward(np.zeros((3, 3), np.float32), np.zeros((2, 2)))


def test_actions_of_a_box_are_those_of_the_converter() -> None:
    from clipup.policies.actions import Actions

    outputs = GENERATOR.normal(size=(50, 3)).astype(np.float32) * 2
    for rescale in (False, True):
        low, high = np.array([-0.4, 0.1, -2.0], np.float32), np.array([0.4, 0.3, 1.0], np.float32)
        actions = Actions.box(low, high, rescale=rescale)
        bounds = np.stack([low, high, (high + low) / 2, (high - low) / 2])
        expected = actions.apply(outputs)
        for row in range(50):
            action = np.zeros(3, np.float32)
            compiled.bound_one(outputs[row], bounds, rescale, action)
            assert action.tobytes() == expected[row].tobytes()


def test_the_first_of_several_largest_outputs_is_chosen() -> None:
    assert compiled.choose_one(np.array([1.0, 3.0, 3.0, 2.0], np.float32), 4) == 1


def test_moments_of_rows_and_of_one_candidate_are_equal_to_the_bit() -> None:
    observations = GENERATOR.normal(size=(200, 3, 5)) * 10 + 100
    count, mean, m2 = np.zeros((3, 1)), np.zeros((3, 5)), np.zeros((3, 5))
    own_mean, own_m2 = np.zeros((3, 5)), np.zeros((3, 5))
    for step, rows in enumerate(observations, 1):
        count += 1
        observe_rows(rows, count, mean, m2)
        for row in range(3):
            observe_one(rows[row], float(step), own_mean[row], own_m2[row])
    assert mean.tobytes() == own_mean.tobytes() and m2.tobytes() == own_m2.tobytes()
    expected = Moments.of(observations[:, 0])
    np.testing.assert_allclose(mean[0], expected.mean[0])
    np.testing.assert_allclose(m2[0], expected.m2[0])


def test_all_that_act_in_a_process_count_together_until_machine_code_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="machine code needs numba (in the train extra)")
    monkeypatch.setattr(compiled, "_work_done", {})
    monkeypatch.setattr(compiled, "WORTH_LOADING", 1e6)
    network, observation = Network(2, 1), np.array([[1.0, 2.0]])
    arranged = network.arrange(np.ones((1, network.parameter_count), np.float32))
    calls = 0
    while True:
        forward = Forward(network, None)  # engines make a new one for each evaluation
        forward(arranged, observation)
        if forward._call is not None:
            break
        calls += 1
    assert 0.9 * compiled.WORTH_LOADING < calls * compiled.CALL_WORK <= compiled.WORTH_LOADING
