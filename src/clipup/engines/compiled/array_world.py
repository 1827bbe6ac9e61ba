"""An `ArrayTask` as the episode loop sees it: `one` is the state, `other` the memory of the random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clipup.compilation.random import seeded_random
from clipup.engines.compiled.episode import World
from clipup.engines.compiled.task import ArrayTask


def user_functions(task: ArrayTask) -> list[object]:
    """Return the task's functions that are compiled."""
    return [function for function in (task.reset, task.step, task.observe) if function is not None]


def make_world(task: ArrayTask, options_of: Callable[[Any], Any]) -> World:
    """Return the task's two functions for the episode loop."""
    reset, step, observe = task.reset, task.step, task.observe or _observe_state

    def begin(job: Any, slot: int, row: int, episode: int, state: Any, words: Any) -> Any:
        options = options_of(job.options)
        random = seeded_random(words, job.seeds[row, episode])
        for i in range(state.size):
            state[i] = 0.0
        reset(random, state, options)
        observe(state, options, job.observation[slot])
        return random

    def advance(
        job: Any, slot: int, state: Any, random: Any, options: Any, memory: Any, observation: Any, action: Any
    ) -> tuple[float, bool, bool]:
        reward, over = step(state, action, random, options)
        observe(state, options, observation)
        return float(reward), bool(over), True

    return World(begin, advance, options_of, task.actions.kind == "discrete")


def _observe_state(state: Any, options: Any, observation: Any) -> None:
    for i in range(state.size):
        observation[i] = state[i]
