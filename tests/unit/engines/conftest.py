"""Environments that misbehave, each in its own way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest


class Line(gymnasium.Env[np.ndarray, np.ndarray]):
    """A point on a line: it starts at random, moves by the action, and is rewarded by its position."""

    def __init__(self, length: int = 20, behaviour: str = "good") -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.length, self.behaviour = length, behaviour
        self.carried = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=None if self.behaviour == "ignores its seed" else seed)
        self.position = float(self.np_random.normal())
        self.steps = 0
        if self.behaviour == "never resets":
            self.position += self.carried
        return self.observe() if self.behaviour == "old reset" else (self.observe(), {})

    def observe(self) -> Any:
        if self.behaviour == "wrong shape" and self.steps:
            return np.zeros(3)
        if self.behaviour == "huge":
            return np.full(2, 3e38, np.float32)
        return np.array([self.position, self.steps / self.length])

    def step(self, action: np.ndarray) -> Any:
        self.steps += 1
        if self.behaviour == "carries speed":
            self.position += self.carried
        self.position += float(action[0])
        self.carried += 0.5
        drifting = self.position > 3.0
        if self.behaviour == "raises at once":
            raise RuntimeError("never starts")
        if self.behaviour == "raises" and drifting:
            raise RuntimeError("the point\nfell off")
        reward = np.nan if self.behaviour == "nan reward" and drifting else self.position
        observation = self.observe()
        if self.behaviour == "nan observation" and drifting:
            observation[0] = np.nan
        self.rewards = [10.0, self.position - 10.0]
        if self.behaviour == "four values":
            return observation, reward, False, {}
        if self.behaviour == "hidden noise":
            observation[0] += np.random.default_rng().normal()
        ended = self.steps >= self.length and self.behaviour != "never ends"
        return observation, reward, ended, False, {}


@pytest.fixture
def line() -> Callable[..., gymnasium.Env[np.ndarray, np.ndarray]]:
    """The maker of `Line` environments."""
    return Line
