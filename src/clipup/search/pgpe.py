"""PGPE: policy gradients with parameter-based exploration (the paper's Algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from clipup.errors import Diverged, InvalidArgument, InvalidFitness, StateMismatch, WrongOrder
from clipup.optimizers.clipup import ClipUp
from clipup.optimizers.protocol import Optimizer, State, StateValue, check_positive, norm
from clipup.search import settings
from clipup.search.fitness import FitnessArray, check_finite, shape, tied_share
from clipup.search.gradient import Gradients, GradientWork, Sums, estimate
from clipup.search.sampling import Batch, FloatArray, check_seed, draw_seed

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
        Ω, default 0.1.
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
        momentum: float = 0.9,
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
        self._center = settings.initial_center(dimension, center)
        self._optimizer = settings.make_optimizer(optimizer, max_speed, step_size, momentum)
        self._stdev = settings.initial_stdev(self._center.size, radius, stdev, self.max_speed)
        self._stdev_learning_rate = check_positive("stdev_learning_rate", stdev_learning_rate)
        self._stdev_max_change = settings.check_stdev_max_change(stdev_max_change)
        self._batch_size = settings.check_population_size(population_size, self._center.size)
        self._interactions, self._population_max = settings.check_adaptive(
            interactions, population_max, self._batch_size
        )
        self._shaping = settings.check_shaping(fitness_shaping, fitness_max)
        self._fitness_max = -math.inf if fitness_max is None else float(fitness_max)
        self._seed = draw_seed() if seed is None else check_seed(seed)

        self._generation = 0
        self._asked = 0  # candidates of the batch that waits for its fitnesses
        self._fitnesses: FitnessArray = np.empty(0)  # of this generation, so far
        self._interactions_done = 0
        self._kept: list[FloatArray] | None = []  # this generation's directions, while ask() made all of them
        self._population_size = self._batch_size
        self._gradient_norm = self._speed = self._gradient_agreement = self._tied = 0.0
        self._nonfinite = 0

    def __repr__(self) -> str:
        return (
            f"PGPE(dimension={self.dimension}, population_size={self._batch_size}, optimizer={self._optimizer!r}, "
            f"seed={self._seed}, generation={self._generation})"
        )

    # -- what can be seen ---------------------------------------------------------------------------------------------

    @property
    def center(self) -> FloatArray:
        """The current solution, a copy."""
        return self._center.copy()

    @property
    def stdev(self) -> FloatArray:
        """The standard deviation of each coordinate, a copy."""
        return self._stdev.copy()

    @property
    def dimension(self) -> int:
        """The number of parameters."""
        return self._center.size

    @property
    def seed(self) -> int:
        """The seed that fixes every candidate."""
        return self._seed

    @property
    def generation(self) -> int:
        """The number of updates made."""
        return self._generation

    @property
    def population_size(self) -> int:
        """The candidates of the last generation that ended; before the first, those of a batch."""
        return self._population_size

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
        return self._speed

    @property
    def clipped(self) -> bool:
        """Whether the last step was clipped to `max_speed`."""
        return isinstance(self._optimizer, ClipUp) and self._optimizer.clipped

    @property
    def gradient_norm(self) -> float:
        """The norm of the last gradient of the center."""
        return self._gradient_norm

    @property
    def gradient_agreement(self) -> float:
        """The cosine between the last gradient's two halves, from even and odd directions; about 0 when it is noise."""
        return self._gradient_agreement

    @property
    def nonfinite(self) -> int:
        """How many fitnesses of the last generation were not finite, and ranked last."""
        return self._nonfinite

    @property
    def tied(self) -> float:
        """The share of the last generation's candidates whose fitness equalled another's."""
        return self._tied

    # -- ask and tell -------------------------------------------------------------------------------------------------

    def batch(self) -> Batch:
        """Return what is to be evaluated next, without making it; until `tell`, asking again gives the same."""
        start = self._fitnesses.size
        stop = start + self._batch_size
        if self._population_max is not None:
            stop = min(stop, self._population_max)
        if self._asked == 0:
            self._asked = stop - start
            self._kept = None  # whoever makes these candidates makes their directions; ask() puts its own back
        return Batch(self._seed, self._generation, start, stop, self.center, self.stdev)

    def ask(self) -> FloatArray:
        """Return the candidates to evaluate next, one a row; rows 2i and 2i + 1 mirror each other about the center."""
        kept, asked_before = self._kept, self._asked > 0
        population, noise = self.batch().candidates_and_directions()
        if kept is not None and not asked_before:
            self._kept = [*kept, *noise]
        return population

    def tell(
        self,
        fitnesses: ArrayLike,
        interactions: ArrayLike | None = None,
        *,
        sum_blocks: SumBlocks | None = None,
    ) -> bool:
        """Take the fitnesses of the last batch, higher being better; return True when that ended a generation.

        `interactions` (a total, or one number per candidate) is needed when the population is adaptive, and only then.
        `sum_blocks` sums the gradient's blocks elsewhere; the result has the same bits.
        """
        told = self._check_fitnesses(fitnesses)
        done = self._interactions_done + self._check_interactions(interactions)
        generation = np.concatenate([self._fitnesses, told])
        if self._interactions is not None and done < self._interactions and not self._is_full(generation.size):
            self._fitnesses, self._interactions_done, self._asked = generation, done, 0
            return False
        self._update(generation, sum_blocks)
        return True

    def _is_full(self, candidates: int) -> bool:
        return self._population_max is not None and candidates >= self._population_max

    def _check_fitnesses(self, fitnesses: ArrayLike) -> FitnessArray:
        if self._asked == 0:
            raise WrongOrder("tell needs candidates to be told of: call ask() first, then tell() once")
        told = np.array(fitnesses, dtype=np.float64)
        if told.shape != (self._asked,):
            raise InvalidFitness(f"{self._asked} fitnesses are needed, one a candidate, got shape {told.shape}")
        check_finite(told, self._shaping)
        return told

    def _check_interactions(self, interactions: ArrayLike | None) -> int:
        if self._interactions is None:
            if interactions is not None:
                raise InvalidArgument(
                    "interactions were told, but the population is not adaptive; make PGPE with interactions=T, "
                    "or leave them out"
                )
            return 0
        if interactions is None:
            raise InvalidArgument(
                f"tell needs the interactions of the batch: the population grows until they reach {self._interactions}"
            )
        counts = np.asarray(interactions)
        if counts.shape not in {(), (self._asked,)} or counts.dtype.kind not in "iu" or (counts < 0).any():
            raise InvalidArgument(
                f"interactions must be a whole number or {self._asked} of them, none negative, "
                f"got shape {counts.shape} of {counts.dtype}"
            )
        return int(counts.sum())

    # -- the update ---------------------------------------------------------------------------------------------------

    def _update(self, fitnesses: FitnessArray, sum_blocks: SumBlocks | None) -> None:
        finite = np.isfinite(fitnesses)
        fitness_max = max(self._fitness_max, float(fitnesses[finite].max(initial=-math.inf)))
        with np.errstate(over="ignore", invalid="ignore"):
            weights = shape(fitnesses, self._shaping, fitness_max)
            work = GradientWork(weights, self._seed, self._generation, self.dimension)
            blocks = self._own_blocks(work) if sum_blocks is None else sum_blocks(work)
            gradients = estimate(work, self._stdev, blocks)
        if not (np.isfinite(gradients.center).all() and np.isfinite(gradients.stdev).all()):
            raise Diverged("the gradient overflowed: scale the fitnesses down, or use fitness_shaping='centered-rank'")
        before = self._optimizer.state_dict()
        step = self._optimizer.ascent(gradients.center)
        center, stdev = self._center + step, self._next_stdev(gradients)
        reach = np.abs(center) + _REACH * stdev
        if not (reach < _FLOAT32_MAX).all():
            self._optimizer.load_state_dict(before)
            raise Diverged(
                f"the search would leave the range of float32 at coordinate {int(np.argmax(reach))} "
                f"(generation {self._generation}); lower max_speed, or the step size of the optimizer"
            )
        # Nothing above this line has changed the search.
        self._center, self._stdev = center.astype(np.float32), stdev.astype(np.float32)
        self._generation += 1
        self._population_size = fitnesses.size
        self._fitness_max = fitness_max
        self._gradient_norm, self._speed = norm(gradients.center), norm(step)
        self._gradient_agreement, self._tied = gradients.agreement, tied_share(fitnesses)
        self._nonfinite = int(fitnesses.size - np.count_nonzero(finite))
        self._fitnesses, self._interactions_done, self._asked, self._kept = np.empty(0), 0, 0, []

    def _own_blocks(self, work: GradientWork) -> Iterable[Sums]:
        return (work.block(number, self._kept) for number in range(work.block_count))

    def _next_stdev(self, gradients: Gradients) -> FitnessArray:
        stdev = self._stdev.astype(np.float64)
        change = self._stdev_learning_rate * gradients.stdev
        if self._stdev_max_change is not None:
            limit = self._stdev_max_change * stdev
            change = np.clip(change, -limit, limit)
        return np.maximum(stdev + change, STDEV_FLOOR)

    # -- state --------------------------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return everything that changes during a search, flat: arrays, ints, floats and strings.

        A search of the same settings that loads it goes on to the same bits, also from the middle of a generation.
        """
        state: State = {
            "kind": "pgpe",
            "center": self.center,
            "stdev": self.stdev,
            "seed": self._seed,
            "generation": self._generation,
            "asked": self._asked,
            "fitnesses": self._fitnesses.copy(),
            "interactions_done": self._interactions_done,
            "population_size": self._population_size,
            "fitness_max": self._fitness_max,
            "gradient_norm": self._gradient_norm,
            "gradient_agreement": self._gradient_agreement,
            "speed": self._speed,
            "tied": self._tied,
            "nonfinite": self._nonfinite,
        }
        return state | {f"optimizer.{key}": value for key, value in self._optimizer.state_dict().items()}

    def load_state_dict(self, state: Mapping[str, StateValue]) -> None:
        """Go on from a state that `state_dict` gave; one that does not fit is refused and nothing changes."""
        loaded = settings.LoadedState.of(state, self.dimension, self._batch_size, self._population_max)
        try:
            self._optimizer.load_state_dict(loaded.optimizer)
        except StateMismatch as error:
            raise StateMismatch(f"the saved optimizer does not fit: {error}") from None
        self._center, self._stdev, self._fitnesses = loaded.center, loaded.stdev, loaded.fitnesses
        self._seed, self._generation, self._asked = loaded.seed, loaded.generation, loaded.asked
        self._interactions_done, self._population_size = loaded.interactions_done, loaded.population_size
        self._nonfinite, self._fitness_max = loaded.nonfinite, loaded.fitness_max
        self._gradient_norm, self._gradient_agreement = loaded.gradient_norm, loaded.gradient_agreement
        self._speed, self._tied = loaded.speed, loaded.tied
        self._kept = None
