"""Asking and telling, written once: what every search of ours does between two updates.

A search derives from `AskTell`, or from `gaussian.GaussianSearch` if its candidates are normal with one standard
deviation for each coordinate. It then says how a batch is made, and what its update is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from clipup.errors import InvalidArgument, StateMismatch, WrongOrder
from clipup.optimizers.protocol import Optimizer, State, StateValue, StepReport, Vector, norm, step_report
from clipup.optimizers.registry import make_optimizer
from clipup.searches import checks
from clipup.searches.checks import state_array, state_number, state_whole
from clipup.searches.population import PopulationSize
from clipup.searches.protocol import Batch, Figures, FloatArray, SearchSettings, SumBlocks
from clipup.searches.sampling import SEED_LIMIT
from clipup.searches.shaping import tied_share


@dataclass(frozen=True, eq=False, kw_only=True)
class SearchState:
    """A search between two calls: replaced whole or not at all. Its optimizer keeps its own state."""

    center: FloatArray
    seed: int
    population_size: int  # of the last generation that ended
    generation: int = 0
    asked: int = 0  # candidates of the batch that waits for its fitnesses
    fitnesses: Vector = field(default_factory=lambda: np.empty(0))  # of this generation, so far
    interactions_done: int = 0  # in this generation
    speed: float = 0.0
    tied: float = 0.0
    nonfinite: int = 0


def common_state(state: Mapping[str, StateValue], dimension: int) -> dict[str, Any]:
    """Return the fields of `SearchState` of a saved state over `dimension` parameters, each one checked."""
    center = state_array(state, "center", np.float32, dimension)
    if not np.isfinite(center).all():
        raise StateMismatch("the saved center must be finite")
    return {
        "center": center,
        "seed": state_whole(state, "seed", SEED_LIMIT),
        "population_size": state_whole(state, "population_size"),
        "generation": state_whole(state, "generation"),
        "asked": state_whole(state, "asked"),
        "fitnesses": state_array(state, "fitnesses", np.float64, None),
        "interactions_done": state_whole(state, "interactions_done"),
        "speed": state_number(state, "speed"),
        "tied": state_number(state, "tied"),
        "nonfinite": state_whole(state, "nonfinite"),
    }


StateT = TypeVar("StateT", bound=SearchState)
BatchT = TypeVar("BatchT", bound=Batch)


class AskTell(ABC, Generic[StateT, BatchT]):
    """The calls of a `Search` and its saved state. A search adds its batch, its update and its own state."""

    kind: ClassVar[str]

    def __init__(
        self, size: PopulationSize, state: StateT, settings: Mapping[str, object], optimizer: Optimizer | None = None
    ) -> None:
        self._size = size
        self._state = state
        self._optimizer = optimizer
        self._settings = {
            "population_size": size.batch,
            "population_max": size.maximum,
            "interactions": size.interactions,
            **({} if optimizer is None else {"optimizer": repr(optimizer)}),
            **settings,
        }

    def __repr__(self) -> str:
        optimizer = "" if self._optimizer is None else f"optimizer={self._optimizer!r}, "
        return (
            f"{type(self).__name__}(dimension={self.dimension}, population_size={self._size.batch}, {optimizer}"
            f"seed={self._state.seed}, generation={self._state.generation})"
        )

    # -- what a search adds -------------------------------------------------------------------------------------------

    @abstractmethod
    def _make_batch(self, start: int, stop: int) -> BatchT:
        """Return candidates ``start .. stop - 1`` of this generation; nothing is shared with the state."""

    @abstractmethod
    def _updated(self, fitnesses: Vector, sum_blocks: SumBlocks | None) -> StateT:
        """Return the state after the update by these fitnesses: those of the whole generation."""

    @abstractmethod
    def _loaded(self, state: State) -> StateT:
        """Return a saved state with each of its fields checked."""

    @abstractmethod
    def _stdev_norm(self) -> float:
        """Return the norm of the standard deviations of all coordinates."""

    def _check_fitnesses(self, told: Vector) -> None:
        """Refuse fitnesses that the update cannot take. A search by ranks takes all."""

    def _gradient_figures(self) -> tuple[float | None, float | None]:
        """Return the norm of the last gradient, and the agreement of its halves."""
        return None, None

    # -- ask and tell -------------------------------------------------------------------------------------------------

    def _next_batch(self) -> BatchT:
        start = self._state.fitnesses.size
        return self._make_batch(start, self._size.stop(start))

    def batch(self) -> BatchT:
        """Return the candidates to evaluate next, without making them; the same until `tell` is called."""
        batch = self._next_batch()
        if self._state.asked == 0:
            self._state = replace(self._state, asked=len(batch))
        return batch

    def following(self) -> BatchT | None:
        """Return the batch that comes after `batch()` if the generation grows; None where it cannot grow."""
        start = self._size.stop(self._state.fitnesses.size)
        stop = self._size.stop(start)
        return self._make_batch(start, stop) if stop > start else None

    def ask(self) -> FloatArray:
        """Return the candidates to evaluate next, one in each row."""
        return self.batch().candidates()

    def tell(
        self,
        fitnesses: ArrayLike,
        interactions: ArrayLike | None = None,
        *,
        sum_blocks: SumBlocks | None = None,
    ) -> bool:
        """Take the fitnesses of the last batch (higher is better); return True when that ended a generation.

        `interactions` (a total, or one number per candidate) is needed when the population is adaptive, and only then.
        `sum_blocks` sums the update's blocks elsewhere; the result has the same bits. If anything is raised, the
        search is as it was before the call, and can be told again.
        """
        state = self._state
        told = checks.check_told(fitnesses, state.asked)
        self._check_fitnesses(told)
        done = state.interactions_done + self._size.count(interactions, told.size)
        generation = np.concatenate([state.fitnesses, told])
        if self._size.grows(generation.size, done):
            self._state = replace(state, fitnesses=generation, interactions_done=done, asked=0)
            return False
        self._commit(self._updated(generation, sum_blocks))
        return True

    def _commit(self, updated: StateT) -> None:
        self._state = updated

    def adjust(self, settings: SearchSettings, radius_scale: float = 1.0) -> None:
        """Go on with another population and another optimizer, from the next generation on.

        Center, standard deviations and the optimizer's state stay as they are. In the middle of a generation it is
        refused: its candidates belong together.
        """
        if radius_scale != 1:
            raise InvalidArgument(f"a {self.kind!r} search finds its own radius; leave radius out of the schedule")
        if self._state.asked or self._state.fitnesses.size:
            raise WrongOrder("adjust changes the next generation: call it before ask(), not in the middle of one")
        size = self._size.of(
            self.dimension,
            settings.population,
            settings.interactions,
            settings.population_max if settings.interactions is not None else None,
            mirrored=False,  # an even number comes from the settings
        )
        if self._optimizer is not None:
            optimizer = make_optimizer(settings.optimizer, settings, self.dimension)
            optimizer.load_state_dict(self._optimizer.state_dict())
            self._optimizer = optimizer
        self._size = size

    def _next_state(self, fitnesses: Vector, center: Vector, step: Vector, **own: Any) -> StateT:
        """Return the state of the next generation, at `center`; `own` are the fields of the search itself."""
        return replace(
            self._state,
            center=center.astype(np.float32),
            population_size=fitnesses.size,
            generation=self._state.generation + 1,
            asked=0,
            fitnesses=np.empty(0),
            interactions_done=0,
            speed=norm(step),
            tied=tied_share(fitnesses),
            nonfinite=int(np.count_nonzero(~np.isfinite(fitnesses))),
            **own,
        )

    @contextmanager
    def _ascent(self, gradient: Vector) -> Generator[Vector]:
        """Give the optimizer's step for this gradient. If the block raises, the optimizer is as it was before."""
        if self._optimizer is None:
            raise TypeError("this search has no optimizer")
        before = self._optimizer.state_dict()
        try:
            step = np.asarray(self._optimizer.ascent(gradient), np.float64)
            if step.shape != (self.dimension,):
                raise InvalidArgument(
                    f"the optimizer must return a step of {self.dimension} numbers, got shape {step.shape}"
                )
            yield step
        except BaseException:  # Ctrl-C too: the optimizer must never be a step ahead of its center
            self._optimizer.load_state_dict(before)
            raise

    # -- what can be seen ---------------------------------------------------------------------------------------------

    @property
    def center(self) -> FloatArray:
        """The current solution, a copy."""
        return self._state.center.copy()

    @property
    def dimension(self) -> int:
        """The number of parameters."""
        return self._state.center.size

    @property
    def seed(self) -> int:
        """The seed that fixes every candidate."""
        return self._state.seed

    @property
    def generation(self) -> int:
        """The number of updates made."""
        return self._state.generation

    @property
    def population_size(self) -> int:
        """How many candidates the last generation had; before the first one has ended, how many a batch has."""
        return self._state.population_size

    @property
    def batch_size(self) -> int:
        """How many candidates a batch has: the argument `population_size`."""
        return self._size.batch

    @property
    def population_max(self) -> int | None:
        """The bound of an adaptive population; None when the population is not adaptive."""
        return self._size.maximum

    @property
    def speed(self) -> float:
        """The norm of the last step of the center."""
        return self._state.speed

    @property
    def nonfinite(self) -> int:
        """How many fitnesses of the last generation were not finite."""
        return self._state.nonfinite

    @property
    def tied(self) -> float:
        """The share of the last generation's candidates whose fitness equalled another's."""
        return self._state.tied

    def figures(self) -> Figures:
        """Return what there is to say about the last generation that ended."""
        state = self._state
        report = StepReport() if self._optimizer is None else step_report(self._optimizer)
        gradient_norm, agreement = self._gradient_figures()
        return Figures(
            population=state.population_size,
            speed=state.speed,
            max_speed=report.max_speed,
            clipped=report.clipped,
            stdev_norm=self._stdev_norm(),
            gradient_norm=gradient_norm,
            gradient_agreement=agreement,
            nonfinite=state.nonfinite,
            tied=state.tied,
        )

    def settings(self) -> Mapping[str, object]:
        """Return what the search was made with, for people and records."""
        return dict(self._settings)

    # -- state --------------------------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return everything that changes during a search, flat: arrays, ints, floats and strings.

        A search of the same settings that loads it goes on to the same bits, also from the middle of a generation.
        """
        state: State = {"kind": self.kind}
        for each in fields(self._state):
            value = getattr(self._state, each.name)
            state[each.name] = value.copy() if isinstance(value, np.ndarray) else value
        return state if self._optimizer is None else state | checks.optimizer_state(self._optimizer)

    def load_state_dict(self, state: Mapping[str, StateValue]) -> None:
        """Go on from a state that `state_dict` gave; one that does not fit is refused and nothing changes."""
        state = checks.plain_state(self.kind, state)
        loaded = self._loaded(state)
        self._size.check_progress(loaded.fitnesses.size, loaded.asked)
        if self._optimizer is not None:
            checks.load_optimizer(self._optimizer, state, self.dimension)
        self._commit(loaded)
