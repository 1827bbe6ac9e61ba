"""Policies that users may bring: compiled, plain Python, and wrong on purpose."""

from __future__ import annotations

import math
import random

import numpy as np


class Leaky:
    """Compiled: a linear policy that sees a leaky sum of what it observed."""

    def __init__(self, observation_size, action_size, keep=0.5):
        self.parameter_count = observation_size * action_size
        self.state_size = observation_size

        def act(parameters, state, observation, action):
            for i in range(observation.size):
                state[i] = np.float32(keep) * state[i] + observation[i]
            for j in range(action.size):
                for i in range(observation.size):
                    action[j] += parameters[j * observation.size + i] * state[i]

        self.act = act


class Sines:
    """Compiled, without a memory: its sines come from Python's math."""

    def __init__(self, observation_size, action_size):
        self.parameter_count = observation_size + action_size

    @staticmethod
    def act(parameters, state, observation, action):
        total = 0.0
        for i in range(observation.size):
            total += math.sin(parameters[i] * observation[i])
        for j in range(action.size):
            action[j] = total + parameters[observation.size + j]


class PlainLeaky:
    """Ordinary Python, with a memory."""

    def __init__(self, observation_size, action_size):
        self.shape = (action_size, observation_size)
        self.parameter_count = observation_size * action_size
        self.state_size = observation_size

    def __call__(self, parameters, state, observation):
        state = np.float32(0.5) * state + observation
        return np.add.accumulate(parameters.reshape(self.shape) * state, axis=1)[:, -1], state


class PlainLinear:
    """Ordinary Python, without a memory, and a start of its own."""

    def __init__(self, observation_size, action_size, scale=1.0):
        self.shape, self.scale = (action_size, observation_size), scale
        self.parameter_count = observation_size * action_size

    def initial_center(self, seed):
        return np.full(self.parameter_count, 0.25)

    def __call__(self, parameters, observation):
        return self.scale * np.add.accumulate(parameters.reshape(self.shape) * observation, axis=1)[:, -1]


# -- wrong in some way ----------------------------------------------------------------------------------------------


class NoCount:
    def __call__(self, parameters, observation):
        return observation


class Nothing:
    parameter_count = 2


class WithSelf:
    parameter_count = 2

    def act(self, parameters, state, observation, action):
        action[0] = parameters[0]


class WrongSize(NoCount):
    parameter_count = 3

    def __call__(self, parameters, observation):
        return parameters


class Dice(NoCount):
    parameter_count = 1

    def __call__(self, parameters, observation):
        return np.random.default_rng().normal(size=2)


class RareDice(NoCount):
    parameter_count = 1

    def __call__(self, parameters, observation):
        return np.ones(2) if random.random() < 1e-12 else np.zeros(2)


class RareNumpyDice:
    parameter_count = 1

    @staticmethod
    def act(parameters, state, observation, action):
        if np.random.random() < 1e-12:  # noqa: NPY002
            action[0] = 1.0


class Vandal:
    parameter_count = 2

    @staticmethod
    def act(parameters, state, observation, action):
        parameters[0] = 0.0


class TooFar:
    parameter_count = 2

    @staticmethod
    def act(parameters, state, observation, action):
        action[0] = parameters[5]


class Uncompilable:
    parameter_count = 2

    @staticmethod
    def act(parameters, state, observation, action):
        action[0] = {"a": [parameters]}["a"][0][0] + len(open.__name__)


class Sometimes:
    """Raises an exception where the first parameter is large, which the search reaches sooner or later."""

    parameter_count = 2

    @staticmethod
    def act(parameters, state, observation, action):
        if parameters[0] > 2.5:
            raise ValueError("too large")
        action[0] = parameters[1]


not_a_policy = 3
