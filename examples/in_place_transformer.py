"""Train a small transformer without backpropagation and without a second copy of its weights.

    python examples/in_place_transformer.py [--generations 150]

The task: at each place of a random sequence, say the token of the place before. Guessing gives a loss of log(8) = 2.08.
Candidates are made in the weights themselves and taken back exactly. Needs numpy alone.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

import clipup

TOKENS, LENGTH, WIDTH = 8, 8, 16
Array = NDArray[np.float32]


def make_weights(seed: int) -> dict[str, Array]:
    """Return the weights of one layer of attention and a perceptron."""
    random = np.random.default_rng(seed)
    shapes = {
        "tokens": (TOKENS, WIDTH),
        "places": (LENGTH, WIDTH),
        "queries": (WIDTH, WIDTH),
        "keys": (WIDTH, WIDTH),
        "values": (WIDTH, WIDTH),
        "hidden": (WIDTH, 2 * WIDTH),
        "mixed": (2 * WIDTH, WIDTH),
        "output": (WIDTH, TOKENS),
    }
    return {name: random.normal(0, shape[0] ** -0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def loss(weights: dict[str, Array], sequences: NDArray[np.int64]) -> float:
    """Return the cross-entropy of the token before each place, over all places but the first."""
    x = weights["tokens"][sequences] + weights["places"]
    scores = (x @ weights["queries"]) @ (x @ weights["keys"]).transpose(0, 2, 1) / np.sqrt(WIDTH)
    scores = np.where(np.tri(LENGTH, dtype=bool), scores, -1e9)
    attention = np.exp(scores - scores.max(axis=2, keepdims=True))
    attention /= attention.sum(axis=2, keepdims=True)
    x = x + attention @ (x @ weights["values"])
    x = x + np.maximum(x @ weights["hidden"], 0) @ weights["mixed"]
    logits = (x @ weights["output"])[:, 1:].astype(np.float64)
    logits -= logits.max(axis=2, keepdims=True)
    chosen = np.take_along_axis(logits, sequences[:, :-1, np.newaxis], axis=2)[..., 0]
    return float((np.log(np.exp(logits).sum(axis=2)) - chosen).mean())


def main() -> None:
    """Train, and print the loss on sequences that were never trained on."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--generations", type=int, default=150)
    parser.add_argument("--population", type=int, default=64)
    parser.add_argument("--max-speed", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    weights = make_weights(arguments.seed)
    random = np.random.default_rng(arguments.seed)
    unseen = random.integers(TOKENS, size=(256, LENGTH))
    search = clipup.InPlaceES(
        list(weights.values()), stdev=0.05, max_speed=arguments.max_speed, population_size=arguments.population,
        momentum=0.9, seed=arguments.seed,
    )  # fmt: skip
    print(f"{search.dimension} parameters, loss {loss(weights, unseen):.3f}")
    for generation in range(1, arguments.generations + 1):
        sequences = random.integers(TOKENS, size=(32, LENGTH))  # the same for all candidates of a generation
        fitnesses: list[float] = []
        for candidate in search.ask():
            with search.applied(candidate):
                fitnesses.append(-loss(weights, sequences))
        search.tell(fitnesses)
        if generation % 25 == 0 or generation == arguments.generations:
            print(f"generation {generation}: loss {loss(weights, unseen):.3f}")


if __name__ == "__main__":
    main()
