"""Train on an environment of your own: a class in this file, run by two worker processes.

    python examples/custom_environment.py [--generations 30] [--workers 2]

Needs clipup[train]. Worker processes import this file anew. So the class stands at its top level, and the work is done
under ``if __name__ == "__main__"``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

import clipup

Observation = NDArray[np.float32]


class Docking(gymnasium.Env[Observation, Observation]):
    """A puck on ice: push it to the origin and stop it there.

    Observed: position and velocity in two dimensions. Action: a push in each. Reward: minus the distance, minus a
    little for the push.
    """

    def __init__(self, steps: int = 60) -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.steps = steps

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start at rest, somewhere in the square. All randomness comes from `self.np_random`, which the seed fixes."""
        super().reset(seed=seed)
        self.position = self.np_random.uniform(-1.0, 1.0, 2)
        self.velocity = np.zeros(2)
        self.elapsed = 0
        return self._observe(), {}

    def step(self, action: Observation) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Push for a tenth of a second."""
        self.velocity += 0.1 * np.asarray(action, np.float64)
        self.position += 0.1 * self.velocity
        self.elapsed += 1
        reward = -float(np.linalg.norm(self.position)) - 0.01 * float(np.square(action).sum())
        return self._observe(), reward, False, self.elapsed >= self.steps, {}

    def _observe(self) -> Observation:
        return np.concatenate([self.position, self.velocity]).astype(np.float32)


def main(arguments: Sequence[str] | None = None) -> clipup.TrainingResult:
    """Train a linear policy on the puck."""
    parser = argparse.ArgumentParser(description="Train on an environment of your own.")
    parser.add_argument("--generations", type=int, default=30)
    parser.add_argument("--population", type=int, default=40)
    parser.add_argument("--max-speed", type=float, default=0.2, help="the one number to tune")
    parser.add_argument("--workers", type=int, default=2, help="processes; the result is the same for any number")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    try:
        result = clipup.train(
            Docking,  # a callable that makes the environment
            policy="linear",
            max_speed=options.max_speed,
            population=options.population,
            generations=options.generations,
            workers=options.workers,
            seed=options.seed,
            progress=True,
        )
    except clipup.ClipUpError as error:
        parser.error(str(error))
    first, last = result.records[0], result.records[-1]
    print(f"mean fitness of the population: {first.fitness_mean:.2f} at first, {last.fitness_mean:.2f} at the end")
    print(f"score of the trained policy: {result.score:.4f}")
    print("its weights (push x, push y by position and velocity):")
    print(result.policy.parameters.reshape(2, 4).round(2))
    return result


if __name__ == "__main__":
    main()
