"""OpenAI-ES: evolution strategies as a scalable alternative to reinforcement learning (Salimans et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from clipup.errors import InvalidArgument, InvalidFitness, StateMismatch
from clipup.optimizers.adam import Adam
from clipup.optimizers.protocol import Optimizer, State, Vector, check_number, norm, step_report
from clipup.optimizers.registry import make_optimizer
from clipup.searches import checks
from clipup.searches.checks import state_number
from clipup.searches.gaussian import GaussianSearch, GaussianState, gaussian_state
from clipup.searches.gradient import agreement
from clipup.searches.population import PopulationSize
from clipup.searches.protocol import SearchSettings, SumBlocks
from clipup.searches.sampling import check_seed, draw_seed
from clipup.searches.shaping import UTILITIES, Weights, check_finite, utilities

STEP_SIZE, STDEV = 0.01, 0.02  # the authors' settings for MuJoCo


@dataclass(frozen=True, eq=False, kw_only=True)
class _State(GaussianState):
    gradient_norm: float = 0.0
    gradient_agreement: float = 0.0


class OpenAIES(GaussianSearch[_State]):
    """Evolution strategies of Salimans et al. (2017): a fixed stdev, mirrored candidates, ranks, any optimizer.

    One generation (their Algorithm 1 with mirrored sampling, ranks and weight decay, sections 2 and 2.1)::

        e_i ~ N(0, I)                                            i = 1 .. n / 2
        f+, f- = shaped fitness of  theta + s * e_i,  theta - s * e_i
        g      = 1 / (n * s) * sum_i (f+ - f-) * e_i
        theta += optimizer(g - weight_decay * theta)

    ======  ====================  =====================================================================
    symbol  argument              meaning
    ======  ====================  =====================================================================
    theta   ``center``            where to start; default: zeros
    s       ``stdev``             the fixed standard deviation; default 0.02, or from ``radius`` or ``max_speed``
    n       ``population_size``   candidates in a generation, even
    a       ``step_size``         of the optimizer; default 0.01
    ======  ====================  =====================================================================

    Parameters
    ----------
    optimizer, step_size, max_speed, momentum
        Adam with `step_size`, as in the paper. With `max_speed`, ClipUp takes its place, and `stdev` follows from it
        as in :class:`clipup.PGPE`. With `optimizer`, that one does.
    weight_decay : float
        Pulls the center towards zero. Default: 0. The authors' program has 0.005, without the factor ``1 / s`` in its
        gradient: with their stdev of 0.02 that is 0.25 here.
    fitness_shaping : {"centered-rank", "raw", "nes", "linear", "normalized"}
        How fitnesses become utilities.
    dimension, center, radius, stdev, interactions, population_max, seed
        As in :class:`clipup.PGPE`.

    Notes
    -----
    Deviations: the authors' program leaves the factor ``1 / s`` out, which Adam hides, except from the weight decay.
    Noise comes from its index, not from a shared table. Ties share their mean rank.

    >>> search = OpenAIES(dimension=3, stdev=0.1, step_size=0.1, population_size=20, seed=1)
    >>> for _ in range(60):
    ...     ended = search.tell(-np.square(search.ask() - 1.0).sum(axis=1))
    >>> bool(np.abs(search.center - 1.0).max() < 0.3)
    True
    """

    kind: ClassVar[str] = "openai-es"

    def __init__(
        self,
        *,
        dimension: int | None = None,
        center: ArrayLike | None = None,
        population_size: int | None = None,
        step_size: float | None = None,
        weight_decay: float = 0.0,
        max_speed: float | None = None,
        momentum: float | None = None,
        radius: float | None = None,
        stdev: ArrayLike | None = None,
        fitness_shaping: str = "centered-rank",
        optimizer: Optimizer | None = None,
        interactions: int | None = None,
        population_max: int | None = None,
        seed: int | None = None,
    ) -> None:
        start = checks.initial_center(dimension, center)
        if optimizer is None and max_speed is None and momentum is None:
            optimizer = Adam(STEP_SIZE if step_size is None else step_size)
        else:
            optimizer = checks.check_optimizer(optimizer, max_speed, step_size, momentum)
        if radius is None and stdev is None and step_report(optimizer).max_speed is None:
            stdev = STDEV
        spread = checks.initial_stdev(start.size, radius, stdev, step_report(optimizer).max_speed)
        if check_number("weight_decay", weight_decay) < 0:
            raise InvalidArgument(f"weight_decay must not be negative, got {weight_decay!r}")
        if fitness_shaping not in UTILITIES:
            raise InvalidArgument(f"fitness_shaping must be one of {', '.join(UTILITIES)}, got {fitness_shaping!r}")
        self._weight_decay = float(weight_decay)
        self._shaping = fitness_shaping
        size = PopulationSize.of(start.size, population_size, interactions, population_max)
        state = _State(
            center=start,
            stdev=spread,
            seed=draw_seed() if seed is None else check_seed(seed),
            population_size=size.batch,
        )
        settings = {"weight_decay": self._weight_decay, "fitness_shaping": fitness_shaping}
        super().__init__(size, state, settings, optimizer)

    @classmethod
    def from_settings(cls, settings: SearchSettings, dimension: int) -> Self:
        """Return the search that the settings of a run describe."""
        return cls(
            dimension=dimension,
            population_size=settings.population,
            radius=settings.initial_radius(dimension),
            weight_decay=settings.weight_decay,
            fitness_shaping=settings.fitness_shaping,
            optimizer=make_optimizer(settings.optimizer, settings, dimension),
            interactions=settings.interactions,
            population_max=settings.population_max if settings.interactions is not None else None,
            seed=settings.seed,
        )

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer that turns gradients into steps."""
        return cast(Optimizer, self._optimizer)

    def _check_fitnesses(self, told: Vector) -> None:
        check_finite(told, self._shaping)

    def _updated(self, fitnesses: Vector, sum_blocks: SumBlocks | None) -> _State:
        state = self._state
        with np.errstate(over="ignore", invalid="ignore"):
            shaped = utilities(fitnesses, self._shaping)
            sums = self._sums(Weights(shaped[0::2] - shaped[1::2], None), sum_blocks)
        scale = 1 / (fitnesses.size * state.stdev.astype(np.float64))
        gradient = sums.center * scale - self._weight_decay * state.center
        with self._ascent(gradient) as step:
            center = state.center + step
            checks.check_reach(center, state.stdev.astype(np.float64), state.generation)
            return self._next_state(
                fitnesses, center, step, gradient_norm=norm(gradient), gradient_agreement=agreement(sums, scale)
            )

    def _gradient_figures(self) -> tuple[float, float]:
        return self._state.gradient_norm, self._state.gradient_agreement

    def _loaded(self, state: State) -> _State:
        loaded = _State(
            **gaussian_state(state, self.dimension),
            gradient_norm=state_number(state, "gradient_norm"),
            gradient_agreement=state_number(state, "gradient_agreement"),
        )
        try:
            check_finite(loaded.fitnesses, self._shaping)
        except InvalidFitness:
            raise StateMismatch(f"the saved fitnesses must be finite for {self._shaping!r} shaping") from None
        return loaded
