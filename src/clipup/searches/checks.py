"""The rules that any search needs: for its arguments, for what it is told, for its next step and for a saved state.

Each check gives back the value, or refuses it in one line that states the rule and what arrived.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clipup.errors import Diverged, InvalidArgument, InvalidFitness, StateMismatch, WrongOrder
from clipup.optimizers.clipup import STEP_RATIO, ClipUp
from clipup.optimizers.protocol import MOMENTUM, Optimizer, State, StateValue, Vector, as_floats, check_positive
from clipup.searches.protocol import RADIUS_FACTOR, FloatArray

# A standard deviation never falls below the smallest normal float32: at zero a coordinate could never be explored
# again, and the formula for its gradient would divide by it.
STDEV_FLOOR = np.finfo(np.float32).tiny
_FLOAT32_MAX = float(np.finfo(np.float32).max)
# No standard normal that numpy draws in float32 comes near 16, so a center that is this far from the end of the range
# has candidates within it.
_REACH = 16.0

_Scalar = TypeVar("_Scalar", bound=np.generic)


def is_whole(value: object) -> bool:
    """Return whether the value is an integer of Python or numpy; True and False do not count."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def initial_center(dimension: int | None, center: ArrayLike | None) -> FloatArray:
    """Return the start: the caller's numbers as a float32 vector, or zeros."""
    if dimension is not None and (not is_whole(dimension) or dimension < 1):
        raise InvalidArgument(f"dimension must be a positive whole number, got {dimension!r}")
    if center is None:
        if dimension is None:
            raise InvalidArgument("a search needs dimension=… or center=…, got neither")
        return np.zeros(dimension, dtype=np.float32)
    start = as_floats("center", center)
    if start.ndim != 1 or start.size == 0:
        raise InvalidArgument(f"center must be a vector of at least one number, got shape {start.shape}")
    if dimension is not None and dimension != start.size:
        raise InvalidArgument(f"dimension={dimension} contradicts a center of {start.size} numbers; give one of them")
    return _as_float32("center", start)


def initial_stdev(dimension: int, radius: float | None, stdev: ArrayLike | None, max_speed: float | None) -> FloatArray:
    """Return the initial standard deviation of each coordinate, from the first of the last three that is given."""
    if stdev is not None:
        if radius is not None:
            raise InvalidArgument(f"radius={radius!r} and stdev mean the same thing; give one of them")
        values = as_floats("stdev", stdev)
        if values.shape not in {(), (dimension,)}:
            raise InvalidArgument(f"stdev must be one number or {dimension} of them, got shape {values.shape}")
        if not (np.isfinite(values).all() and (values > 0).all()):
            raise InvalidArgument(f"stdev must be positive in every coordinate, got a smallest of {values.min()!r}")
        return _as_float32("stdev", np.broadcast_to(values, (dimension,)))
    if radius is None:
        if max_speed is None:
            raise InvalidArgument("an optimizer without a max_speed has no scale; give radius=… or stdev=… too")
        radius = RADIUS_FACTOR * max_speed
    per_coordinate = check_positive("radius", radius) / math.sqrt(dimension)
    return _as_float32("stdev", np.full(dimension, per_coordinate))


def needed_stdev(dimension: int, radius: float | None, stdev: ArrayLike | None, max_speed: float | None) -> FloatArray:
    """Return the initial standard deviations of a search that may have no optimizer to take their scale from."""
    if radius is None and stdev is None and max_speed is None:
        raise InvalidArgument("this search needs stdev=… or radius=…, how far from the center it looks first")
    return initial_stdev(dimension, radius, stdev, max_speed)


def _as_float32(name: str, values: Vector) -> FloatArray:
    # Center and stdev below 1/32 of the range keep `check_reach` satisfied, which every later step must pass too.
    if not (np.isfinite(values).all() and np.abs(values).max() < _FLOAT32_MAX / 32):
        largest = float(np.abs(values).max())
        raise InvalidArgument(f"{name} must be finite and fit float32 with room to spare, got a largest of {largest:g}")
    result = values.astype(np.float32)
    if name == "stdev" and not (result >= STDEV_FLOOR).all():
        raise InvalidArgument(f"stdev must be at least {STDEV_FLOOR} in float32, got {values.min()!r}")
    return result


