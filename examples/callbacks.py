"""Your own code after each generation: add figures to the records, or stop. A new run then goes on from the policy.

    python examples/callbacks.py [--generations 30]

Needs clipup[train]. It takes a few seconds.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import clipup
from clipup.training.callbacks import Progress


def weight_norm(progress: Progress) -> dict[str, float]:
    """Add a number to the record of each generation: how large the weights are."""
    return {"weight_norm": float(np.linalg.norm(progress.policy.parameters))}


def good_enough(progress: Progress) -> bool:
    """Stop after the first evaluation with a mean of at least -100."""
    return progress.record.score is not None and progress.record.score >= -100


def main(arguments: Sequence[str] | None = None) -> clipup.TrainingResult:
    """Train on Acrobot with both callbacks; then start a new run, with smaller steps, from what was found."""
    parser = argparse.ArgumentParser(description="Train with callbacks, then go on with other settings.")
    parser.add_argument("--generations", type=int, default=30)
    parser.add_argument("--population", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    size = {"population": options.population, "generations": options.generations, "seed": options.seed}
    try:
        first = clipup.train("Acrobot-v1", policy="mlp:8", max_speed=0.5, callbacks=[weight_norm, good_enough], **size)
        first.save("first.safetensors")
        second = clipup.train("Acrobot-v1", policy="mlp:8", max_speed=0.1, init="first.safetensors", **size)
    except clipup.ClipUpError as error:
        parser.error(str(error))
    norms = [record.figures["weight_norm"] for record in first.records]
    print(f"first: score {first.score:.1f}, {first.reason}; weights grew from {norms[0]:.2f} to {norms[-1]:.2f}")
    print(f"second, from there: score {second.score:.1f} after {second.generation} more generations")
    return second


if __name__ == "__main__":
    main()
