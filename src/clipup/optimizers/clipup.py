"""ClipUp: momentum, gradient normalization, update clipping (the paper's Algorithm 2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from clipup.errors import InvalidArgument, StateMismatch
from clipup.optimizers import protocol as checks
from clipup.optimizers.protocol import MOMENTUM, State, StateValue, Vector

STEP_RATIO = 0.5
"""The default step size over `max_speed`: the paper's rule (its section on hyperparameter tuning)."""

_SHORTEST = float(np.finfo(np.float32).tiny)  # a shorter step would move no float32 center


class ClipUp:
    r"""Heavy ball momentum over normalized gradients, with the velocity clipped to a maximum norm.

    The recursion, with :math:`v_0 = 0`::

        v' = m * v + a * g / |g|            Algorithm 2, line 1
        v  = v' * min(1, v_max / |v'|)      lines 2 to 6
        return v                            line 7

    ========  ==============  ====================================================================
    symbol    argument        meaning
    ========  ==============  ====================================================================
    a         ``step_size``   length of the pull of each gradient: the gradient's own length plays no part
    v_max     ``max_speed``   longest possible step; ``None`` for the NoClip ablation
    m         ``momentum``    share of the velocity that survives a generation
    ========  ==============  ====================================================================

    All lengths are in the space of the solution. None of them depends on the scale of the fitness.

    Deviations from the paper: a zero gradient has no direction, so it does not pull and the velocity only decays. The
    printed formula would divide by zero.

    >>> optimizer = ClipUp(step_size=0.5, max_speed=0.6)
    >>> optimizer.ascent([30.0, 40.0])
    array([0.3, 0.4])
    >>> optimizer.ascent([0.003, 0.004]), optimizer.clipped
    (array([0.36, 0.48]), True)
    """

    kind: ClassVar[str] = "clipup"

    def __init__(self, step_size: float, max_speed: float | None, momentum: float = MOMENTUM) -> None:
        self.step_size = checks.check_positive("step_size", step_size)
        self.max_speed = None if max_speed is None else checks.check_positive("max_speed", max_speed)
        if self.max_speed is not None and self.max_speed < _SHORTEST:
            raise InvalidArgument(f"max_speed must be at least {_SHORTEST}, the smallest float32, got {max_speed!r}")
        self.momentum = checks.check_decay("momentum", momentum)
        self.clipped = False
        self._velocity: Vector | None = None

    def __repr__(self) -> str:
        return f"ClipUp(step_size={self.step_size}, max_speed={self.max_speed}, momentum={self.momentum})"

    def ascent(self, gradient: ArrayLike) -> Vector:
        """Return the step for this gradient and advance the velocity."""
        g = checks.as_gradient(gradient, self._velocity)
        with np.errstate(over="ignore", invalid="ignore"):
            velocity = np.zeros_like(g) if self._velocity is None else self.momentum * self._velocity
            # Divided by the largest entry first, so that no square under- or overflows at extreme fitness scales.
            largest = float(np.abs(g).max(initial=0.0))
            if largest > 0:
                pull = g / largest
                velocity += pull * (self.step_size / checks.norm(pull))
        checks.check_overflow(self.kind, velocity)
        speed = checks.norm(velocity)
        clipped = self.max_speed is not None and speed > self.max_speed
        if self.max_speed is not None and clipped:
            velocity = _shortened(velocity, speed, self.max_speed)
        self._velocity, self.clipped = velocity, clipped
        return velocity.copy()

    def state_dict(self) -> State:
        """Return the velocity (empty before the first step)."""
        return {"kind": self.kind, "velocity": checks.stored(self._velocity), "clipped": int(self.clipped)}

    def load_state_dict(self, state: Mapping[str, StateValue]) -> None:
        """Go on from a saved velocity."""
        velocity, clipped = checks.load_vector(self.kind, state, "velocity"), state.get("clipped")
        if not isinstance(clipped, int):
            raise StateMismatch(f"the {self.kind} state needs 'clipped' as 0 or 1, got {clipped!r}")
        self._velocity, self.clipped = velocity, bool(clipped)


def _shortened(velocity: Vector, speed: float, max_speed: float) -> Vector:
    """Return the velocity with norm `max_speed`; rounding may leave it one bit below, never above."""
    ratio = max_speed / speed
    while checks.norm(shorter := velocity * ratio) > max_speed:
        ratio = math.nextafter(ratio, 0.0)
    return shorter
