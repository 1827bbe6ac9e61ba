"""Train with a memory and without one where velocities are hidden, and compare.

    python examples/hidden_velocities.py                      (about a minute)
    clipup train examples/hidden_velocities.py:CartPole --policy gru:16 --max-speed 0.3 --generations 100
    clipup train examples/hidden_velocities.py:CartPole --policy linear-bias --max-speed 0.3 --generations 100
    clipup train examples/hidden_velocities.py:DoublePendulum --policy gru:8 --max-speed 0.15 --population 200

Needs clipup[train]. The tasks are in src/clipup/zoo/tasks/hidden_velocities.py. docs/policies.md has scores of trained
policies.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import clipup
from clipup.zoo.tasks.hidden_velocities import CartPole, DoublePendulum, Hopper, Walker2d

__all__ = ["CartPole", "DoublePendulum", "Hopper", "Walker2d"]


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
