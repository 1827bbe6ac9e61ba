"""Plain and heavy-ball gradient ascent, the baselines that ClipUp builds on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from clipup.errors import StateMismatch
from clipup.optimizers import protocol as checks
from clipup.optimizers.protocol import MOMENTUM, State, StateValue, Vector


class GradientAscent:
    """The plain rule ``return step_size * g``: the scale of the fitness decides how long the step is.

    >>> GradientAscent(step_size=0.5).ascent([2.0, -4.0])
    array([ 1., -2.])
    """

    kind: ClassVar[str] = "ascent"

    def __init__(self, step_size: float) -> None:
        self.step_size = checks.check_positive("step_size", step_size)

    def __repr__(self) -> str:
        return f"GradientAscent(step_size={self.step_size})"

    def ascent(self, gradient: ArrayLike) -> Vector:
        """Return the scaled gradient."""
        with np.errstate(over="ignore"):
            step = self.step_size * checks.as_gradient(gradient, None)
        checks.check_overflow(self.kind, step)
        return step

    def state_dict(self) -> State:
        """Return the kind: nothing else changes from step to step, so there is nothing else to save."""
        return {"kind": self.kind}

    def load_state_dict(self, state: Mapping[str, StateValue]) -> None:
        """Check that the state is of this kind."""
        if not isinstance(state.get("kind"), str) or state.get("kind") != self.kind:
            raise StateMismatch(f"a state of a {self.kind!r} optimizer is needed, got one of {state.get('kind')!r}")


class HeavyBall:
    """Polyak's momentum (1964): ``v = momentum * v + step_size * g; return v``.

    >>> ball = HeavyBall(step_size=1.0, momentum=0.5)
    >>> ball.ascent([4.0]), ball.ascent([0.0])
    (array([4.]), array([2.]))
    """

    kind: ClassVar[str] = "heavy-ball"

    def __init__(self, step_size: float, momentum: float = MOMENTUM) -> None:
        self.step_size = checks.check_positive("step_size", step_size)
        self.momentum = checks.check_decay("momentum", momentum)
        self._velocity: Vector | None = None

    def __repr__(self) -> str:
        return f"HeavyBall(step_size={self.step_size}, momentum={self.momentum})"

    def ascent(self, gradient: ArrayLike) -> Vector:
        """Return the new velocity."""
        with np.errstate(over="ignore", invalid="ignore"):
            velocity = self.step_size * checks.as_gradient(gradient, self._velocity)
            if self._velocity is not None:
                velocity += self.momentum * self._velocity
        checks.check_overflow(self.kind, velocity)
        self._velocity = velocity
        return velocity.copy()

    def state_dict(self) -> State:
        """Return the velocity (empty before the first step)."""
        return {"kind": self.kind, "velocity": checks.stored(self._velocity)}

    def load_state_dict(self, state: Mapping[str, StateValue]) -> None:
        """Go on from a saved velocity."""
        self._velocity = checks.load_vector(self.kind, state, "velocity")
