"""The rules that PGPE's arguments must keep, each refused with the rule and the value."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from clipup.errors import InvalidArgument, InvalidFitness, WrongOrder
from clipup.optimizers.clipup import ClipUp
from clipup.optimizers.protocol import Optimizer, as_floats, check_number, check_positive
from clipup.searches.fitness import SHAPINGS, FitnessArray, check_finite
from clipup.searches.sampling import FloatArray

# The paper's rules of thumb (its section on hyperparameter tuning), from which all follows that is not given.
STEP_SIZE_PER_SPEED = 0.5
RADIUS_PER_SPEED = 15.0
MOMENTUM = 0.9
_POPULATION_MAX_FACTOR = 8  # as in the paper's Walker2d and Bullet settings


def initial_center(dimension: int | None, center: ArrayLike | None) -> FloatArray:
    """Return the starting point as a float32 vector of the caller's numbers, or of zeros."""
    if dimension is not None and (not is_whole(dimension) or dimension < 1):
        raise InvalidArgument(f"dimension must be a positive whole number, got {dimension!r}")
    if center is None:
        if dimension is None:
            raise InvalidArgument("PGPE needs dimension=… or center=…, got neither")
        return np.zeros(dimension, dtype=np.float32)
    start = as_floats("center", center)
    if start.ndim != 1 or start.size == 0:
        raise InvalidArgument(f"center must be a vector of at least one number, got shape {start.shape}")
    if dimension is not None and dimension != start.size:
        raise InvalidArgument(
            f"dimension={dimension} and a center of {start.size} numbers contradict each other; give one"
        )
    return _as_float32("center", start)


def initial_stdev(dimension: int, radius: float | None, stdev: ArrayLike | None, max_speed: float | None) -> FloatArray:
    """Return the initial standard deviation of each coordinate from whichever of the three is given."""
    if stdev is not None:
        if radius is not None:
            raise InvalidArgument(f"radius={radius!r} and stdev say the same thing twice; give one of them")
        values = as_floats("stdev", stdev)
        if values.shape not in {(), (dimension,)}:
            raise InvalidArgument(f"stdev must be one number or {dimension} of them, got shape {values.shape}")
        if not (np.isfinite(values).all() and (values > 0).all()):
            raise InvalidArgument(f"stdev must be positive in every coordinate, got a smallest of {values.min()!r}")
        return _as_float32("stdev", np.broadcast_to(values, (dimension,)))
    if radius is None:
        if max_speed is None:
            raise InvalidArgument(
                "an optimizer without a max_speed tells nothing of the scale; give radius=… or stdev=…"
            )
        radius = RADIUS_PER_SPEED * max_speed
    per_coordinate = check_positive("radius", radius) / math.sqrt(dimension)
    return _as_float32("stdev", np.full(dimension, per_coordinate))


def make_optimizer(
    optimizer: Optimizer | None, max_speed: float | None, step_size: float | None, momentum: float | None
) -> Optimizer:
    """Return the optimizer that was given, or the ClipUp that the numbers describe."""
    if optimizer is None:
        if max_speed is None:
            raise InvalidArgument("PGPE needs max_speed=…, the longest step of the center, or optimizer=…")
        speed = check_positive("max_speed", max_speed)
        return ClipUp(
            step_size=speed * STEP_SIZE_PER_SPEED if step_size is None else step_size,
            max_speed=speed,
            momentum=MOMENTUM if momentum is None else momentum,
        )
    for name, value in (("max_speed", max_speed), ("step_size", step_size), ("momentum", momentum)):
        if value is not None:
            raise InvalidArgument(
                f"{name} describes the default optimizer; with optimizer=… set it there, got {value!r}"
            )
    if isinstance(optimizer, type) or not isinstance(optimizer, Optimizer):
        raise InvalidArgument(
            f"optimizer must be an instance with kind, ascent, state_dict and load_state_dict, got {optimizer!r}"
        )
    return optimizer


def check_population_size(population_size: int | None, dimension: int) -> int:
    """Return the size of a batch: an even number, as candidates come in mirrored pairs."""
    if population_size is None:
        return 2 * math.ceil(10 + math.sqrt(dimension))
    return _check_even("population_size", population_size)


