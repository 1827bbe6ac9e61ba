"""A task that needs a memory: a policy with one solves it, and no policy without one can."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clipup
from clipup.policies import Actions

pytest.importorskip("numba")
DELAY = 5


def reset(random: Any, state: Any, options: Any) -> None:
    state[0] = 1.0 if random.uniform(0.0, 1.0) < 0.5 else -1.0  # the cue
    state[1] = 0.0  # the step


def step(state: Any, action: Any, random: Any, options: Any) -> tuple[float, bool]:
    """Pay at the end only: the action should then be the cue of the beginning."""
    state[1] += 1.0
    if state[1] <= DELAY:
        return 0.0, False
    missed = float(action[0]) - state[0]
    return -missed * missed, True


def observe(state: Any, options: Any, observation: Any) -> None:
    observation[0] = state[0] if state[1] == 0.0 else 0.0
    observation[1] = 1.0 if state[1] == DELAY else 0.0


RECALL = clipup.ArrayTask(
    state_size=2, observation_size=2, reset=reset, step=step, observe=observe, max_episode_steps=DELAY + 1,
    actions=Actions.box(np.full(1, -2.0, np.float32), np.full(1, 2.0, np.float32)), name="recall",
)  # fmt: skip


def trained(policy: str) -> float:
    found = clipup.train(
        RECALL, policy=policy, generations=150, population=200, max_speed=0.3, episodes=8, normalize=False, seed=1,
        evaluate_every=0, evaluation_episodes=256, workers=2,
    )  # fmt: skip
    assert found.score is not None
    return found.score


def test_without_a_memory_nothing_is_better_than_to_bet_on_neither() -> None:
    """What a memoryless policy sees at the end is always the same, so its mean square error is at least 1."""
    for policy in ("linear-bias", "mlp:16"):
        assert trained(policy) < -0.9


@pytest.mark.parametrize("policy", ["rnn:8", "gru:8", "lstm:8"])
def test_with_a_memory_the_cue_is_recalled(policy: str) -> None:
    assert trained(policy) > -0.1
