"""PGPE: policy gradients with parameter-based exploration (the paper's Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from clipup.errors import Diverged, InvalidArgument, InvalidFitness, StateMismatch
from clipup.optimizers.protocol import Optimizer, State, Vector, check_number, check_positive, norm, step_report
from clipup.optimizers.registry import make_optimizer
from clipup.searches import checks
from clipup.searches.checks import STDEV_FLOOR, state_number
from clipup.searches.gaussian import GaussianSearch, GaussianState, gaussian_state
from clipup.searches.gradient import Gradients, estimate
from clipup.searches.population import PopulationSize
from clipup.searches.protocol import FloatArray, SearchSettings, SumBlocks
from clipup.searches.sampling import check_seed, draw_seed
from clipup.searches.shaping import check_finite, check_shaping, shape

_ORTHOGONAL_MAX = 512  # directions in an orthogonal block: the time to make them grows with the square


@dataclass(frozen=True, eq=False, kw_only=True)
class _State(GaussianState):
    fitness_max: float  # the best seen, or the one that was given
    gradient_norm: float = 0.0
    gradient_agreement: float = 0.0


class PGPE(GaussianSearch[_State]):
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
    symmetric : bool
        Whether candidates come in mirrored pairs, the default. If not, the formulas below take the place of lines 3
        and 4, and the population may be odd.
    orthogonal : bool
        Whether the directions of a batch are orthogonal to each other (up to ``min(pairs, dimension, 512)`` of them).
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
    stdev_min, stdev_max : float
        Limits of the standard deviation of every coordinate.
    fitness_shaping : {"centered-rank", "raw", "reward-normalized", "nes", "linear", "normalized"}
        How fitnesses become weights in the gradient. "reward-normalized" is the original PGPE of the paper's appendix.
        "nes" are the utilities of Wierstra et al. (2014), times the population, because PGPE takes means where NES
        takes sums. "linear" are ranks from 0 to 1: PGPE's weights are differences of them, so they are those of
        "centered-rank" but for rounding. "normalized" are fitnesses of mean 0 and standard deviation 1.
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
    Without mirroring (Sehnke et al. 2010, section 3.1; b is the mean of the shaped fitnesses)::

        g_center = mean_i( (f_i - b) * delta_i )
        g_stdev  = mean_i( (f_i - b) * (delta_i**2 - stdev**2) / stdev )

    Orthogonal directions cut the variance of the center's gradient. For a linear fitness of slope s in dimension d, n
    independent pairs have the variance ``|s|**2 * (d + 1) / n`` (with a stdev of 1), and n orthogonal ones
    ``|s|**2 * (d + 2 - n) / n``: the share ``(n - 1) / (d + 1)`` is gone, about pairs / dimension. It takes time that
    grows with the square of the pairs, so it pays only where the dimension is not much above the number of pairs.

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
        stdev_min: float | None = None,
        stdev_max: float | None = None,
        fitness_shaping: str = "centered-rank",
        fitness_max: float | None = None,
        symmetric: bool = True,
        orthogonal: bool = False,
        optimizer: Optimizer | None = None,
        interactions: int | None = None,
        population_max: int | None = None,
        seed: int | None = None,
    ) -> None:
        start = checks.initial_center(dimension, center)
        optimizer = checks.check_optimizer(optimizer, max_speed, step_size, momentum)
        spread = checks.initial_stdev(start.size, radius, stdev, step_report(optimizer).max_speed)
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
        self._stdev_limits = _check_limits(spread, stdev_min, stdev_max)
        size = PopulationSize.of(start.size, population_size, interactions, population_max, mirrored=symmetric)
        self._shaping = check_shaping(fitness_shaping, fitness_max)
        if not symmetric and self._shaping == "reward-normalized":
            raise InvalidArgument("'reward-normalized' shaping compares mirrored pairs; leave symmetric=False out")
        state = _State(
            center=start,
            stdev=spread,
            seed=draw_seed() if seed is None else check_seed(seed),
            population_size=size.batch,
            fitness_max=-math.inf if fitness_max is None else float(fitness_max),
        )
        settings: dict[str, object] = {
            "stdev_learning_rate": self._stdev_learning_rate,
            "stdev_max_change": self._stdev_max_change,
            "fitness_shaping": self._shaping,
            "fitness_max": None if fitness_max is None else float(fitness_max),
        }
        if stdev_min is not None or stdev_max is not None:
            settings |= {"stdev_min": self._stdev_limits[0], "stdev_max": self._stdev_limits[1]}
        if not symmetric:
            settings["sampling"] = "unmirrored"
        if orthogonal:
            settings["directions"] = "orthogonal"
        directions_in_batch = size.batch // 2 if symmetric else size.batch
        block = min(directions_in_batch, start.size, _ORTHOGONAL_MAX) if orthogonal else 0
        super().__init__(size, state, settings, optimizer, mirrored=symmetric, orthogonal=block)

    @classmethod
    def from_settings(cls, settings: SearchSettings, dimension: int) -> Self:
        """Return the search that the settings of a run describe."""
        return cls(
            dimension=dimension,
            population_size=settings.population,
            radius=settings.initial_radius(dimension),
            stdev_learning_rate=settings.stdev_learning_rate,
            stdev_max_change=settings.stdev_max_change,
            fitness_shaping=settings.fitness_shaping,
            optimizer=make_optimizer(settings.optimizer, settings, dimension),
            interactions=settings.interactions,
            population_max=settings.population_max if settings.interactions is not None else None,
            seed=settings.seed,
        )

    def adjust(self, settings: SearchSettings, radius_scale: float = 1.0) -> None:
        """Go on with another population, optimizer and `stdev_learning_rate`, from the next generation on."""
        super().adjust(settings, radius_scale)
        self._stdev_learning_rate = settings.stdev_learning_rate

    def _check_fitnesses(self, told: Vector) -> None:
        check_finite(told, self._shaping)

    # -- the update ---------------------------------------------------------------------------------------------------

    def _updated(self, fitnesses: Vector, sum_blocks: SumBlocks | None) -> _State:
        """Algorithm 1 from line 3 on: both gradients, the step of the center, the change of the stdev."""
        state = self._state
        fitness_max = max(state.fitness_max, float(fitnesses[np.isfinite(fitnesses)].max(initial=-math.inf)))
        gradients = self._gradients(fitnesses, fitness_max, sum_blocks)  # lines 3 and 4
        with self._ascent(gradients.center) as step:
            center = state.center + step  # line 5
            stdev = state.stdev.astype(np.float64)
            change = self._stdev_learning_rate * gradients.stdev
            if self._stdev_max_change is not None:
                limit = self._stdev_max_change * stdev
                change = np.clip(change, -limit, limit)
            stdev = np.clip(stdev + change, *self._stdev_limits)
            checks.check_reach(center, stdev, state.generation)
            return self._next_state(
                fitnesses,
                center,
                step,
                stdev=stdev.astype(np.float32),
                fitness_max=fitness_max,
                gradient_norm=norm(gradients.center),
                gradient_agreement=gradients.agreement,
            )

    def _gradients(self, fitnesses: Vector, fitness_max: float, sum_blocks: SumBlocks | None) -> Gradients:
        with np.errstate(over="ignore", invalid="ignore"):
            weights = shape(fitnesses, self._shaping, fitness_max, mirrored=self._mirrored)
            work = self._work(weights)
            gradients = estimate(work, self._state.stdev, self._blocks(work, sum_blocks))
        if not (np.isfinite(gradients.center).all() and np.isfinite(gradients.stdev).all()):
            raise Diverged("the gradient overflowed: scale the fitnesses down, or use fitness_shaping='centered-rank'")
        return gradients

    # -- what can be seen ---------------------------------------------------------------------------------------------

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer that turns gradients into steps."""
        return cast(Optimizer, self._optimizer)

    @property
    def max_speed(self) -> float | None:
        """The cap on `speed`; None if the optimizer has no cap."""
        return step_report(self.optimizer).max_speed

    @property
    def clipped(self) -> bool:
        """Whether the last step was clipped to `max_speed`."""
        return step_report(self.optimizer).clipped

    @property
    def gradient_norm(self) -> float:
        """The norm of the last gradient of the center."""
        return self._state.gradient_norm

    @property
    def gradient_agreement(self) -> float:
        """The cosine between the last gradient's two halves, from even and odd directions; about 0 when it is noise."""
        return self._state.gradient_agreement

    def _gradient_figures(self) -> tuple[float, float]:
        return self._state.gradient_norm, self._state.gradient_agreement

    def _loaded(self, state: State) -> _State:
        loaded = _State(
            **gaussian_state(state, self.dimension),
            fitness_max=state_number(state, "fitness_max"),
            gradient_norm=state_number(state, "gradient_norm"),
            gradient_agreement=state_number(state, "gradient_agreement"),
        )
        try:
            check_finite(loaded.fitnesses, self._shaping)
        except InvalidFitness:
            raise StateMismatch(f"the saved fitnesses must be finite for {self._shaping!r} shaping") from None
        return loaded


def _check_limits(stdev: FloatArray, least: float | None, most: float | None) -> tuple[float, float]:
    low = STDEV_FLOOR if least is None else max(float(STDEV_FLOOR), check_positive("stdev_min", least))
    high = math.inf if most is None else check_positive("stdev_max", most)
    if not (low <= stdev.min() * (1 + 1e-6) and stdev.max() <= high * (1 + 1e-6)):
        raise InvalidArgument(
            f"the initial stdev must lie between stdev_min={least!r} and stdev_max={most!r}, "
            f"got {stdev.min():g} to {stdev.max():g}"
        )
    return float(low), high
