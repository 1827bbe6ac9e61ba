"""One policy alone does what it did within the population."""

import numpy as np
import pytest

from clipup.errors import InvalidArgument
from clipup.policies import Actions, Network, Policy, Statistics

BOX = Actions.box(-np.ones(2), np.ones(2))


def test_a_policy_acts_as_its_candidate_did_to_the_bit() -> None:
    network = Network(5, 2, (8,))
    generator = np.random.default_rng(0)
    parameters = generator.standard_normal((20, network.parameter_count)).astype(np.float32)
    observations = generator.standard_normal((20, 5))
    statistics = Statistics(generator.normal(size=5), generator.uniform(0.5, 2.0, 5))
    together = BOX.apply(network.forward(parameters, statistics.normalize(observations)))
    for row in (0, 7, 19):
        policy = Policy(network, parameters[row], statistics, BOX)
        assert policy(observations[row]).tobytes() == together[row].tobytes()


def test_a_batch_of_observations_gives_a_batch_of_actions() -> None:
    policy = Policy(Network(3, 2), np.arange(8), None, BOX)
    observations = np.random.default_rng(0).normal(size=(4, 3))
    assert policy(observations).shape == (4, 2)
    assert policy(observations)[2].tobytes() == policy(observations[2]).tobytes()


def test_a_discrete_policy_gives_one_integer() -> None:
    policy = Policy(Network(2, 3, bias=False), np.array([1, 0, 0, 1, -1, -1]), None, Actions.discrete(3))
    assert int(policy([0.1, 0.9])) == 1


def test_parts_that_do_not_fit_are_refused() -> None:
    network = Network(3, 2)
    for parameters, statistics, actions in [
        (np.zeros(7), None, BOX),
        (np.zeros(8), None, Actions.discrete(3)),
        (np.zeros(8), Statistics(np.zeros(2), np.ones(2)), BOX),
    ]:
        with pytest.raises(InvalidArgument):
            Policy(network, parameters, statistics, actions)
    with pytest.raises(InvalidArgument, match="3 numbers"):
        Policy(network, np.zeros(8), None, BOX)(np.zeros(4))


def test_the_callers_array_is_copied() -> None:
    parameters = np.zeros(8, np.float32)
    policy = Policy(Network(3, 2), parameters, None, BOX)
    parameters[:] = 1.0
    assert not policy.parameters.any()
