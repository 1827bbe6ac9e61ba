"""Tasks check their fields when made."""

import numpy as np
import pytest

from clipup.engines import Task
from clipup.errors import InvalidArgument


@pytest.mark.parametrize(
    "fields",
    [
        {"env": ""},
        {"env": 3},
        {"env_options": [1]},
        {"reward_offset": float("nan")},
        {"reward_cap": float("inf")},
        {"reward_cap": "1"},
        {"reward_terms": ()},
        {"reward_terms": (-1,)},
        {"max_episode_steps": 0},
        {"episodes": 0},
        {"episodes": 2.5},
        {"episodes": "3"},
        {"reward_offset": "x"},
        {"reward_terms": 3},
        {"max_episode_steps": True},
        {"engine": 3},
        {"episode_seeds": "none"},
    ],
)
def test_a_field_that_breaks_a_rule_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        Task(**{"env": "CartPole-v1", **fields})  # type: ignore[arg-type]


def test_evaluation_takes_the_environments_own_reward_and_length() -> None:
    task = Task(
        "X-v0",
        {"gravity": 3},
        reward_offset=-1.0,
        reward_terms=(1, 2),
        reward_cap=1.0,
        max_episode_steps=200,
        episodes=4,
        engine="gymnasium",
        episode_seeds="shared",
        rescale_actions=True,
    )
    own = Task("X-v0", {"gravity": 3}, engine="gymnasium", rescale_actions=True, fallback_steps=200)
    assert task.for_evaluation() == own


def test_a_cap_makes_a_long_slow_walk_worth_more_than_a_fast_fall() -> None:
    rewards, steps = np.array([200.0, 150.0, 40.0]), np.array([100, 150, 50])
    assert Task("X-v0").fitness(rewards, steps).tolist() == [200.0, 150.0, 40.0]
    assert Task("X-v0", reward_cap=1.0).fitness(rewards, steps).tolist() == [100.0, 150.0, 40.0]
    offset = Task("X-v0", reward_offset=0.5, reward_cap=1.0, episodes=2)  # the cap is that of what training counts
    assert offset.fitness(rewards, steps).tolist() == [50.0, 75.0, 25.0]


def test_the_callers_options_are_copied() -> None:
    options: dict[str, object] = {"gravity": 3}
    task = Task("X-v0", options)
    options["gravity"] = 4
    assert task.env_options == {"gravity": 3}
