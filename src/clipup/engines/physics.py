"""Cheaper physics to train on: MuJoCo's own options, as text like ``integrator=Euler, iterations=10``.

An evaluation always runs the model as it is. So the score of a policy says what it does in the real task, whatever it
was trained on (docs/faster.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TypeVar

from clipup.errors import InvalidArgument
from clipup.suggestions import did_you_mean

T = TypeVar("T")

INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast")
SOLVERS = ("PGS", "CG", "Newton")
SWITCH = ("enable", "disable")
WITHOUT_PHYSICS = "the compiled engine can, on MuJoCo tasks; or train without it (--physics none)"
"""How a refusal of an engine ends."""
_LONGEST = 1.0
"""Longest time step, in seconds."""
_MOST = 1000
"""How many time steps a step of a task may have."""


@dataclass(frozen=True)
class TrainingPhysics:
    """What training changes in a MuJoCo model. None leaves an option as it is.

    Parameters
    ----------
    integrator
        How motion follows from forces. ``"RK4"`` computes the forces four times in a time step, the others once.
    solver, iterations
        How contact forces are found, and in how many iterations at most.
    timestep
        Seconds of a time step. A step of the task takes as long as before: it has fewer or more time steps.
    eulerdamp
        ``"disable"``: Euler's method computes the damping of joints from the velocities before the time step, as RK4
        does. ``"enable"``: from those after it, which holds joints back more.
    """

    integrator: str | None = None
    solver: str | None = None
    iterations: int | None = None
    timestep: float | None = None
    eulerdamp: str | None = None

    def __post_init__(self) -> None:
        _check_word("integrator", self.integrator, INTEGRATORS)
        _check_word("solver", self.solver, SOLVERS)
        _check_word("eulerdamp", self.eulerdamp, SWITCH)
        if self.iterations is not None and not 1 <= self.iterations <= 10_000:
            raise InvalidArgument(f"physics: iterations must be from 1 to 10000, got {self.iterations}")
        if self.timestep is not None and not 0 < self.timestep <= _LONGEST:
            raise InvalidArgument(f"physics: timestep must be above 0 and at most {_LONGEST:g}, got {self.timestep:g}")

    def __str__(self) -> str:
        given = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return ", ".join(f"{name}={value}" for name, value in given.items() if value is not None)

    def time_steps(self, own: int, seconds: float) -> int:
        """Return how many time steps a step of the task has. It takes `seconds`, and had `own` time steps.

        Raise `InvalidArgument` where that is no whole number, or so many that a step would take for ever.
        """
        if self.timestep is None:
            return own
        count = max(1, round(seconds / self.timestep))
        if not math.isclose(count * self.timestep, seconds, rel_tol=1e-6):
            raise InvalidArgument(
                f"physics: timestep must divide the {seconds:g} seconds of a step, like {seconds / count:.6g} "
                f"({count} time steps), got {self.timestep:g}"
            )
        if count > _MOST:
            raise InvalidArgument(f"physics: timestep must be at least {seconds / _MOST:.6g}, got {self.timestep:g}")
        return count


def parse_physics(text: str | None) -> TrainingPhysics | None:
    """Return what `text` asks for; None where nothing is changed.

    >>> parse_physics("integrator=Euler, iterations=10")
    TrainingPhysics(integrator='Euler', solver=None, iterations=10, timestep=None, eulerdamp=None)
    """
    if text is None:
        return None
    known = [entry.name for entry in fields(TrainingPhysics)]
    given: dict[str, str] = {}
    for part in text.split(","):
        name, _, value = (side.strip() for side in part.partition("="))
        if not value or name in given:
            raise InvalidArgument(
                "physics must be options of MuJoCo with commas, each once, like integrator=Euler, iterations=10, got "
                f"{text!r:.200}"
            )
        if name not in known:
            raise InvalidArgument(
                f"physics has no option {name!r:.50}; there are {', '.join(known)}{did_you_mean(name, known)}"
            )
        given[name] = value
    return TrainingPhysics(
        integrator=given.get("integrator"),
        solver=given.get("solver"),
        iterations=_number("iterations", given.get("iterations"), int, "a whole number"),
        timestep=_number("timestep", given.get("timestep"), float, "a number"),
        eulerdamp=given.get("eulerdamp"),
    )


def _number(name: str, text: str | None, kind: Callable[[str], T], expected: str) -> T | None:
    try:
        return None if text is None else kind(text)
    except ValueError:
        raise InvalidArgument(f"physics: {name} must be {expected}, got {text!r:.50}") from None


def _check_word(name: str, value: str | None, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        raise InvalidArgument(
            f"physics: {name} must be one of {', '.join(known)}, got {value!r:.50}{did_you_mean(value, known)}"
        )
