"""One way to act: normalize, network, bounds, and no NaN for a simulator."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from clipup.policies import Actions, Network, Policy, Statistics, compiled
from clipup.policies.act import Actor
from clipup.policies.compiled import Forward

NETWORK = Network(3, 2, bias=False)
BOX = Actions.box(np.full(2, -1.0, np.float32), np.full(2, 1.0, np.float32))
GENERATOR = np.random.default_rng(0)
PARAMETERS = GENERATOR.normal(size=(4, NETWORK.parameter_count)).astype(np.float32)
OBSERVATIONS = GENERATOR.normal(size=(4, 3))
STATISTICS = Statistics(np.array([1.0, -2.0, 0.5]), np.array([2.0, 0.5, 1.0]))


@pytest.mark.parametrize("statistics", [None, STATISTICS])
def test_observations_are_normalized_run_through_the_network_and_bounded(statistics: Statistics | None) -> None:
    inputs = OBSERVATIONS if statistics is None else (OBSERVATIONS - statistics.mean) / statistics.stdev
    outputs = np.einsum("nij,nj->ni", PARAMETERS.reshape(4, 2, 3).astype(np.float64), inputs)
    actor = Actor(NETWORK, statistics, BOX)
    actions = actor.act(actor.arrange(PARAMETERS), OBSERVATIONS)
    np.testing.assert_allclose(actions, np.clip(outputs, -1.0, 1.0), rtol=1e-5, atol=1e-6)
    guarded, broken = actor.act_without_nan(actor.arrange(PARAMETERS), OBSERVATIONS)
    assert guarded.tobytes() == actions.tobytes() and broken is None


def test_a_row_with_a_nan_acts_as_if_its_outputs_were_zero_and_is_named() -> None:
    parameters = PARAMETERS.copy()
    parameters[1, 0] = np.nan
    parameters[2] = 0.0
    parameters[2, :3] = np.inf  # its outputs are infinite, not NaN: they are clipped to the bounds
    positive = np.abs(OBSERVATIONS)
    actor = Actor(NETWORK, None, BOX)
    parameters = actor.arrange(parameters)
    assert np.isnan(actor.act(parameters, positive)[1, 0])
    actions, broken = actor.act_without_nan(parameters, positive)
    assert broken is not None and broken.tolist() == [False, True, False, False]
    assert actions[1].tolist() == [0.0, 0.0]
    assert actions[2].tolist() == [1.0, 0.0]
    for row in (0, 3):
        assert actions[row].tobytes() == actor.act(parameters, positive)[row].tobytes()


@pytest.mark.parametrize("statistics", [None, STATISTICS])
def test_the_layout_of_observations_in_memory_changes_no_bit(statistics: Statistics | None) -> None:
    observations = OBSERVATIONS.astype(np.float32)
    strided = np.repeat(observations, 2, axis=1)[:, ::2]
    actor = Actor(NETWORK, statistics, BOX)
    arranged = actor.arrange(PARAMETERS)
    assert actor.act(arranged, strided).tobytes() == actor.act(arranged, observations).tobytes()


def test_a_row_acts_the_same_alone_and_in_a_batch_and_the_callers_arrays_stay() -> None:
    actor = Actor(NETWORK, STATISTICS, Actions.discrete(2, start=5))
    before = PARAMETERS.tobytes(), OBSERVATIONS.tobytes()
    arranged = actor.arrange(PARAMETERS)
    together = actor.act(arranged, OBSERVATIONS)
    alone = [actor.act(arranged[row : row + 1], OBSERVATIONS[row : row + 1])[0] for row in range(4)]
    assert together.tolist() == alone
    assert (PARAMETERS.tobytes(), OBSERVATIONS.tobytes()) == before


class Doubled:
    """A network that clipup does not know: each output is twice an input."""

    observation_size, action_size, parameter_count, state_size = 2, 2, 1, 0

    def describe(self) -> str:
        return "doubled"

    def check(self, parameters: NDArray[np.float32]) -> None:
        pass

    def initial_center(self, seed: int) -> NDArray[np.float32]:
        return np.ones(1, np.float32)

    def arrange(self, parameters: NDArray[np.float32]) -> NDArray[np.float32]:
        return parameters

    def step(
        self, arranged: NDArray[np.float32], state: NDArray[np.float32], inputs: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        return arranged * inputs


def test_a_network_of_another_kind_acts_too() -> None:
    actor = Actor(Doubled(), None, BOX)
    arranged = actor.arrange(np.full((1, 1), 2.0, np.float32))
    assert actor.act(arranged, np.array([[0.25, 3.0]])).tolist() == [[0.5, 1.0]]


def test_machine_code_takes_over_after_some_work_and_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(compiled, "_work_done", {})
    monkeypatch.setattr(compiled, "WORTH_LOADING", 2e6)
    network = Network(40, 30, (50,))
    parameters = GENERATOR.normal(size=(100, network.parameter_count)).astype(np.float32)
    observations = GENERATOR.normal(size=(100, 40))
    forward = Forward(network, None)
    arranged = forward.arrange(parameters)
    outputs = [forward(arranged, observations).tobytes() for _ in range(20)]
    assert forward._call is not None
    assert len(set(outputs)) == 1


def test_a_policy_in_use_by_several_threads_or_pickled_gives_the_same_actions() -> None:
    policy = Policy(Network(3, 2), GENERATOR.normal(size=8).astype(np.float32), STATISTICS, BOX)
    expected = policy(OBSERVATIONS)
    with ThreadPoolExecutor(4) as pool:
        assert all(actions.tobytes() == expected.tobytes() for actions in pool.map(policy, [OBSERVATIONS] * 200))
    assert pickle.loads(pickle.dumps(policy))(OBSERVATIONS).tobytes() == expected.tobytes()