def check_adaptive(
    interactions: int | None, population_max: int | None, population_size: int
) -> tuple[int | None, int | None]:
    """Return T and the bound of the population, both None when the population is not adaptive."""
    if interactions is None:
        if population_max is not None:
            raise InvalidArgument(
                f"population_max={population_max!r} bounds an adaptive population; give interactions=… too, or neither"
            )
        return None, None
    if not is_whole(interactions) or interactions < 1:
        raise InvalidArgument(f"interactions must be a positive whole number, got {interactions!r}")
    if population_max is None:
        return int(interactions), _POPULATION_MAX_FACTOR * population_size
    bound = _check_even("population_max", population_max)
    if bound < population_size:
        raise InvalidArgument(f"population_max must be at least population_size={population_size}, got {bound}")
    return int(interactions), bound


def check_shaping(fitness_shaping: str, fitness_max: float | None) -> str:
    """Return the name of the shaping, or refuse it."""
    if fitness_shaping not in SHAPINGS:
        raise InvalidArgument(f"fitness_shaping must be one of {', '.join(SHAPINGS)}, got {fitness_shaping!r}")
    if fitness_max is not None:
        check_number("fitness_max", fitness_max)
        if fitness_shaping != "reward-normalized":
            raise InvalidArgument(f"fitness_max belongs to 'reward-normalized' shaping, not to {fitness_shaping!r}")
    return fitness_shaping


def check_stdev_learning_rate(value: float) -> float:
    """Return the rate; 0 keeps the standard deviation as it is, as in the evolution strategies without adaptation."""
    if check_number("stdev_learning_rate", value) < 0:
        raise InvalidArgument(f"stdev_learning_rate must be positive, or 0 to keep the stdev fixed, got {value!r}")
    return float(value)


def check_stdev_max_change(value: float | None) -> float | None:
    """Return the limit: at 1 a standard deviation could reach zero in one generation."""
    if value is None:
        return None
    if not 0 < check_number("stdev_max_change", value) < 1:
        raise InvalidArgument(f"stdev_max_change must lie between 0 and 1, or be None for no limit, got {value!r}")
    return float(value)


def check_told(fitnesses: ArrayLike, asked: int, shaping: str) -> FitnessArray:
    """Return the fitnesses of the `asked` candidates as a float64 vector, or refuse them."""
    if asked == 0:
        raise WrongOrder("tell needs candidates to be told of: call ask() first, then tell() once")
    told = as_floats("fitnesses", fitnesses, InvalidFitness)
    if told.shape != (asked,):
        raise InvalidFitness(
            f"one fitness a candidate is needed, a vector of {asked}, got shape {told.shape}; "
            "tell all candidates of the last ask() at once"
        )
    check_finite(told, shaping)
    return told


def check_interactions(interactions: ArrayLike | None, asked: int, wanted: int | None) -> int:
    """Return the total of the interactions told; `wanted` is T, or None when the population is not adaptive."""
    if wanted is None:
        if interactions is not None:
            raise InvalidArgument(
                "interactions were told, but the population is not adaptive; make PGPE with interactions=T, "
                "or leave them out"
            )
        return 0
    if interactions is None:
        raise InvalidArgument(
            f"tell needs interactions=…, those of the batch: the population grows until they reach {wanted}, got none"
        )
    counts = np.asarray(interactions)
    if counts.shape not in {(), (asked,)} or counts.dtype.kind not in "iu":
        raise InvalidArgument(
            f"interactions must be one whole number or {asked} of them, got shape {counts.shape} of {counts.dtype}"
        )
    if (counts < 0).any():
        raise InvalidArgument(f"interactions must not be negative, got {int(counts.min())}")
    return int(counts.sum())


def is_whole(value: object) -> bool:
    """Return whether the value is an integer of Python's or numpy's; True and False are not meant."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _check_even(name: str, value: int) -> int:
    if not is_whole(value) or value < 2 or value % 2:
        raise InvalidArgument(f"{name} must be an even number of at least 2 (candidates come in pairs), got {value!r}")
    return int(value)


def _as_float32(name: str, values: FitnessArray) -> FloatArray:
    # Beyond a sixteenth of the range a candidate could overflow; the search itself checks the same after each step.
    if not (np.isfinite(values).all() and np.abs(values).max() < np.finfo(np.float32).max / 32):
        largest = float(np.abs(values).max())
        raise InvalidArgument(f"{name} must be finite and fit float32 with room to spare, got a largest of {largest:g}")
    result = values.astype(np.float32)
    if name == "stdev" and not (result >= np.finfo(np.float32).tiny).all():
        raise InvalidArgument(f"stdev must be at least {np.finfo(np.float32).tiny} in float32, got {values.min()!r}")
    return result