def check_optimizer(
    optimizer: Optimizer | None, max_speed: float | None, step_size: float | None, momentum: float | None
) -> Optimizer:
    """Return the optimizer that was given, or the ClipUp that the three numbers describe."""
    if optimizer is None:
        if max_speed is None:
            raise InvalidArgument("a search needs max_speed=…, the longest step of the center, or optimizer=…")
        speed = check_positive("max_speed", max_speed)
        return ClipUp(
            step_size=speed * STEP_RATIO if step_size is None else step_size,
            max_speed=speed,
            momentum=MOMENTUM if momentum is None else momentum,
        )
    for name, value in (("max_speed", max_speed), ("step_size", step_size), ("momentum", momentum)):
        if value is not None:
            raise InvalidArgument(f"{name} describes the default optimizer; set it in optimizer=…, got {value!r}")
    if isinstance(optimizer, type) or not isinstance(optimizer, Optimizer):
        raise InvalidArgument(
            f"optimizer must be an instance with kind, ascent, state_dict and load_state_dict, got {optimizer!r}"
        )
    return optimizer


def check_told(fitnesses: ArrayLike, asked: int) -> Vector:
    """Return the fitnesses of the `asked` candidates as a float64 vector, or refuse them."""
    if asked == 0:
        raise WrongOrder("tell has no candidates to take fitnesses for: call ask() first, then tell() once")
    told = as_floats("fitnesses", fitnesses, InvalidFitness)
    if told.shape != (asked,):
        raise InvalidFitness(
            f"one fitness for each candidate is needed, a vector of {asked}, got shape {told.shape}; "
            "tell all candidates of the last ask() at once"
        )
    return told


def check_reach(center: Vector, stdev: Vector, generation: int) -> None:
    """Refuse a center and a standard deviation whose candidates could leave the range of float32."""
    reach = np.abs(center) + _REACH * stdev
    if not (reach < _FLOAT32_MAX).all():
        raise Diverged(
            f"the search would leave the range of float32 at coordinate {int(np.argmax(reach))} "
            f"(generation {generation}); lower max_speed, or the step size of the optimizer"
        )


def plain_state(kind: str, state: Mapping[str, StateValue]) -> State:
    """Return the state of a `kind` search, with the scalars of a numpy file turned into those of Python."""

    def own(value: StateValue) -> StateValue:
        return value.item() if isinstance(value, np.generic | np.ndarray) and not value.ndim else value

    plain = {key: own(value) for key, value in state.items()}
    found = plain.get("kind")
    if not isinstance(found, str) or found != kind:
        raise StateMismatch(f"a state of a {kind!r} search is needed, got one of {found!r:.40}")
    return plain


def state_array(state: Mapping[str, StateValue], key: str, dtype: type[_Scalar], size: int | None) -> NDArray[_Scalar]:
    """Return a copy of the vector `key` of a saved state; a `size` of None allows any."""
    value = state.get(key)
    if isinstance(value, np.ndarray) and value.dtype == dtype and value.ndim == 1 and size in {None, value.size}:
        return value.astype(dtype)  # a copy
    wanted = "a vector" if size is None else f"{size} numbers"
    got = f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
    raise StateMismatch(f"the state's {key!r} must be {wanted} of {np.dtype(dtype).name}, got {got}")


def state_whole(state: Mapping[str, StateValue], key: str, limit: int = 2**63) -> int:
    """Return the whole number `key` of a saved state: not negative, and below `limit`."""
    value = state.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < limit:
        raise StateMismatch(f"the state's {key!r} must be a whole number, not negative, got {value!r}")
    return value


def state_number(state: Mapping[str, StateValue], key: str) -> float:
    """Return the number `key` of a saved state; it may be infinite, but not NaN."""
    value = state.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
        return float(value)
    if not isinstance(value, float) or math.isnan(value):
        raise StateMismatch(f"the state's {key!r} must be a number, got {value!r:.40}")
    return value


def optimizer_state(optimizer: Optimizer) -> State:
    """Return the optimizer's state under the keys that it has in the state of its search."""
    return {f"optimizer.{key}": value for key, value in optimizer.state_dict().items()}


def load_optimizer(optimizer: Optimizer, state: Mapping[str, StateValue], dimension: int) -> None:
    """Give the optimizer its part of the state of a search, or refuse it and leave the optimizer as it was."""
    own: State = {key.removeprefix("optimizer."): value for key, value in state.items() if key.startswith("optimizer.")}
    before = optimizer.state_dict()
    try:
        for key, value in own.items():
            if isinstance(value, np.ndarray) and value.ndim == 1 and value.size not in {0, dimension}:
                raise StateMismatch(f"the optimizer's {key!r} must have {dimension} numbers, got {value.size}")
        optimizer.load_state_dict(own)
    except BaseException as error:
        optimizer.load_state_dict(before)
        if isinstance(error, StateMismatch):
            raise StateMismatch(f"the saved optimizer does not fit: {error}") from None
        raise
