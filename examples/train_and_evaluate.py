"""Train a policy, evaluate it, and run it in a plain Gymnasium loop.

    python examples/train_and_evaluate.py [--env CartPole-v1] [--generations 20] [--run runs/example]

Needs clipup[train]. CartPole takes a few seconds.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import gymnasium

import clipup
from clipup.engines import Task
from clipup.policies import Policy


def run_episode(policy: Policy, env: str, seed: int) -> float:
    """Run one episode as any user of Gymnasium would: a policy is a callable from an observation to an action."""
    environment = gymnasium.make(env)
    observation, _ = environment.reset(seed=seed)
    total, done = 0.0, False
    while not done:
        observation, reward, terminated, truncated, _ = environment.step(policy(observation))
        total += float(reward)
        done = terminated or truncated
    environment.close()
    return total


def main(arguments: Sequence[str] | None = None) -> float:
    """Train, evaluate and run; return the mean of the evaluation."""
    parser = argparse.ArgumentParser(description="Train a policy and evaluate it.")
    parser.add_argument("--env", default="CartPole-v1", help="id of a Gymnasium environment")
    parser.add_argument("--generations", type=int, default=20)
    parser.add_argument("--population", type=int, default=40)
    parser.add_argument("--max-speed", type=float, default=0.1, help="the one number to tune")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--run", type=Path, default=Path("runs/example"), help="a new directory for the run")
    options = parser.parse_args(arguments)

    try:
        result = clipup.train(
            options.env,
            max_speed=options.max_speed,
            population=options.population,
            generations=options.generations,
            seed=options.seed,
            run=options.run,
            progress=True,
        )
    except clipup.ClipUpError as error:
        parser.error(str(error))
    print(f"trained for {result.generation} generations and {result.total_interactions} environment steps")

    policy = clipup.load_policy(options.run)  # from its files, with numpy alone
    summary = clipup.evaluate(policy, Task(options.env), episodes=16, seed=options.seed).summary
    print(f"16 new episodes: mean {summary.mean:.1f}, worst {summary.min:.1f}, best {summary.max:.1f}")
    print(f"one more, in a plain loop: {run_episode(policy, options.env, options.seed):.1f}")
    return summary.mean


if __name__ == "__main__":
    main()
