"""Environments that are odd before any training: endless ones, and ones that do not follow their seed."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np


class OddStarts(gymnasium.Env[Any, Any]):
    """The observation is where it started plus the actions so far; `length` 0 never ends."""

    def __init__(self, start: str = "seeded", length: int = 0, render_mode: str | None = None) -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        self.start, self.length = start, length

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[Any, dict[str, object]]:
        super().reset(seed=seed)
        self.steps = 0
        generator = np.random.default_rng() if self.start == "ignored" else self.np_random
        self.place = 0.5 if self.start == "same" else float(generator.uniform())
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, object]]:
        self.steps += 1
        self.place += 0.1 * float(action[0])
        return self._observe(), -abs(self.place), self.steps == self.length, False, {}

    def _observe(self) -> np.ndarray:
        return np.array([self.place, 1.0], np.float32)


gymnasium.register("OddStarts-v0", entry_point="odd_starts:OddStarts")
gymnasium.register("OddStarts-v1", entry_point="odd_starts:OddStarts", max_episode_steps=9)


class Warns(OddStarts):
    """Warns at every reset, in colour and over two lines."""

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[Any, dict[str, object]]:
        warnings.warn("\x1b[33mthe joint\nis worn out\x1b[0m", stacklevel=1)
        return super().reset(seed=seed)


gymnasium.register("Warning-v0", entry_point="odd_starts:Warns", max_episode_steps=4)


class Drawn(OddStarts):
    """Draws badly."""

    def __init__(self, draws: str = "", render_mode: str | None = None) -> None:
        super().__init__(length=4)
        self.draws, self.render_mode = draws, render_mode

    def render(self) -> Any:
        if self.draws == "raises":
            raise RuntimeError("no screen\nat all")
        if self.draws == "missing":
            return super().render()
        return np.zeros((4, 4)) if self.draws == "grey" else None


class Unseen(OddStarts):
    """Does not know what rendering is."""

    def __init__(self) -> None:
        super().__init__(length=4)


class Plain(gymnasium.Env[Any, Any]):
    """Takes no argument at all, because it has no `__init__`."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[Any, dict[str, object]]:
        super().reset(seed=seed)
        return self.np_random.uniform(size=1).astype(np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, object]]:
        return np.zeros(1, np.float32), 0.0, True, False, {}


gymnasium.register("Plain-v0", entry_point="odd_starts:Plain")
gymnasium.register("Drawn-v0", entry_point="odd_starts:Drawn")
gymnasium.register("Unseen-v0", entry_point="odd_starts:Unseen")
