"""A pole to balance whose velocities are hidden: a policy must remember where the pole was to know where it goes.

    python examples/hidden_velocities.py                      (train with a memory and without, about a minute)
    clipup train examples/hidden_velocities.py:CartPole --policy gru:16 --max-speed 0.3 --generations 100
    clipup train examples/hidden_velocities.py:CartPole --policy linear-bias --max-speed 0.3 --generations 100

Needs clipup[train]. The physics is that of Gymnasium's CartPole-v1, and 500 is the best score.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

import clipup
from clipup.policies import Actions

PLACE, SPEED, ANGLE, SPIN = range(4)
GRAVITY, CART, POLE, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02


def reset(random: Any, state: Any, options: Any) -> None:
    """Start near the middle, almost upright and almost at rest."""
    for i in range(4):
        state[i] = random.uniform(-0.05, 0.05)


def step(state: Any, action: int, random: Any, options: Any) -> tuple[float, bool]:
    """Push the cart to the left (0) or to the right (1) for a moment."""
    force = FORCE if action == 1 else -FORCE
    sine, cosine = math.sin(state[ANGLE]), math.cos(state[ANGLE])
    total = CART + POLE
    push = (force + POLE * HALF_LENGTH * state[SPIN] ** 2 * sine) / total
    turn = (GRAVITY * sine - cosine * push) / (HALF_LENGTH * (4.0 / 3.0 - POLE * cosine**2 / total))
    speed_up = push - POLE * HALF_LENGTH * turn * cosine / total
    state[PLACE] += SECONDS * state[SPEED]
    state[SPEED] += SECONDS * speed_up
    state[ANGLE] += SECONDS * state[SPIN]
    state[SPIN] += SECONDS * turn
    return 1.0, abs(state[PLACE]) > 2.4 or abs(state[ANGLE]) > 12.0 * math.pi / 180.0


def observe(state: Any, options: Any, observation: Any) -> None:
    """See the place of the cart and the angle of the pole, and no velocity."""
    observation[0], observation[1] = state[PLACE], state[ANGLE]


CartPole = clipup.ArrayTask(
    state_size=4,
    observation_size=2,
    actions=Actions.discrete(2),
    reset=reset,
    step=step,
    observe=observe,
    max_episode_steps=500,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train a policy that remembers and one that does not, and compare them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generations", type=int, default=100)
    parser.add_argument("--population", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    for policy in ("gru:16", "linear-bias"):
        found = clipup.train(
            CartPole,
            policy=policy,
            max_speed=0.3,
            population=given.population,
            generations=given.generations,
            seed=given.seed,
            evaluation_episodes=64,
        )
        print(f"{policy:12} {found.policy.parameters.size:5} parameters, score {found.score:.1f} of 500")


if __name__ == "__main__":
    main()
