"""The rules that PGPE's arguments and saved states must keep, each refused with the rule and the value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clipup.errors import InvalidArgument, StateMismatch
from clipup.optimizers.clipup import ClipUp
from clipup.optimizers.protocol import Optimizer, State, StateValue, check_positive
from clipup.search.fitness import SHAPINGS, FitnessArray
from clipup.search.sampling import SEED_LIMIT, FloatArray

Number = TypeVar("Number", bound=np.generic)

# The paper's rules of thumb (its section on hyperparameter tuning), from which all follows that is not given.
STEP_SIZE_PER_SPEED = 0.5
RADIUS_PER_SPEED = 15.0
_POPULATION_MAX_FACTOR = 8  # as in the paper's Walker2d and Bullet settings


def initial_center(dimension: int | None, center: ArrayLike | None) -> FloatArray:
    """Return the starting point as a float32 vector of the caller's numbers, or of zeros."""
    if dimension is not None and (not _is_whole(dimension) or dimension < 1):
        raise InvalidArgument(f"dimension must be a positive whole number, got {dimension!r}")
    if center is None:
        if dimension is None:
            raise InvalidArgument("PGPE needs dimension=… or center=…, got neither")
        return np.zeros(dimension, dtype=np.float32)
    start = np.array(center, dtype=np.float64)
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
        values = np.array(stdev, dtype=np.float64)
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
    optimizer: Optimizer | None, max_speed: float | None, step_size: float | None, momentum: float
) -> Optimizer:
    """Return the optimizer that was given, or the ClipUp that the numbers describe."""
    if optimizer is None:
        if max_speed is None:
            raise InvalidArgument("PGPE needs max_speed=…, the longest step of the center, or optimizer=…")
        speed = check_positive("max_speed", max_speed)
        return ClipUp(speed * STEP_SIZE_PER_SPEED if step_size is None else step_size, speed, momentum)
    if max_speed is not None or step_size is not None:
        raise InvalidArgument("max_speed and step_size describe the default optimizer; with optimizer=… set them there")
    if not isinstance(optimizer, Optimizer):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument(f"optimizer must have ascent, state_dict and load_state_dict, got {optimizer!r}")
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
    if not _is_whole(interactions) or interactions < 1:
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
        if fitness_shaping != "reward-normalized":
            raise InvalidArgument(f"fitness_max belongs to 'reward-normalized' shaping, not to {fitness_shaping!r}")
        if not math.isfinite(fitness_max):
            raise InvalidArgument(f"fitness_max must be finite, got {fitness_max!r}")
    return fitness_shaping


def check_stdev_max_change(value: float | None) -> float | None:
    """Return the limit: at 1 a standard deviation could reach zero in one generation."""
    if value is None:
        return None
    if not 0 < value < 1:
        raise InvalidArgument(f"stdev_max_change must lie between 0 and 1, or be None for no limit, got {value!r}")
    return float(value)


@dataclass(frozen=True, eq=False)
class LoadedState:
    """A saved state of PGPE, checked as a whole before any of it is used."""

    center: FloatArray
    stdev: FloatArray
    fitnesses: FitnessArray
    seed: int
    generation: int
    asked: int
    interactions_done: int
    population_size: int
    nonfinite: int
    fitness_max: float
    gradient_norm: float
    gradient_agreement: float
    speed: float
    tied: float
    optimizer: State

    @classmethod
    def of(
        cls, state: Mapping[str, StateValue], dimension: int, batch_size: int, population_max: int | None
    ) -> LoadedState:
        """Return the state for a search of these settings, or refuse it."""
        if state.get("kind") != "pgpe":
            raise StateMismatch(f"a state of a 'pgpe' search is needed, got one of {state.get('kind')!r}")
        optimizer: State = {
            key.removeprefix("optimizer."): value for key, value in state.items() if key.startswith("optimizer.")
        }
        for key, value in optimizer.items():
            if isinstance(value, np.ndarray) and value.size not in {0, dimension}:
                raise StateMismatch(f"the optimizer's {key} must have {dimension} numbers, got {value.size}")
        loaded = cls(
            center=_array(state, "center", np.float32, dimension),
            stdev=_array(state, "stdev", np.float32, dimension),
            fitnesses=_array(state, "fitnesses", np.float64, None),
            seed=_whole(state, "seed", SEED_LIMIT),
            generation=_whole(state, "generation"),
            asked=_whole(state, "asked"),
            interactions_done=_whole(state, "interactions_done"),
            population_size=_whole(state, "population_size"),
            nonfinite=_whole(state, "nonfinite"),
            fitness_max=_number(state, "fitness_max"),
            gradient_norm=_number(state, "gradient_norm"),
            gradient_agreement=_number(state, "gradient_agreement"),
            speed=_number(state, "speed"),
            tied=_number(state, "tied"),
            optimizer=optimizer,
        )
        if not (np.isfinite(loaded.center).all() and np.isfinite(loaded.stdev).all() and (loaded.stdev > 0).all()):
            raise StateMismatch("the saved center must be finite and the saved stdev positive")
        start = loaded.fitnesses.size
        left = batch_size if population_max is None else min(batch_size, population_max - start)
        if (population_max is None and start) or left <= 0 or loaded.asked not in {0, left}:
            raise StateMismatch(
                f"the saved generation ({start} fitnesses told, {loaded.asked} asked) does not fit a search with "
                f"population_size={batch_size}, population_max={population_max}"
            )
        return loaded


def _array(state: Mapping[str, StateValue], key: str, dtype: type[Number], size: int | None) -> NDArray[Number]:
    value = state.get(key)
    if (
        not isinstance(value, np.ndarray)
        or value.dtype != dtype
        or value.ndim != 1
        or value.size != (size or value.size)
    ):
        wanted = f"{size} numbers" if size else "a vector"
        got = f"{value.dtype}{value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
        raise StateMismatch(f"the state's {key!r} must be {wanted} of {np.dtype(dtype).name}, got {got}")
    return value.astype(dtype)


def _whole(state: Mapping[str, StateValue], key: str, limit: int = 2**63) -> int:
    value = state.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < limit:
        raise StateMismatch(f"the state's {key!r} must be a whole number, not negative, got {value!r}")
    return value


def _number(state: Mapping[str, StateValue], key: str) -> float:
    value = state.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool) or math.isnan(value):
        raise StateMismatch(f"the state's {key!r} must be a number, got {value!r}")
    return float(value)


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _check_even(name: str, value: int) -> int:
    if not _is_whole(value) or value < 2 or value % 2:
        raise InvalidArgument(f"{name} must be an even number of at least 2 (candidates come in pairs), got {value!r}")
    return int(value)


def _as_float32(name: str, values: FitnessArray) -> FloatArray:
    # Beyond a sixteenth of the range a candidate could overflow; the search itself checks the same after each step.
    if not (np.isfinite(values).all() and np.abs(values).max() < np.finfo(np.float32).max / 32):
        raise InvalidArgument(
            f"{name} must be finite and fit float32 with room to spare, got a largest of {np.abs(values).max()!r}"
        )
    result = values.astype(np.float32)
    if name == "stdev" and not (result >= np.finfo(np.float32).tiny).all():
        raise InvalidArgument(f"stdev must be at least {np.finfo(np.float32).tiny} in float32, got {values.min()!r}")
    return result
