"""The proof that the EnvPool engine may reuse the lanes of a whole family of tasks.

An environment of that family draws random numbers when it is reset, and never while it steps: so episode k of a seed is
the same whatever was done in the episodes before it, and however long they were.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clipup.engines import Task
from clipup.engines.envpool.pool import REPLAYABLE_FAMILY, Pool, pool_layout, registered

FAMILY = sorted(name for name, (path, *_) in registered().items() if path == REPLAYABLE_FAMILY)
QUICK = ["Ant-v5", "HalfCheetah-v4", "Humanoid-v4", "Reacher-v4", "Walker2d-v4"]
SEEDS = [3, 4]


class Probe:
    """Two environments of a task, always stepped together."""

    def __init__(self, name: str) -> None:
        self.layout = pool_layout(Task(name, engine="envpool", max_episode_steps=1000))
        self.pool = Pool(self.layout, np.arange(2), SEEDS, 2)
        self.slots = np.arange(2, dtype=np.int32)

    def episode(self, steps: int, actions_seed: int) -> list[Any]:
        """Reset, take random actions, and return every observation and reward."""
        self.pool.reset(self.slots)
        generator = np.random.default_rng(actions_seed)
        low, high = np.array(self.layout.actions.low), np.array(self.layout.actions.high)
        trace = [self.layout.observed(self.pool.receive()).copy()]
        for _ in range(steps):
            actions = generator.uniform(low, high, (2, len(low))).astype(self.layout.actions.dtype)
            self.pool.send(self.slots, actions)
            states = self.pool.receive()
            trace += [self.layout.observed(states).copy(), states[self.layout.reward_index].copy()]
            if states[self.layout.done_index].any():
                break
        return [values.tobytes() for values in trace]


def prove(name: str) -> None:
    busy, idle = Probe(name), Probe(name)
    starts = []
    for episode in range(3):
        busy.episode(steps=17 * episode + 3, actions_seed=episode)
        idle.episode(steps=0, actions_seed=0)
        # Not the start alone: the whole episode, so nothing hidden is carried over either.
        after_steps, after_nothing = busy.episode(25, actions_seed=99), idle.episode(25, actions_seed=99)
        assert after_steps == after_nothing
        starts.append(after_steps[0])
    assert len(set(starts)) == 3, "every reset starts elsewhere"
    busy.pool.close()
    idle.pool.close()


@pytest.mark.parametrize("name", QUICK)
def test_an_episode_does_not_depend_on_the_steps_before_its_reset(name: str) -> None:
    prove(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILY)
def test_the_whole_family_is_replayable(name: str) -> None:
    prove(name)


def test_the_family_is_the_one_that_was_proved() -> None:
    assert len(FAMILY) == 33
    assert set(QUICK) <= set(FAMILY)
    assert not pool_layout(Task("LunarLanderContinuous-v3")).replayable
