"""PGPE: policy gradients with parameter-based exploration (the paper's Algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from clipup.errors import Diverged, InvalidArgument, StateMismatch
from clipup.optimizers.clipup import ClipUp
from clipup.optimizers.protocol import Optimizer, State, StateValue, norm
from clipup.searches import settings
from clipup.searches.fitness import FitnessArray, shape, tied_share
from clipup.searches.gradient import Gradients, GradientWork, Sums, estimate
from clipup.searches.sampling import Batch, FloatArray, check_seed, draw_seed
from clipup.searches.state import SearchState, optimizer_state, plain

SumBlocks = Callable[[GradientWork], Iterable[Sums]]

# A standard deviation never falls below the smallest normal float32: at zero a coordinate could never be explored
# again, and the formula for its gradient would divide by it.
STDEV_FLOOR = np.finfo(np.float32).tiny
_FLOAT32_MAX = float(np.finfo(np.float32).max)
# No standard normal that numpy draws in float32 comes near 16, so a center that is this far from the end of the range
# has candidates within it.
_REACH = 16.0


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
        λ, the candidates of a batch. Default: ``2 * ceil(10 + sqrt(dimension))``.
    max_speed : float
        v_max, the longest step that the center makes in a generation: the one number to tune.
    step_size : float
        α, default ``max_speed / 2``.
    momentum : float
        m, default 0.9.
    radius, stdev : float, float or array
        The norm of the initial standard deviation, the same in every coordinate (default: ``15 * max_speed``), or the
        standard deviation itself.
    stdev_learning_rate : float
        Ω, default 0.1; 0 keeps the standard deviation as it is.
    stdev_max_change : float or None
        Largest relative change of a coordinate's standard deviation in a generation, default 0.2; None for no limit.
    fitness_shaping : {"centered-rank", "raw", "reward-normalized"}
        What the gradient sees of the fitnesses; the last is the original PGPE of the paper's appendix.
    fitness_max : float
        For "reward-normalized": the highest fitness possible, where known; otherwise, or once exceeded, the best seen.
    optimizer : Optimizer
        Instead of the ClipUp that `max_speed`, `step_size` and `momentum` describe.
    interactions, population_max : int
        T and λ_max: a generation grows by `population_size` candidates until its interactions reach T or its candidates
        λ_max (default ``8 * population_size``). A last batch is cut so that λ_max is never exceeded.
    seed : int
        From 0 to 2**64 - 1. Equal seeds give equal searches, to the bit. Default: from the operating system.

    Notes
    -----
    Deviations from the paper: the center starts at zero, not near it; ties share their mean rank; a standard deviation
    never falls below 1.2e-38; a step that would leave float32's range raises `Diverged` and changes nothing.

    >>> search = PGPE(dimension=3, max_speed=0.3, population_size=20, seed=1)
    >>> for _ in range(60):
    ...     candidates = search.ask()
    ...     ended = search.tell(-np.square(candidates - 1.0).sum(axis=1))
    >>> bool(np.abs(search.center - 1.0).max() < 0.3), search.generation
    (True, 60)
    """

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
        start = settings.initial_center(dimension, center)
        self._optimizer = settings.make_optimizer(optimizer, max_speed, step_size, momentum)
        spread = settings.initial_stdev(start.size, radius, stdev, self.max_speed)
        self._stdev_learning_rate = settings.check_stdev_learning_rate(stdev_learning_rate)
        self._stdev_max_change = settings.check_stdev_max_change(stdev_max_change)
        self._batch_size = settings.check_population_size(population_size, start.size)
        self._interactions, self._population_max = settings.check_adaptive(
            interactions, population_max, self._batch_size
        )
        self._shaping = settings.check_shaping(fitness_shaping, fitness_max)
        self._state = SearchState(
            center=start,
            stdev=spread,
            seed=draw_seed() if seed is None else check_seed(seed),
            population_size=self._batch_size,
            fitness_max=-math.inf if fitness_max is None else float(fitness_max),
        )
        # This generation's directions, while ask() made all of them; otherwise None, and tell() makes them again.
        self._kept: list[FloatArray] | None = []
        # Where they are kept, one array for each batch of a generation, written anew in the next: the first touch of
        # fresh memory would cost half as much as drawing the numbers.
        self._buffers: list[FloatArray] = []

    def __repr__(self) -> str:
        return (
            f"PGPE(dimension={self.dimension}, population_size={self._batch_size}, optimizer={self._optimizer!r}, "
            f"seed={self._state.seed}, generation={self._state.generation})"
        )

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
        """The candidates of the last generation that ended; before the first, those of a batch."""
        return self._state.population_size

    @property
    def batch_size(self) -> int:
        """The candidates by which a generation grows: the `population_size` that was asked for."""
        return self._batch_size

    @property
    def population_max(self) -> int | None:
        """The bound of an adaptive population; None when the population is not adaptive."""
        return self._population_max

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer that turns gradients into steps."""
        return self._optimizer

    @property
    def max_speed(self) -> float | None:
        """The cap on `speed`, where the optimizer has one."""
        return self._optimizer.max_speed if isinstance(self._optimizer, ClipUp) else None

    @property
    def speed(self) -> float:
        """The norm of the last step of the center."""
        return self._state.speed

    @property
    def clipped(self) -> bool:
        """Whether the last step was clipped to `max_speed`."""
        return isinstance(self._optimizer, ClipUp) and self._optimizer.clipped

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
        """How many fitnesses of the last generation were not finite, and ranked last."""
        return self._state.nonfinite

    @property
    def tied(self) -> float:
        """The share of the last generation's candidates whose fitness equalled another's."""
        return self._state.tied

    # -- ask and tell -------------------------------------------------------------------------------------------------

    def batch(self) -> Batch:
        """Return what is to be evaluated next, without making it; until `tell`, asking again gives the same."""
        state = self._state
        start = state.fitnesses.size
        stop = start + self._batch_size
        if self._population_max is not None:
            stop = min(stop, self._population_max)
        if state.asked == 0:
            self._kept = None  # whoever makes these candidates makes their directions; ask() puts its own back
            self._state = replace(state, asked=stop - start)
        return Batch(state.seed, state.generation, start, stop, self.center, self.stdev)

    def ask(self) -> FloatArray:
        """Return the candidates to evaluate next, one a row; rows 2i and 2i + 1 mirror each other about the center."""
        kept, asked_before = self._kept, self._state.asked > 0
        batch = self.batch()
        if kept is None or asked_before:
            return batch.candidates()
        directions = self._buffer(batch)
        population = batch.candidates_keeping(directions)
        self._kept = [*kept, *directions]
        return population

    def _buffer(self, batch: Batch) -> FloatArray:
        number = batch.start // self._batch_size
        if number == len(self._buffers):
            self._buffers.append(np.empty((len(batch) // 2, self.dimension), np.float32))
        return self._buffers[number]

    def tell(
        self,
        fitnesses: ArrayLike,
        interactions: ArrayLike | None = None,
        *,
        sum_blocks: SumBlocks | None = None,
    ) -> bool:
        """Take the fitnesses of the last batch, higher being better; return True when that ended a generation.

        `interactions` (a total, or one number per candidate) is needed when the population is adaptive, and only then.
        `sum_blocks` sums the gradient's blocks elsewhere; the result has the same bits. Whatever is raised, the search
        is as it was before the call, and can be told again.
        """
        told = settings.check_told(fitnesses, self._state.asked, self._shaping)
        counted = settings.check_interactions(interactions, told.size, self._interactions)
        generation = np.concatenate([self._state.fitnesses, told])
        done = self._state.interactions_done + counted
        if self._grows(generation.size, done):
            self._state = replace(self._state, fitnesses=generation, interactions_done=done, asked=0)
            return False
        self._update(generation, sum_blocks)
        return True

    def _grows(self, candidates: int, interactions: int) -> bool:
        if self._interactions is None or self._population_max is None:
            return False
        return interactions < self._interactions and candidates < self._population_max

    # -- the update ---------------------------------------------------------------------------------------------------

    def _update(self, fitnesses: FitnessArray, sum_blocks: SumBlocks | None) -> None:
        finite = np.isfinite(fitnesses)
        fitness_max = max(self._state.fitness_max, float(fitnesses[finite].max(initial=-math.inf)))
        gradients = self._gradients(fitnesses, fitness_max, sum_blocks)
        before = self._optimizer.state_dict()
        try:
            step = np.asarray(self._optimizer.ascent(gradients.center), np.float64)
            center, stdev = self._next_center(step), self._next_stdev(gradients)
            self._check_reach(center, stdev)
            state = replace(
                self._state,
                center=center.astype(np.float32),
                stdev=stdev.astype(np.float32),
                population_size=fitnesses.size,
                fitness_max=fitness_max,
                generation=self._state.generation + 1,
                asked=0,
                fitnesses=np.empty(0),
                interactions_done=0,
                gradient_norm=norm(gradients.center),
                gradient_agreement=gradients.agreement,
                speed=norm(step),
                tied=tied_share(fitnesses),
                nonfinite=int(fitnesses.size - np.count_nonzero(finite)),
            )
        except (
            BaseException
        ):  # Ctrl-C too: an optimizer that is a step ahead of its center would never fall back in line
            self._optimizer.load_state_dict(before)
            raise
        self._kept = None  # first, lest an interruption leave directions of another generation
        self._state = state
        self._kept = []

    def _gradients(self, fitnesses: FitnessArray, fitness_max: float, sum_blocks: SumBlocks | None) -> Gradients:
        with np.errstate(over="ignore", invalid="ignore"):
            weights = shape(fitnesses, self._shaping, fitness_max)
            work = GradientWork(weights, self._state.seed, self._state.generation, self.dimension)
            blocks = self._own_blocks(work) if sum_blocks is None else sum_blocks(work)
            gradients = estimate(work, self._state.stdev, blocks)
        if not (np.isfinite(gradients.center).all() and np.isfinite(gradients.stdev).all()):
            raise Diverged("the gradient overflowed: scale the fitnesses down, or use fitness_shaping='centered-rank'")
        return gradients

    def _own_blocks(self, work: GradientWork) -> Iterable[Sums]:
        return (work.block(number, self._kept) for number in range(work.block_count))

    def _next_center(self, step: FitnessArray) -> FitnessArray:
        if step.shape != (self.dimension,):
            raise InvalidArgument(
                f"the optimizer must return a step of {self.dimension} numbers, got shape {step.shape}"
            )
        return self._state.center + step

    def _next_stdev(self, gradients: Gradients) -> FitnessArray:
        stdev = self._state.stdev.astype(np.float64)
        change = self._stdev_learning_rate * gradients.stdev
        if self._stdev_max_change is not None:
            limit = self._stdev_max_change * stdev
            change = np.clip(change, -limit, limit)
        return np.maximum(stdev + change, STDEV_FLOOR)

    def _check_reach(self, center: FitnessArray, stdev: FitnessArray) -> None:
        reach = np.abs(center) + _REACH * stdev
        if not (reach < _FLOAT32_MAX).all():
            raise Diverged(
                f"the search would leave the range of float32 at coordinate {int(np.argmax(reach))} "
                f"(generation {self.generation}); lower max_speed, or the step size of the optimizer"
            )

    # -- state --------------------------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return everything that changes during a search, flat: arrays, ints, floats and strings.

        A search of the same settings that loads it goes on to the same bits, also from the middle of a generation.
        """
        own = {f"optimizer.{key}": value for key, value in self._optimizer.state_dict().items()}
        return self._state.to_dict() | own

    def load_state_dict(self, state: Mapping[str, StateValue]) -> None:
        """Go on from a state that `state_dict` gave; one that does not fit is refused and nothing changes."""
        state = plain(state)
        loaded = SearchState.from_dict(state, self.dimension)
        loaded.check_progress(self._batch_size, self._population_max)
        if self._shaping != "centered-rank" and not np.isfinite(loaded.fitnesses).all():
            raise StateMismatch(f"the saved fitnesses must be finite for {self._shaping!r} shaping")
        before = self._optimizer.state_dict()
        try:
            self._optimizer.load_state_dict(optimizer_state(state, self.dimension))
        except BaseException as error:
            self._optimizer.load_state_dict(before)
            if isinstance(error, StateMismatch):
                raise StateMismatch(f"the saved optimizer does not fit: {error}") from None
            raise
        self._kept = None
        self._state = loaded
