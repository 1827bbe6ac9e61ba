"""What changes during a search, as one value: replaced whole or not at all, saved and loaded whole."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from clipup.errors import StateMismatch
from clipup.optimizers.protocol import State, StateValue
from clipup.searches.fitness import FitnessArray
from clipup.searches.sampling import SEED_LIMIT, FloatArray

_Scalar = TypeVar("_Scalar", bound=np.generic)


@dataclass(frozen=True, eq=False)
class SearchState:
    """A search between two calls; its optimizer keeps its own state."""

    center: FloatArray
    stdev: FloatArray
    seed: int
    population_size: int  # of the last generation that ended
    fitness_max: float  # the best seen, or the one that was given
    generation: int = 0
    asked: int = 0  # candidates of the batch that waits for its fitnesses
    fitnesses: FitnessArray = field(default_factory=lambda: np.empty(0))  # of this generation, so far
    interactions_done: int = 0  # in this generation
    gradient_norm: float = 0.0
    gradient_agreement: float = 0.0
    speed: float = 0.0
    tied: float = 0.0
    nonfinite: int = 0

    def to_dict(self) -> State:
        """Return all fields; the arrays are copies."""
        state: State = {"kind": "pgpe"}
        for each in fields(self):
            value = getattr(self, each.name)
            state[each.name] = value.copy() if isinstance(value, np.ndarray) else value
        return state

    @classmethod
    def from_dict(cls, state: Mapping[str, StateValue], dimension: int) -> Self:
        """Return the state of a search over `dimension` parameters, each field checked, or refuse it."""
        if state.get("kind") != "pgpe":
            raise StateMismatch(f"a state of a 'pgpe' search is needed, got one of {state.get('kind')!r}")
        loaded = cls(
            center=_array(state, "center", np.float32, dimension),
            stdev=_array(state, "stdev", np.float32, dimension),
            seed=_whole(state, "seed", SEED_LIMIT),
            population_size=_whole(state, "population_size"),
            fitness_max=_number(state, "fitness_max"),
            generation=_whole(state, "generation"),
            asked=_whole(state, "asked"),
            fitnesses=_array(state, "fitnesses", np.float64, None),
            interactions_done=_whole(state, "interactions_done"),
            gradient_norm=_number(state, "gradient_norm"),
            gradient_agreement=_number(state, "gradient_agreement"),
            speed=_number(state, "speed"),
            tied=_number(state, "tied"),
            nonfinite=_whole(state, "nonfinite"),
        )
        if not (np.isfinite(loaded.center).all() and np.isfinite(loaded.stdev).all() and (loaded.stdev > 0).all()):
            raise StateMismatch("the saved center must be finite and the saved stdev positive and finite")
        return loaded

    def check_progress(self, batch_size: int, population_max: int | None) -> None:
        """Refuse a generation under way that a search with these settings could not have begun."""
        told = self.fitnesses.size
        next_batch = batch_size if population_max is None else min(batch_size, population_max - told)
        begun = told % batch_size == 0 if population_max is not None else told == 0
        if not begun or next_batch <= 0 or self.asked not in {0, next_batch}:
            raise StateMismatch(
                f"the saved generation ({told} fitnesses told, {self.asked} asked) does not fit a search with "
                f"population_size={batch_size}, population_max={population_max}"
            )


def plain(state: Mapping[str, StateValue]) -> State:
    """Return the state with numpy's scalars and arrays of no dimension, as `numpy.load` gives them, as Python's own."""

    def own(value: StateValue) -> StateValue:
        return value.item() if isinstance(value, np.generic | np.ndarray) and not value.ndim else value

    return {key: own(value) for key, value in state.items()}


def optimizer_state(state: Mapping[str, StateValue], dimension: int) -> State:
    """Return the part of a search's state that belongs to its optimizer, its vectors checked for their size."""
    own: State = {key.removeprefix("optimizer."): value for key, value in state.items() if key.startswith("optimizer.")}
    for key, value in own.items():
        if isinstance(value, np.ndarray) and value.ndim == 1 and value.size not in {0, dimension}:
            raise StateMismatch(f"the optimizer's {key!r} must have {dimension} numbers, got {value.size}")
    return own


def _array(state: Mapping[str, StateValue], key: str, dtype: type[_Scalar], size: int | None) -> NDArray[_Scalar]:
    value = state.get(key)
    if isinstance(value, np.ndarray) and value.dtype == dtype and value.ndim == 1 and size in {None, value.size}:
        return value.astype(dtype)  # a copy
    wanted = "a vector" if size is None else f"{size} numbers"
    got = f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
    raise StateMismatch(f"the state's {key!r} must be {wanted} of {np.dtype(dtype).name}, got {got}")


def _whole(state: Mapping[str, StateValue], key: str, limit: int = 2**63) -> int:
    value = state.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < limit:
        raise StateMismatch(f"the state's {key!r} must be a whole number, not negative, got {value!r}")
    return value


def _number(state: Mapping[str, StateValue], key: str) -> float:
    value = state.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
        return float(value)
    if not isinstance(value, float) or math.isnan(value):
        raise StateMismatch(f"the state's {key!r} must be a number, got {value!r:.40}")
    return value
