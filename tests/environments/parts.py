"""An environment whose observations and actions have parts, a wrapper, and functions that make environments."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple


class Parts(gymnasium.Env[Any, Any]):
    """A place on a line, told in many parts; the reward is how near the place is to 0."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.observation_space = Dict(
            {
                "side": Discrete(2, start=-1),
                "place": Box(-np.inf, np.inf, (1, 1), np.float64),
                "more": Tuple([MultiBinary(2), MultiDiscrete([2, 3])]),
            }
        )
        self.action_space = Dict(
            {"push": Box(-1, 1, (1,), np.float32), "way": Tuple([Discrete(3, start=-1), MultiBinary(1)])}
        )

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[Any, dict[str, object]]:
        super().reset(seed=seed)
        self.place = float(self.np_random.uniform(-1, 1))
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, object]]:
        assert self.action_space.contains(action)
        self.place += 0.1 * float(action["push"][0]) + 0.05 * action["way"][0]
        return self._observe(), -abs(self.place) - 0.01 * float(action["way"][1][0]), False, False, {}

    def render(self) -> np.ndarray:
        return np.zeros((16, 16, 3), np.uint8)

    def _observe(self) -> dict[str, Any]:
        side = -1 if self.place < 0 else 0
        level = min(2, int(abs(self.place)))
        more = (np.array([self.place > 1, self.place < -1], np.int8), np.array([side + 1, level]))
        return {"place": np.array([[self.place]]), "side": side, "more": more}


gymnasium.register("Parts-v0", entry_point="parts:Parts", max_episode_steps=12)


class Double(gymnasium.RewardWrapper[Any, Any]):
    """Multiplies the reward."""

    def __init__(self, env: Any, by: float = 2.0, note: str = "") -> None:
        super().__init__(env)
        self.by = by

    def reward(self, reward: Any) -> float:
        return self.by * float(reward)


def make_parts(render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
    return gymnasium.wrappers.TimeLimit(Parts(render_mode), 12)


def not_a_wrapper(env: object) -> int:
    return 3
