"""What every optimizer offers: a step for a gradient, and its state. Below it: the checks that optimizers share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clipup.errors import ClipUpError, Diverged, InvalidArgument, StateMismatch

Vector = NDArray[np.float64]
StateValue = NDArray[np.generic] | int | float | str
State = dict[str, StateValue]

MOMENTUM = 0.9
"""The share of its velocity that an optimizer with momentum keeps, unless it is told otherwise; the paper's value."""

# Entries whose squares, and the sum of as many of them as fit in memory, neither vanish nor overflow.
_SAFE_TO_SQUARE = (1e-140, 1e140)


@runtime_checkable
class Optimizer(Protocol):
    """Turns a gradient into a step to be added to the solution: we maximize.

    The hyperparameters are fixed at construction; everything that changes from step to step is in the state.

    An optimizer may also have the attributes of :class:`StepReport`, `max_speed` and `clipped`. A search reports them.
    """

    kind: ClassVar[str]
    """The name of the rule, kept in its saved states."""

    def ascent(self, gradient: ArrayLike) -> Vector:
        """Return the step for this gradient and advance the state. The gradient is not changed."""
        ...

    def state_dict(self) -> State:
        """Return the state as numpy arrays, ints, floats and strings."""
        ...

    def load_state_dict(self, state: Mapping[str, StateValue]) -> None:
        """Go on from a state that `state_dict` gave; a state of another kind is refused and nothing changes."""
        ...


@dataclass(frozen=True)
class StepReport:
    """What an optimizer says about its steps: the cap on their norm, and whether the last one was shortened to it."""

    max_speed: float | None = None
    clipped: bool = False


def step_report(optimizer: Optimizer) -> StepReport:
    """Return what `optimizer` says about its steps; without such attributes it has no cap and never clips.

    >>> from clipup.optimizers import Adam, ClipUp
    >>> step_report(ClipUp(step_size=0.1, max_speed=0.2)), step_report(Adam(step_size=0.1))
    (StepReport(max_speed=0.2, clipped=False), StepReport(max_speed=None, clipped=False))
    """
    cap: float | None = getattr(optimizer, "max_speed", None)
    if not (isinstance(cap, int | float | np.integer | np.floating) and 0 < cap < math.inf):
        cap = None  # an optimizer may use the name for something else
    return StepReport(None if cap is None else float(cap), bool(getattr(optimizer, "clipped", False)))


def norm(vector: Vector) -> float:
    """Return the Euclidean norm, by numpy's own pairwise sum: a BLAS may give other bits with other thread counts."""
    largest = float(np.abs(vector).max(initial=0.0))
    if largest == 0 or not math.isfinite(largest):
        return largest
    if not _SAFE_TO_SQUARE[0] < largest < _SAFE_TO_SQUARE[1]:
        return largest * math.sqrt(float(np.square(vector / largest).sum()))
    return math.sqrt(float(np.square(vector).sum()))


def as_floats(name: str, values: ArrayLike, error: type[ClipUpError] = InvalidArgument) -> Vector:
    """Return `values` as a float64 array, or refuse an array of anything but real numbers."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        raise error(f"{name} must be an array of real numbers, got rows of different lengths") from None
    if array.dtype.kind not in "fiub":
        raise error(f"{name} must be an array of real numbers, got {array.dtype} values")
    return array.astype(np.float64, copy=False)


def as_gradient(gradient: ArrayLike, like: Vector | None) -> Vector:
    """Return the gradient as a float64 vector, or refuse it before any state changes."""
    vector = as_floats("the gradient", gradient)
    if vector.ndim != 1 or (like is not None and like.shape != vector.shape):
        expected = "a vector" if like is None else f"a vector of {like.size} numbers, as in earlier steps"
        raise InvalidArgument(f"the gradient must be {expected}, got shape {vector.shape}")
    if not np.isfinite(vector).all():
        raise InvalidArgument(
            f"the gradient must be finite, got {np.count_nonzero(~np.isfinite(vector))} non-finite of {vector.size}"
        )
    return vector


def check_overflow(kind: str, *results: Vector) -> None:
    """Refuse a state or a step that overflowed: it could not be used, nor saved."""
    if not all(np.isfinite(result).all() for result in results):
        raise Diverged(f"the {kind} step overflowed and was not made: lower its step_size, or scale the fitness down")


def check_number(name: str, value: float) -> float:
    """Return `value` as a float, or refuse it: a finite real number."""
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise InvalidArgument(f"{name} must be a finite number, got {value!r}")


def check_positive(name: str, value: float) -> float:
    """Return `value` as a float, or refuse it: positive and finite."""
    if check_number(name, value) <= 0:
        raise InvalidArgument(f"{name} must be a positive number, got {value!r}")
    return float(value)


def check_decay(name: str, value: float) -> float:
    """Return `value` as a float, or refuse it: at least 0 and less than 1."""
    if not 0 <= check_number(name, value) < 1:
        raise InvalidArgument(f"{name} must be at least 0 and less than 1, got {value!r}")
    return float(value)


def load_vector(kind: str, state: Mapping[str, StateValue], key: str) -> Vector | None:
    """Return a copy of the vector `key` of a saved state; an empty one means that no step was made yet."""
    if not isinstance(state.get("kind"), str) or state.get("kind") != kind:
        raise StateMismatch(f"a state of a {kind!r} optimizer is needed, got one of {state.get('kind')!r}")
    value = state.get(key)
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype != np.float64:
        raise StateMismatch(f"the {kind} state needs a float64 vector {key!r}, got {type(value).__name__}")
    if not np.isfinite(value).all():
        raise StateMismatch(f"the {kind} state's {key!r} must be finite")
    return value.astype(np.float64) if value.size else None


def stored(vector: Vector | None) -> Vector:
    """Return a copy of the vector for a saved state; empty when there is none yet."""
    return np.empty(0) if vector is None else vector.copy()
