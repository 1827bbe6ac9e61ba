"""The cross-entropy method for continuous optimization (Rubinstein 1999; de Boer et al. 2005)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from clipup.errors import InvalidArgument
from clipup.optimizers.protocol import State, Vector, check_number
from clipup.searches import checks
from clipup.searches.checks import STDEV_FLOOR
from clipup.searches.gaussian import GaussianSearch, GaussianState, gaussian_state
from clipup.searches.population import PopulationSize
from clipup.searches.protocol import SearchSettings, SumBlocks
from clipup.searches.sampling import check_seed, draw_seed
from clipup.searches.shaping import Weights, shared_by_rank


class CrossEntropy(GaussianSearch[GaussianState]):
    """The cross-entropy method: fit a normal distribution to the best candidates, and draw from it again.

    One generation (de Boer et al. 2005, Algorithm 4.1 for normal densities, with smoothing as in their section 3.2; the
    added noise is that of Szita and Lőrincz 2006)::

        x_k ~ N(mu, diag(sigma**2))                            k = 1 .. N, one by one
        the elite: the ceil(rho * N) candidates of highest fitness
        mu    = alpha * mean(elite)  + (1 - alpha) * mu
        sigma = alpha * stdev(elite) + (1 - alpha) * sigma,  then  sqrt(sigma**2 + noise**2)

    ======  =======================  =======================================================
    symbol  argument                 default
    ======  =======================  =======================================================
    mu      ``center``               zeros
    sigma   ``stdev`` or ``radius``  needed
    N       ``population_size``      ``2 * ceil(10 + sqrt(dimension))``
    rho     ``elite``                0.25, the share of the candidates; at least two of them
    alpha   ``smoothing``            0.7
    noise   ``noise``                0
    ======  =======================  =======================================================

    Without noise the distribution shrinks onto a point, at times before it has reached the optimum.

    Notes
    -----
    Deviations: candidates that tie at the edge of the elite share its last places. A standard deviation never falls
    below 1.2e-38.

    >>> search = CrossEntropy(dimension=3, stdev=1.0, population_size=40, seed=1)
    >>> for _ in range(40):
    ...     ended = search.tell(-np.square(search.ask() - 1.0).sum(axis=1))
    >>> bool(np.abs(search.center - 1.0).max() < 1e-3)
    True
    """

    kind: ClassVar[str] = "cross-entropy"

    def __init__(
        self,
        *,
        dimension: int | None = None,
        center: ArrayLike | None = None,
        population_size: int | None = None,
        radius: float | None = None,
        stdev: ArrayLike | None = None,
        elite: float = 0.25,
        smoothing: float = 0.7,
        noise: float = 0.0,
        interactions: int | None = None,
        population_max: int | None = None,
        seed: int | None = None,
    ) -> None:
        start = checks.initial_center(dimension, center)
        spread = checks.needed_stdev(start.size, radius, stdev, None)
        for name, value in (("elite", elite), ("smoothing", smoothing)):
            if not 0 < check_number(name, value) <= 1:
                raise InvalidArgument(f"{name} must be above 0 and at most 1, got {value!r}")
        if check_number("noise", noise) < 0:
            raise InvalidArgument(f"noise must not be negative, got {noise!r}")
        self._elite, self._smoothing, self._noise = float(elite), float(smoothing), float(noise)
        size = PopulationSize.of(start.size, population_size, interactions, population_max, mirrored=False)
        state = GaussianState(
            center=start,
            stdev=spread,
            seed=draw_seed() if seed is None else check_seed(seed),
            population_size=size.batch,
        )
        settings = {"elite": self._elite, "smoothing": self._smoothing, "noise": self._noise}
        super().__init__(size, state, settings, mirrored=False)

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

    def _updated(self, fitnesses: Vector, sum_blocks: SumBlocks | None) -> GaussianState:
        state, alpha = self._state, self._smoothing
        count = min(fitnesses.size, max(2, int(np.ceil(self._elite * fitnesses.size))))
        by_rank = np.zeros(fitnesses.size)
        by_rank[:count] = 1 / count
        weights = shared_by_rank(fitnesses, by_rank)
        sums = self._sums(Weights(weights, weights), sum_blocks)
        stdev = state.stdev.astype(np.float64)
        step = alpha * stdev * sums.center
        spread = np.sqrt(np.maximum(sums.squares - np.square(sums.center), 0.0))  # of the elite, in units of stdev
        stdev = stdev * (alpha * spread + (1 - alpha))
        stdev = np.maximum(np.hypot(stdev, self._noise), STDEV_FLOOR)
        center = state.center + step
        checks.check_reach(center, stdev, state.generation)
        return self._next_state(fitnesses, center, step, stdev=stdev.astype(np.float32))

    def _loaded(self, state: State) -> GaussianState:
        return GaussianState(**gaussian_state(state, self.dimension))
