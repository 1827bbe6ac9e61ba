"""PGPE: policy gradients with parameter-based exploration (the paper's Algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from clipup.errors import Diverged, InvalidArgument, StateMismatch
from clipup.optimizers.protocol import Optimizer, State, StateValue, Vector, check_number, norm, step_report
from clipup.optimizers.registry import make_optimizer
from clipup.searches import checks
from clipup.searches.checks import STDEV_FLOOR, state_array, state_number, state_whole
from clipup.searches.gradient import Gradients, GradientWork, estimate
from clipup.searches.population import PopulationSize
from clipup.searches.protocol import Figures, FloatArray, SearchSettings, SumBlocks
from clipup.searches.sampling import SEED_LIMIT, GaussianBatch, check_seed, draw_seed
from clipup.searches.shaping import check_finite, check_shaping, shape, tied_share


class PGPE:
    """Search by ask and tell for the parameters of highest fitness.

    One generation, with the paper's symbols (Algorithm 1)::

        delta_i ~ N(0, I) * stdev                                    line 2, i = 1 .. population / 2
        g_center = mean_i( (f+ - f-) / 2 * delta_i )                 line 3
        g_stdev  = mean_i( ((f+ + f-) / 2 - mean f) * (delta_i**2 - stdev**2) / stdev )      line 4
        center  += optimizer(g_center)                               line 5
        stdev   += clip(stdev_learning_rate * g_stdev, ± stdev_max_change * stdev)

    where f+ and f- are the shaped fitnesses of ``center + delta_i`` and ``center - delta_i``.

    Parameters
    ----------
    dimension, center : int, array
        The number of parameters, or where to start (default: zeros). One of them is needed.
    population_size : int, even
        λ, the number of candidates in a batch. Default: ``2 * ceil(10 + sqrt(dimension))``.
    max_speed : float
        v_max, the longest step of the center in a generation: the one number to tune.
    step_size : float
        α, default ``max_speed / 2``.
    momentum : float
        m, default 0.9.
    radius, stdev : float, float or array
        The norm of the initial standard deviation, the same in every coordinate (default: ``15 * max_speed``), or the
        standard deviation itself.
    stdev_learning_rate : float
        Ω, default 0.1; 0 keeps the standard deviation fixed.
    stdev_max_change : float or None
        Largest relative change of a standard deviation in a generation, default 0.2; None for no limit.
    fitness_shaping : {"centered-rank", "raw", "reward-normalized"}
        How fitnesses become weights in the gradient; the last is the original PGPE of the paper's appendix.
    fitness_max : float
        For "reward-normalized": the highest possible fitness, if it is known. If not, or once it is exceeded, the best
        fitness seen so far takes its place.
    optimizer : Optimizer
        An optimizer to use instead of the ClipUp that `max_speed`, `step_size` and `momentum` describe.
    interactions, population_max : int
        T and λ_max: a generation grows by `population_size` candidates until its interactions reach T or its candidates
        reach λ_max (default ``8 * population_size``). The last batch is cut so that λ_max is never exceeded.
    seed : int
        From 0 to 2**64 - 1. Equal seeds give equal searches, to the bit. Default: from the operating system.

    Notes
    -----
    Deviations from the paper: the center starts at zero, not near it. Ties share their mean rank. A standard deviation
    never falls below 1.2e-38. A step that would leave the range of float32 raises `Diverged` and changes nothing.

    >>> search = PGPE(dimension=3, max_speed=0.3, population_size=20, seed=1)
    >>> for _ in range(60):
    ...     candidates = search.ask()
    ...     ended = search.tell(-np.square(candidates - 1.0).sum(axis=1))
    >>> bool(np.abs(search.center - 1.0).max() < 0.3), search.generation
    (True, 60)
    """

    kind: ClassVar[str] = "pgpe"

    def __init__(
        self,
        *,
        dimension: int | None = None,
        center: ArrayLike | None = None,
        population_size: int | None = None,
        max_speed: float | None = None,
        step_size: float | None = None,
        momentum: float | None = None,
        radius: float | None = None,
        stdev: ArrayLike | None = None,
        stdev_learning_rate: float = 0.1,
        stdev_max_change: float | None = 0.2,
        fitness_shaping: str = "centered-rank",
        fitness_max: float | None = None,
        optimizer: Optimizer | None = None,
        interactions: int | None = None,
        population_max: int | None = None,
        seed: int | None = None,
    ) -> None:
        start = checks.initial_center(dimension, center)
        self._optimizer = checks.check_optimizer(optimizer, max_speed, step_size, momentum)
        spread = checks.initial_stdev(start.size, radius, stdev, self.max_speed)
        if check_number("stdev_learning_rate", stdev_learning_rate) < 0:
            raise InvalidArgument(
                f"stdev_learning_rate must be positive, or 0 to keep the stdev fixed, got {stdev_learning_rate!r}"
            )
        # At a change of 1 a standard deviation could reach zero in one generation.
        if stdev_max_change is not None and not 0 < check_number("stdev_max_change", stdev_max_change) < 1:
            raise InvalidArgument(
                f"stdev_max_change must lie between 0 and 1, or be None for no limit, got {stdev_max_change!r}"
            )
        self._stdev_learning_rate = float(stdev_learning_rate)
        self._stdev_max_change = None if stdev_max_change is None else float(stdev_max_change)
        self._size = PopulationSize.of(start.size, population_size, interactions, population_max)
        self._shaping = check_shaping(fitness_shaping, fitness_max)
        self._state = _State(
            center=start,
            stdev=spread,
            seed=draw_seed() if seed is None else check_seed(seed),
            population_size=self._size.batch,
            fitness_max=-math.inf if fitness_max is None else float(fitness_max),
        )
        self._settings: dict[str, object] = {
            "population_size": self._size.batch,
            "population_max": self._size.maximum,
            "interactions": self._size.interactions,
            "optimizer": repr(self._optimizer),
            "radius": norm(spread.astype(np.float64)),
            "stdev_learning_rate": self._stdev_learning_rate,
            "stdev_max_change": self._stdev_max_change,
            "fitness_shaping": self._shaping,
            "fitness_max": None if fitness_max is None else float(fitness_max),
        }
        # This generation's directions if ask() made all of them; otherwise None, and tell() makes them again.
        self._kept: list[FloatArray] | None = []
        # The memory of the directions, one array for each batch of a generation, written again in the next one: the
        # first touch of fresh memory would cost half as much as drawing the numbers.
        self._buffers: list[FloatArray] = []

    @classmethod
    def from_settings(cls, settings: SearchSettings, dimension: int) -> Self:
        """Return the search that the settings of a run describe."""
        radius = settings.radius_factor * settings.max_speed if settings.radius is None else settings.radius
        return cls(
            dimension=dimension,
            population_size=settings.population,
            radius=radius,
            stdev_learning_rate=settings.stdev_learning_rate,
            stdev_max_change=settings.stdev_max_change,
            fitness_shaping=settings.fitness_shaping,
            optimizer=make_optimizer(settings.optimizer, settings, dimension),
            interactions=settings.interactions,
            population_max=settings.population_max if settings.interactions is not None else None,
            seed=settings.seed,
        )

    def __repr__(self) -> str:
        return (
            f"PGPE(dimension={self.dimension}, population_size={self._size.batch}, optimizer={self._optimizer!r}, "
            f"seed={self._state.seed}, generation={self._state.generation})"
        )

    # -- ask and tell -------------------------------------------------------------------------------------------------

    def batch(self) -> GaussianBatch:
        """Return the candidates to evaluate next, without making them; the same until `tell` is called."""
        batch = self._next_batch()
        if self._state.asked == 0:
            self._kept = None  # tell() makes the directions of these candidates again; ask() keeps its own
            self._state = replace(self._state, asked=len(batch))
        return batch

    def _next_batch(self) -> GaussianBatch:
        state, start = self._state, self._state.fitnesses.size
        return GaussianBatch(
            state.seed, state.generation, start, self._size.stop(start), state.center.copy(), state.stdev.copy()
        )

    def following(self) -> GaussianBatch | None:
        """Return the batch that comes after `batch()` if the generation grows; None where it cannot grow."""
        batch = self._next_batch()
        stop = self._size.stop(batch.stop)
        return batch.until(stop) if stop > batch.stop else None

    def ask(self) -> FloatArray:
        """Return the candidates to evaluate next, one in each row; rows 2i and 2i + 1 mirror each other."""
        kept, asked_before = self._kept, self._state.asked > 0
        batch = self.batch()
        if kept is None or asked_before:
            return batch.candidates()
        number = batch.start // self._size.batch
        if number == len(self._buffers):
            self._buffers.append(np.empty((len(batch) // 2, self.dimension), np.float32))
        population = batch.candidates_keeping(self._buffers[number])
        self._kept = [*kept, *self._buffers[number]]
        return population

    def tell(
        self, fitnesses: ArrayLike, interactions: ArrayLike | None = None, *, sum_blocks: SumBlocks | None = None
    ) -> bool:
        """Take the fitnesses of the last batch (higher is better); return True when that ended a generation.

        `interactions` (a total, or one number per candidate) is needed when the population is adaptive, and only then.
        `sum_blocks` sums the gradient's blocks elsewhere; the result has the same bits. If anything is raised, the
        search is as it was before the call, and can be told again.
        """
        told = checks.check_told(fitnesses, self._state.asked)
        check_finite(told, self._shaping)
        done = self._state.interactions_done + self._size.count(interactions, told.size)
        generation = np.concatenate([self._state.fitnesses, told])
        if self._size.grows(generation.size, done):
            self._state = replace(self._state, fitnesses=generation, interactions_done=done, asked=0)
            return False
        self._update(generation, sum_blocks)
        return True

    # -- the update ---------------------------------------------------------------------------------------------------

    def _update(self, fitnesses: Vector, sum_blocks: SumBlocks | None) -> None:
        """Algorithm 1 from line 3 on: both gradients, the step of the center, the change of the stdev."""
        state = self._state
        finite = np.isfinite(fitnesses)
        fitness_max = max(state.fitness_max, float(fitnesses[finite].max(initial=-math.inf)))
        gradients = self._gradients(fitnesses, fitness_max, sum_blocks)  # lines 3 and 4
        before = self._optimizer.state_dict()
        try:
            step = np.asarray(self._optimizer.ascent(gradients.center), np.float64)
            if step.shape != (self.dimension,):
                raise InvalidArgument(
                    f"the optimizer must return a step of {self.dimension} numbers, got shape {step.shape}"
                )
            center = state.center + step  # line 5
            stdev = state.stdev.astype(np.float64)
            change = self._stdev_learning_rate * gradients.stdev
            if self._stdev_max_change is not None:
                limit = self._stdev_max_change * stdev
                change = np.clip(change, -limit, limit)
            stdev = np.maximum(stdev + change, STDEV_FLOOR)
            checks.check_reach(center, stdev, state.generation)
            updated = _State(
                center=center.astype(np.float32),
                stdev=stdev.astype(np.float32),
                seed=state.seed,
                population_size=fitnesses.size,
                fitness_max=fitness_max,
                generation=state.generation + 1,
                gradient_norm=norm(gradients.center),
                gradient_agreement=gradients.agreement,
                speed=norm(step),
                tied=tied_share(fitnesses),
                nonfinite=int(fitnesses.size - np.count_nonzero(finite)),
            )
        except BaseException:  # Ctrl-C too: the optimizer must never be a step ahead of its center
            self._optimizer.load_state_dict(before)
            raise
        self._kept = None  # first, so that an interruption here leaves no directions of another generation
        self._state = updated
        self._kept = []

    def _gradients(self, fitnesses: Vector, fitness_max: float, sum_blocks: SumBlocks | None) -> Gradients:
        with np.errstate(over="ignore", invalid="ignore"):
            weights = shape(fitnesses, self._shaping, fitness_max)
            work = GradientWork(weights, self._state.seed, self._state.generation, self.dimension)
            own = (work.block(number, self._kept) for number in range(work.block_count))
            gradients = estimate(work, self._state.stdev, own if sum_blocks is None else sum_blocks(work))
        if not (np.isfinite(gradients.center).all() and np.isfinite(gradients.stdev).all()):
            raise Diverged("the gradient overflowed: scale the fitnesses down, or use fitness_shaping='centered-rank'")
        return gradients

    # -- what can be seen ---------------------------------------------------------------------------------------------

    @property
    def center(self) -> FloatArray:
        """The current solution, a copy."""
        return self._state.center.copy()

    @property
    def stdev(self) -> FloatArray:
        """The standard deviation of each coordinate, a copy."""
        return self._state.stdev.copy()

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
    def optimizer(self) -> Optimizer:
        """The optimizer that turns gradients into steps."""
        return self._optimizer

    @property
    def max_speed(self) -> float | None:
        """The cap on `speed`; None if the optimizer has no cap."""
        return step_report(self._optimizer).max_speed

    @property
    def speed(self) -> float:
        """The norm of the last step of the center."""
        return self._state.speed

    @property
    def clipped(self) -> bool:
        """Whether the last step was clipped to `max_speed`."""
        return step_report(self._optimizer).clipped

    @property
    def gradient_norm(self) -> float:
        """The norm of the last gradient of the center."""
        return self._state.gradient_norm

    @property
    def gradient_agreement(self) -> float:
        """The cosine between the last gradient's two halves, from even and odd directions; about 0 when it is noise."""
        return self._state.gradient_agreement

    @property
    def nonfinite(self) -> int:
        """How many fitnesses of the last generation were not finite; they ranked last."""
        return self._state.nonfinite

    @property
    def tied(self) -> float:
        """The share of the last generation's candidates whose fitness equalled another's."""
        return self._state.tied

    def figures(self) -> Figures:
        """Return what there is to say about the last generation that ended."""
        state, report = self._state, step_report(self._optimizer)
        return Figures(
            population=state.population_size,
            speed=state.speed,
            max_speed=report.max_speed,
            clipped=report.clipped,
            stdev_norm=norm(state.stdev.astype(np.float64)),
            gradient_norm=state.gradient_norm,
            gradient_agreement=state.gradient_agreement,
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
        return state | checks.optimizer_state(self._optimizer)

    def load_state_dict(self, state: Mapping[str, StateValue]) -> None:
        """Go on from a state that `state_dict` gave; one that does not fit is refused and nothing changes."""
        state = checks.plain_state(self.kind, state)
        loaded = _State.of(state, self.dimension)
        self._size.check_progress(loaded.fitnesses.size, loaded.asked)
        if self._shaping != "centered-rank" and not np.isfinite(loaded.fitnesses).all():
            raise StateMismatch(f"the saved fitnesses must be finite for {self._shaping!r} shaping")
        checks.load_optimizer(self._optimizer, state, self.dimension)
        self._kept = None
        self._state = loaded


@dataclass(frozen=True, eq=False)
class _State:
    """The search between two calls: replaced whole or not at all. Its optimizer keeps its own state."""

    center: FloatArray
    stdev: FloatArray
    seed: int
    population_size: int  # of the last generation that ended
    fitness_max: float  # the best seen, or the one that was given
    generation: int = 0
    asked: int = 0  # candidates of the batch that waits for its fitnesses
    fitnesses: Vector = field(default_factory=lambda: np.empty(0))  # of this generation, so far
    interactions_done: int = 0  # in this generation
    gradient_norm: float = 0.0
    gradient_agreement: float = 0.0
    speed: float = 0.0
    tied: float = 0.0
    nonfinite: int = 0

    @classmethod
    def of(cls, state: Mapping[str, StateValue], dimension: int) -> _State:
        """Return the saved state of a search over `dimension` parameters, with each field checked."""
        center, stdev = (state_array(state, key, np.float32, dimension) for key in ("center", "stdev"))
        if not (np.isfinite(center).all() and np.isfinite(stdev).all() and (stdev > 0).all()):
            raise StateMismatch("the saved center must be finite and the saved stdev positive and finite")
        return cls(
            center=center,
            stdev=stdev,
            seed=state_whole(state, "seed", SEED_LIMIT),
            population_size=state_whole(state, "population_size"),
            fitness_max=state_number(state, "fitness_max"),
            generation=state_whole(state, "generation"),
            asked=state_whole(state, "asked"),
            fitnesses=state_array(state, "fitnesses", np.float64, None),
            interactions_done=state_whole(state, "interactions_done"),
            gradient_norm=state_number(state, "gradient_norm"),
            gradient_agreement=state_number(state, "gradient_agreement"),
            speed=state_number(state, "speed"),
            tied=state_number(state, "tied"),
            nonfinite=state_whole(state, "nonfinite"),
        )
