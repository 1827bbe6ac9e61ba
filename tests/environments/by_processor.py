"""An environment and a policy whose numbers depend on the processor, as those of linear algebra and sines may."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

SIZE = 257


class ByProcessor(gymnasium.Env[Any, Any]):
    """Observes sums of products in float32 (`how="blas"`) or of exponentials (`how="numpy"`), all of them rounded."""

    def __init__(self, how: str = "blas", render_mode: str | None = None) -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        self.how = how

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[Any, dict[str, object]]:
        super().reset(seed=seed)
        self.values = self.np_random.standard_normal((2, SIZE), dtype=np.float32)
        self.steps = 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, object]]:
        self.steps += 1
        self.values[0] += np.float32(0.01) * float(action[0])
        observation = self._observe()
        return observation, float(observation[0]), self.steps == 5, False, {}

    def _observe(self) -> np.ndarray:
        if self.how == "blas":
            return np.array([self.values[0] @ self.values[1], 1.0], np.float32)
        bits = np.exp(self.values.astype(np.float64)).ravel().view(np.int64)
        return np.array([np.bitwise_xor.reduce(bits) % 1000, 1.0], np.float32)


class Products:
    """A policy of one's own: its action is a sum of products of its parameters in float32, by BLAS."""

    def __init__(self, observation_size: int, action_size: int) -> None:
        self.parameter_count = 2 * SIZE
        self.action_size = action_size

    def __call__(self, parameters: np.ndarray, observation: np.ndarray) -> np.ndarray:
        return np.full(self.action_size, parameters[:SIZE] @ parameters[SIZE:], np.float32)


gymnasium.register("ByProcessor-v0", entry_point="by_processor:ByProcessor", max_episode_steps=9)
