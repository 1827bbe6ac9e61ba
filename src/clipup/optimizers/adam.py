"""Adam, for gradient ascent (Kingma and Ba, 2015, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from clipup.errors import StateMismatch
from clipup.optimizers import protocol as checks
from clipup.optimizers.protocol import State, StateValue, Vector

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # Kingma and Ba; the paper uses them too


class Adam:
    """Steps scaled, per coordinate, by running averages of the gradient and of its square.

    The recursion, with both averages starting at zero and t counting from 1::

        mean   = beta1 * mean   + (1 - beta1) * g
        square = beta2 * square + (1 - beta2) * g**2
        return step_size * (mean / (1 - beta1**t)) / (sqrt(square / (1 - beta2**t)) + epsilon)

    The defaults are those of Kingma and Ba, which the paper uses too. Deviation: the sign, because we maximize.

    >>> Adam(step_size=0.1).ascent([5.0, -0.001]).round(6)
    array([ 0.1     , -0.099999])
    """

    kind: ClassVar[str] = "adam"

    def __init__(self, step_size: float, beta1: float = BETA1, beta2: float = BETA2, epsilon: float = EPSILON) -> None:
        self.step_size = checks.check_positive("step_size", step_size)
        self.beta1 = checks.check_decay("beta1", beta1)
        self.beta2 = checks.check_decay("beta2", beta2)
        self.epsilon = checks.check_positive("epsilon", epsilon)
        self._steps = 0
        self._mean: Vector | None = None
        self._square: Vector | None = None

    def __repr__(self) -> str:
        return f"Adam(step_size={self.step_size}, beta1={self.beta1}, beta2={self.beta2}, epsilon={self.epsilon})"

    def ascent(self, gradient: ArrayLike) -> Vector:
        """Return the step for this gradient and advance both averages."""
        g = checks.as_gradient(gradient, self._mean)
        mean = np.zeros_like(g) if self._mean is None else self._mean
        square = np.zeros_like(g) if self._square is None else self._square
        steps = self._steps + 1
        with np.errstate(over="ignore"):
            mean = self.beta1 * mean + (1 - self.beta1) * g
            square = self.beta2 * square + (1 - self.beta2) * np.square(g)
            unbiased_mean, unbiased_square = mean / (1 - self.beta1**steps), square / (1 - self.beta2**steps)
            step = self.step_size * unbiased_mean / (np.sqrt(unbiased_square) + self.epsilon)
        checks.check_overflow(self.kind, mean, square, step)
        self._steps, self._mean, self._square = steps, mean, square
        return step

    def state_dict(self) -> State:
        """Return both averages and the number of steps made."""
        mean, square = checks.stored(self._mean), checks.stored(self._square)
        return {"kind": self.kind, "steps": self._steps, "mean": mean, "square": square}

    def load_state_dict(self, state: Mapping[str, StateValue]) -> None:
        """Go on from saved averages."""
        mean, square = checks.load_vector(self.kind, state, "mean"), checks.load_vector(self.kind, state, "square")
        steps = state.get("steps")
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
            raise StateMismatch(f"the adam state needs a count of steps, got {steps!r}")
        if not (steps == 0) == (mean is None) == (square is None):
            raise StateMismatch(f"the adam state must have both averages, or neither before a step, got {steps} steps")
        if mean is not None and square is not None and (mean.shape != square.shape or (square < 0).any()):
            raise StateMismatch("adam's averages must have one size, and that of the square must not be negative")
        self._steps, self._mean, self._square = steps, mean, square
