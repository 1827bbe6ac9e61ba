"""SNES: separable natural evolution strategies (Schaul, Glasmachers and Schmidhuber 2011; Wierstra et al. 2014)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from clipup.compilation.math import exp_each
from clipup.optimizers.protocol import Optimizer, State, Vector, check_positive, norm, step_report
from clipup.searches import checks
from clipup.searches.checks import STDEV_FLOOR, state_number
from clipup.searches.gaussian import GaussianSearch, GaussianState, gaussian_state
from clipup.searches.gradient import agreement
from clipup.searches.population import PopulationSize
from clipup.searches.protocol import SearchSettings, SumBlocks
from clipup.searches.sampling import check_seed, draw_seed
from clipup.searches.shaping import Weights, nes_utilities


@dataclass(frozen=True, eq=False, kw_only=True)
class _State(GaussianState):
    gradient_norm: float = 0.0
    gradient_agreement: float = 0.0


class SNES(GaussianSearch[_State]):
    """Separable natural evolution strategies: the natural gradient of a normal distribution without correlations.

    One generation (Wierstra et al. 2014, Algorithm 6)::

        z_k ~ N(0, I),   x_k = mu + sigma * z_k                     k = 1 .. lambda
        u_k = utility of the rank of f(x_k); all of them sum to 0
        g_mu    = sum_k u_k * z_k
        g_sigma = sum_k u_k * (z_k**2 - 1)
        mu     += eta_mu * sigma * g_mu
        sigma  *= exp(eta_sigma / 2 * g_sigma)

    =========  ==========================  ==========================================================
    symbol     argument                    default
    =========  ==========================  ==========================================================
    mu         ``center``                  zeros
    sigma      ``stdev`` or ``radius``     needed, unless ``max_speed`` is given
    lambda     ``population_size``         ``4 + floor(3 * log(dimension))``, made even
    eta_mu     ``center_learning_rate``    1
    eta_sigma  ``stdev_learning_rate``     ``(3 + log(dimension)) / (5 * sqrt(dimension))``
    =========  ==========================  ==========================================================

    Parameters
    ----------
    symmetric : bool
        Whether candidates come in mirrored pairs, the default. The paper draws them one by one: ``symmetric=False``.
    optimizer, max_speed, step_size, momentum
        If one of them is given, the center moves by an optimizer's step for the gradient ``sigma * g_mu``, ClipUp's for
        `max_speed`, instead of by the rule above.
    dimension, interactions, population_max, seed
        As in :class:`clipup.PGPE`.

    Notes
    -----
    Deviations: mirrored pairs by default. They halve the noise that is drawn, and a constant part of the fitness
    cancels. Ties share their mean utility. A standard deviation never falls below 1.2e-38.

    >>> search = SNES(dimension=3, stdev=1.0, population_size=20, seed=1)
    >>> for _ in range(60):
    ...     ended = search.tell(-np.square(search.ask() - 1.0).sum(axis=1))
    >>> bool(np.abs(search.center - 1.0).max() < 1e-3)
    True
    """

    kind: ClassVar[str] = "snes"

    def __init__(
        self,
        *,
        dimension: int | None = None,
        center: ArrayLike | None = None,
        population_size: int | None = None,
        radius: float | None = None,
        stdev: ArrayLike | None = None,
        center_learning_rate: float = 1.0,
        stdev_learning_rate: float | None = None,
        symmetric: bool = True,
        max_speed: float | None = None,
        step_size: float | None = None,
        momentum: float | None = None,
        optimizer: Optimizer | None = None,
        interactions: int | None = None,
        population_max: int | None = None,
        seed: int | None = None,
    ) -> None:
        start = checks.initial_center(dimension, center)
        if optimizer is not None or max_speed is not None or step_size is not None or momentum is not None:
            optimizer = checks.check_optimizer(optimizer, max_speed, step_size, momentum)
        cap = None if optimizer is None else step_report(optimizer).max_speed
        spread = checks.needed_stdev(start.size, radius, stdev, cap)
        d = start.size
        self._center_learning_rate = check_positive("center_learning_rate", center_learning_rate)
        self._stdev_learning_rate = (
            (3 + math.log(d)) / (5 * math.sqrt(d))
            if stdev_learning_rate is None
            else check_positive("stdev_learning_rate", stdev_learning_rate)
        )
        default = 4 + math.floor(3 * math.log(d))
        size = PopulationSize.of(
            d, population_size, interactions, population_max, default=default + default % 2, mirrored=symmetric
        )
        state = _State(
            center=start,
            stdev=spread,
            seed=draw_seed() if seed is None else check_seed(seed),
            population_size=size.batch,
        )
        settings: dict[str, object] = {
            "center_learning_rate": self._center_learning_rate,
            "stdev_learning_rate": self._stdev_learning_rate,
            "sampling": "mirrored" if symmetric else "unmirrored",
        }
        super().__init__(size, state, settings, optimizer, mirrored=symmetric)

    @classmethod
    def from_settings(cls, settings: SearchSettings, dimension: int) -> Self:
        """Return the search that the settings of a run describe."""
        return cls(
            dimension=dimension,
            population_size=settings.population,
            radius=settings.initial_radius(dimension),
            interactions=settings.interactions,
            population_max=settings.population_max if settings.interactions is not None else None,
            seed=settings.seed,
        )

    def _updated(self, fitnesses: Vector, sum_blocks: SumBlocks | None) -> _State:
        state = self._state
        u = nes_utilities(fitnesses)
        # A mirrored pair has one z, with opposite signs, and one z**2.
        weights = Weights(u[0::2] - u[1::2], u[0::2] + u[1::2]) if self._mirrored else Weights(u, u)
        sums = self._sums(weights, sum_blocks)
        stdev = state.stdev.astype(np.float64)
        gradient = stdev * sums.center
        spread = sums.squares - (0.0 if weights.stdev is None else weights.stdev.sum())
        figures = {"gradient_norm": norm(gradient), "gradient_agreement": agreement(sums, stdev)}
        stdev = np.maximum(stdev * exp_each(self._stdev_learning_rate / 2 * spread), STDEV_FLOOR)
        if self._optimizer is None:
            return self._moved(fitnesses, self._center_learning_rate * gradient, stdev, figures)
        with self._ascent(gradient) as step:
            return self._moved(fitnesses, step, stdev, figures)

    def _moved(self, fitnesses: Vector, step: Vector, stdev: Vector, figures: dict[str, float]) -> _State:
        center = self._state.center + step
        checks.check_reach(center, stdev, self._state.generation)
        return self._next_state(fitnesses, center, step, stdev=stdev.astype(np.float32), **figures)

    def _gradient_figures(self) -> tuple[float, float]:
        return self._state.gradient_norm, self._state.gradient_agreement

    def _loaded(self, state: State) -> _State:
        return _State(
            **gaussian_state(state, self.dimension),
            gradient_norm=state_number(state, "gradient_norm"),
            gradient_agreement=state_number(state, "gradient_agreement"),
        )
