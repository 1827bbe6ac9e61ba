"""CMA-ES: covariance matrix adaptation, with the full matrix or only its diagonal (Hansen 2016; Ros and Hansen 2008).

Both are our own. The `cmaes` library keeps its random state to itself, so a search of it can neither be saved exactly
nor have its candidates made by a worker from their index.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clipup.compilation.math import log_each
from clipup.errors import Diverged, InvalidArgument, StateMismatch
from clipup.optimizers.protocol import State, Vector, norm
from clipup.searches import checks
from clipup.searches.ask_tell import AskTell, SearchState, common_state
from clipup.searches.checks import STDEV_FLOOR, state_array, state_number
from clipup.searches.gaussian import GaussianSearch, GaussianState, gaussian_state
from clipup.searches.population import PopulationSize
from clipup.searches.protocol import SearchSettings, SumBlocks
from clipup.searches.sampling import LinearBatch, check_seed, directions, draw_seed, product
from clipup.searches.shaping import Weights, shared_by_rank

Matrix = NDArray[np.float64]

DIMENSION_MAX = 1000
"""Most parameters of a search with a full matrix: beyond it, an update takes seconds and a batch more than 8 MB."""
_GROWTH_MAX = 1.0  # the logarithm of the largest growth of sigma in one generation


@dataclass(frozen=True)
class _Rates:
    """The constants of a generation (Hansen 2016, Table 1 and equations 49 to 58), without negative weights."""

    weights: Vector
    mu_eff: float
    c_sigma: float
    d_sigma: float
    c_c: float
    c_1: float
    c_mu: float
    expected_norm: float

    @classmethod
    def of(cls, candidates: int, n: int, speed_up: float) -> _Rates:
        """Return those for so many candidates in dimension n; `speed_up` multiplies the rates of the covariance."""
        parents = candidates // 2
        raw = math.log((candidates + 1) / 2) - log_each(range(1, parents + 1))
        weights = np.zeros(candidates)
        weights[:parents] = raw / raw.sum()
        mu_eff = 1 / float(np.square(weights).sum())
        c_sigma = (mu_eff + 2) / (n + mu_eff + 5)
        c_1 = min(1.0, speed_up * 2 / ((n + 1.3) ** 2 + mu_eff))
        c_mu = min(1 - c_1, speed_up * 2 * (0.25 + mu_eff + 1 / mu_eff - 2) / ((n + 2) ** 2 + mu_eff))
        return cls(
            weights=weights,
            mu_eff=mu_eff,
            c_sigma=c_sigma,
            d_sigma=1 + 2 * max(0.0, math.sqrt((mu_eff - 1) / (n + 1)) - 1) + c_sigma,
            c_c=(4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n),
            c_1=c_1,
            c_mu=c_mu,
            expected_norm=math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n)),
        )


@dataclass(frozen=True)
class _Paths:
    """Both evolution paths and the step size after a generation (Hansen 2016, equations 43 to 46)."""

    sigma: float
    path_sigma: Vector
    path_covariance: Vector
    stalled: float
    """1 minus h_sigma: 1 in a generation whose path of the covariance was held back."""

    @classmethod
    def after(
        cls, sigma: float, path_sigma: Vector, path_covariance: Vector, z: Vector, y: Vector, rates: _Rates, past: int
    ) -> _Paths:
        """Return them after the mean moved by ``sigma * y``, y the image of z; `past` generations were before it."""
        r = rates
        path_sigma = (1 - r.c_sigma) * path_sigma + math.sqrt(r.c_sigma * (2 - r.c_sigma) * r.mu_eff) * z
        length = norm(path_sigma)
        settled = math.sqrt(1 - (1 - r.c_sigma) ** (2 * (past + 1)))
        moving = length / settled < (1.4 + 2 / (z.size + 1)) * r.expected_norm
        pull = math.sqrt(r.c_c * (2 - r.c_c) * r.mu_eff) if moving else 0.0
        growth = r.c_sigma / r.d_sigma * (length / r.expected_norm - 1)
        return cls(
            sigma=max(sigma * math.exp(min(growth, _GROWTH_MAX)), float(STDEV_FLOOR)),
            path_sigma=path_sigma,
            path_covariance=(1 - r.c_c) * path_covariance + pull * y,
            stalled=0.0 if moving else 1.0,
        )

    def keep(self, rates: _Rates) -> float:
        """Return the share of the covariance that survives (equation 47: its first factor)."""
        return 1 - rates.c_1 - rates.c_mu + self.stalled * rates.c_1 * rates.c_c * (2 - rates.c_c)

    def fields(self) -> dict[str, Any]:
        """Return the fields of a state."""
        return {"sigma": self.sigma, "path_sigma": self.path_sigma, "path_covariance": self.path_covariance}


def _path_state(state: State, dimension: int, covariance_size: int) -> dict[str, Any]:
    """Return the fields that both searches add to a saved state, each one checked."""
    found = {
        "sigma": state_number(state, "sigma"),
        "covariance": state_array(state, "covariance", np.float64, covariance_size),
        "path_sigma": state_array(state, "path_sigma", np.float64, dimension),
        "path_covariance": state_array(state, "path_covariance", np.float64, dimension),
    }
    if not (0 < found["sigma"] < math.inf and all(np.isfinite(value).all() for value in found.values())):
        raise StateMismatch("the saved sigma must be positive, and paths and covariance finite")
    return found


def _default_population(dimension: int) -> int:
    return 4 + math.floor(3 * math.log(dimension))


def _scale_of(stdev: Vector) -> tuple[float, Vector]:
    """Return one sigma for all coordinates, and the standard deviations in units of it."""
    sigma = norm(stdev) / math.sqrt(stdev.size)
    return sigma, stdev / sigma


@dataclass(frozen=True, eq=False, kw_only=True)
class _SeparableState(GaussianState):
    sigma: float
    covariance: Vector  # its diagonal
    path_sigma: Vector
    path_covariance: Vector


class SepCMAES(GaussianSearch[_SeparableState]):
    """CMA-ES with a diagonal covariance (Ros and Hansen 2008): time and memory grow with the dimension alone.

    The formulas are those of :class:`clipup.CMAES`, with ``A = sqrt(C)`` for each coordinate. The learning rates of the
    covariance are ``(dimension + 2) / 3`` times as high, because there is less of it to learn (their equation 6).

    Parameters
    ----------
    stdev, radius : float, float or array
        The initial standard deviation, or its norm. One of them is needed.
    population_size : int
        Default ``4 + floor(3 * log(dimension))``.
    dimension, center, interactions, population_max, seed
        As in :class:`clipup.PGPE`.

    Notes
    -----
    Deviations: those of :class:`clipup.CMAES`.

    >>> search = SepCMAES(dimension=5, stdev=1.0, seed=1)
    >>> for _ in range(120):
    ...     ended = search.tell(-np.square(search.ask() - 1.0).sum(axis=1))
    >>> bool(np.abs(search.center - 1.0).max() < 1e-3)
    True
    """

    kind: ClassVar[str] = "sep-cma-es"

    def __init__(
        self,
        *,
        dimension: int | None = None,
        center: ArrayLike | None = None,
        population_size: int | None = None,
        radius: float | None = None,
        stdev: ArrayLike | None = None,
        interactions: int | None = None,
        population_max: int | None = None,
        seed: int | None = None,
    ) -> None:
        start = checks.initial_center(dimension, center)
        spread = checks.needed_stdev(start.size, radius, stdev, None)
        n = start.size
        size = PopulationSize.of(
            n, population_size, interactions, population_max, default=_default_population(n), mirrored=False
        )
        sigma, relative = _scale_of(spread.astype(np.float64))
        state = _SeparableState(
            center=start,
            stdev=spread,
            seed=draw_seed() if seed is None else check_seed(seed),
            population_size=size.batch,
            sigma=sigma,
            covariance=np.square(relative),
            path_sigma=np.zeros(n),
            path_covariance=np.zeros(n),
        )
        super().__init__(size, state, {}, mirrored=False)

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

    def _updated(self, fitnesses: Vector, sum_blocks: SumBlocks | None) -> _SeparableState:
        state, n = self._state, self.dimension
        rates = _Rates.of(fitnesses.size, n, speed_up=(n + 2) / 3)
        weights = shared_by_rank(fitnesses, rates.weights)
        sums = self._sums(Weights(weights, weights), sum_blocks)
        z, root = sums.center, np.sqrt(state.covariance)
        step = state.sigma * root * z
        paths = _Paths.after(state.sigma, state.path_sigma, state.path_covariance, z, root * z, rates, state.generation)
        covariance = (
            paths.keep(rates) * state.covariance
            + rates.c_1 * np.square(paths.path_covariance)
            + rates.c_mu * state.covariance * sums.squares
        )
        covariance = np.maximum(covariance, np.finfo(np.float64).tiny)
        stdev = np.maximum(paths.sigma * np.sqrt(covariance), STDEV_FLOOR)
        center = state.center + step
        checks.check_reach(center, stdev, state.generation)
        return self._next_state(
            fitnesses, center, step, stdev=stdev.astype(np.float32), covariance=covariance, **paths.fields()
        )

    def _loaded(self, state: State) -> _SeparableState:
        common = gaussian_state(state, self.dimension)
        own = _path_state(state, self.dimension, self.dimension)
        if not (own["covariance"] > 0).all():
            raise StateMismatch("the saved covariance must be positive")
        return _SeparableState(**common, **own)


@dataclass(frozen=True, eq=False, kw_only=True)
class _FullState(SearchState):
    sigma: float
    covariance: Vector  # row by row
    path_sigma: Vector
    path_covariance: Vector


class CMAES(AskTell[_FullState, LinearBatch]):
    """Covariance matrix adaptation with the full matrix, for at most 1000 parameters.

    One generation (Hansen 2016, "The CMA evolution strategy: a tutorial", equations 38 to 47)::

        z_k ~ N(0, I),  y_k = A z_k,  x_k = m + sigma * y_k            A A' = C
        z_w = sum_k w_k z_k,  y_w = A z_w                               weights by rank, the best half alone
        m        += sigma * y_w
        p_sigma   = (1 - c_sigma) p_sigma + sqrt(c_sigma (2 - c_sigma) mu_eff) z_w
        sigma    *= exp(c_sigma / d_sigma * (|p_sigma| / E|N(0, I)| - 1))
        p_c       = (1 - c_c) p_c + h_sigma sqrt(c_c (2 - c_c) mu_eff) y_w
        C         = (1 - c_1 - c_mu + (1 - h_sigma) c_1 c_c (2 - c_c)) C + c_1 p_c p_c' + c_mu sum_k w_k y_k y_k'

    All constants are the tutorial's, for the population and the dimension at hand.

    ======  =======================  =======================================================
    symbol  argument                 default
    ======  =======================  =======================================================
    m       ``center``               zeros
    sigma   ``stdev`` or ``radius``  needed; different values for coordinates go into C
    lambda  ``population_size``      ``4 + floor(3 * log(dimension))``
    ======  =======================  =======================================================

    Notes
    -----
    Deviations: A is Cholesky's factor of C, and p_sigma takes z_w as it is (Krause, Arbonès and Igel 2016), instead of
    the symmetric root of C and its inverse. It is computed by sums in a fixed order, so that it has the same bits on
    every processor, which a decomposition by LAPACK has not. There are no negative weights. sigma grows by at most a
    factor of e in a generation. Ties share their mean weight. The center is float32.

    >>> search = CMAES(dimension=3, stdev=1.0, seed=1)
    >>> for _ in range(80):
    ...     x = search.ask().astype(np.float64)
    ...     ended = search.tell(-(100 * np.square(x[:, 0] + x[:, 1] - 2) + np.square(x - 1).sum(axis=1)))
    >>> bool(np.abs(search.center - 1.0).max() < 1e-3)
    True
    """

    kind: ClassVar[str] = "cma-es"

    def __init__(
        self,
        *,
        dimension: int | None = None,
        center: ArrayLike | None = None,
        population_size: int | None = None,
        radius: float | None = None,
        stdev: ArrayLike | None = None,
        interactions: int | None = None,
        population_max: int | None = None,
        seed: int | None = None,
    ) -> None:
        start = checks.initial_center(dimension, center)
        check_dimension(start.size)
        spread = checks.needed_stdev(start.size, radius, stdev, None).astype(np.float64)
        n = start.size
        size = PopulationSize.of(
            n, population_size, interactions, population_max, default=_default_population(n), mirrored=False
        )
        sigma, relative = _scale_of(spread)
        state = _FullState(
            center=start,
            seed=draw_seed() if seed is None else check_seed(seed),
            population_size=size.batch,
            sigma=sigma,
            covariance=np.diag(np.square(relative)).ravel(),
            path_sigma=np.zeros(n),
            path_covariance=np.zeros(n),
        )
        super().__init__(size, state, {"radius": norm(spread)})
        self._factor = cholesky(self.covariance)

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

    @property
    def covariance(self) -> Matrix:
        """C, the covariance of the candidates in units of sigma, a copy."""
        return self._state.covariance.reshape(self.dimension, self.dimension).copy()

    @property
    def sigma(self) -> float:
        """The step size."""
        return self._state.sigma

    def _stdev_norm(self) -> float:
        return self._state.sigma * math.sqrt(float(np.diag(self.covariance).sum()))

    def _make_batch(self, start: int, stop: int) -> LinearBatch:
        state = self._state
        return LinearBatch(state.seed, state.generation, start, stop, state.center.copy(), state.sigma * self._factor)

    def _updated(self, fitnesses: Vector, sum_blocks: SumBlocks | None) -> _FullState:
        state, n = self._state, self.dimension
        rates = _Rates.of(fitnesses.size, n, speed_up=1.0)
        weights = shared_by_rank(fitnesses, rates.weights)
        chosen = np.flatnonzero(weights)
        z = directions(state.seed, state.generation, 0, fitnesses.size, n)[chosen].astype(np.float64)
        w = weights[chosen][:, np.newaxis]
        y = product(z, self._factor.T)
        z_mean, y_mean = (z * w).sum(axis=0), (y * w).sum(axis=0)
        step = state.sigma * y_mean
        paths = _Paths.after(
            state.sigma, state.path_sigma, state.path_covariance, z_mean, y_mean, rates, state.generation
        )
        path = paths.path_covariance[:, np.newaxis]
        covariance = (
            paths.keep(rates) * self.covariance + rates.c_1 * (path * path.T) + rates.c_mu * product((y * w).T, y)
        )
        covariance = (covariance + covariance.T) / 2
        center = state.center + step
        checks.check_reach(center, paths.sigma * np.sqrt(np.diag(covariance)), state.generation)
        return self._next_state(fitnesses, center, step, covariance=covariance.ravel(), **paths.fields())

    def _commit(self, updated: _FullState) -> None:
        # A matrix that cannot be drawn from is refused here, before anything changes.
        factor = cholesky(updated.covariance.reshape(self.dimension, self.dimension))
        self._state, self._factor = updated, factor

    def _loaded(self, state: State) -> _FullState:
        common = common_state(state, self.dimension)
        own = _path_state(state, self.dimension, self.dimension**2)
        try:
            cholesky(own["covariance"].reshape(self.dimension, self.dimension))
        except Diverged:
            raise StateMismatch("the saved covariance must be positive definite") from None
        return _FullState(**common, **own)


def check_dimension(dimension: int) -> None:
    """Refuse a full matrix over too many parameters."""
    if dimension > DIMENSION_MAX:
        raise InvalidArgument(
            f"a search with a full covariance takes at most {DIMENSION_MAX} parameters, got {dimension}; "
            "use sep-cma-es or snes"
        )


def cholesky(matrix: Matrix) -> Matrix:
    """Return the lower triangular A with ``A A' = matrix``, by sums in a fixed order, or refuse the matrix.

    >>> cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]))
    array([[2., 0.],
           [1., 2.]])
    """
    rest, factor = matrix.copy(), np.zeros_like(matrix)
    for index in range(len(matrix)):
        pivot = float(rest[index, index])
        if not 0 < pivot < math.inf:
            raise Diverged("the covariance is not positive definite any more: start again with another stdev")
        column = rest[index:, index] / math.sqrt(pivot)
        factor[index:, index] = column
        rest[index + 1 :, index + 1 :] -= column[1:, np.newaxis] * column[1:]
    return factor
