"""xNES: exponential natural evolution strategies (Glasmachers et al. 2010; Wierstra et al. 2014)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clipup.compilation.math import log_each
from clipup.errors import Diverged, StateMismatch
from clipup.optimizers.protocol import State, Vector, check_positive, norm
from clipup.searches import checks
from clipup.searches.ask_tell import AskTell, SearchState, common_state
from clipup.searches.checks import STDEV_FLOOR, state_array, state_number
from clipup.searches.cma_es import check_dimension
from clipup.searches.population import PopulationSize
from clipup.searches.protocol import SearchSettings, SumBlocks
from clipup.searches.sampling import LinearBatch, check_seed, directions, draw_seed, product
from clipup.searches.shaping import nes_utilities

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class _State(SearchState):
    sigma: float
    shape: Vector  # B, row by row


class XNES(AskTell[_State, LinearBatch]):
    """Exponential natural evolution strategies: the natural gradient of a normal distribution with correlations.

    One generation (Wierstra et al. 2014, Algorithm 5)::

        z_k ~ N(0, I),   x_k = mu + sigma * B z_k                    k = 1 .. lambda, one by one
        u_k = utility of the rank of f(x_k); all of them sum to 0
        g_delta = sum_k u_k z_k
        g_M     = sum_k u_k (z_k z_k' - I)
        g_sigma = trace(g_M) / d
        g_B     = g_M - g_sigma I
        mu     += eta_delta * sigma * B g_delta
        sigma  *= exp(eta_sigma / 2 * g_sigma)
        B       = B exp(eta_B / 2 * g_B)

    =========  ==========================  =============================================================
    symbol     argument                    default
    =========  ==========================  =============================================================
    mu         ``center``                  zeros
    sigma, B   ``stdev`` or ``radius``     needed; B has determinant 1
    lambda     ``population_size``         ``4 + floor(3 * log(dimension))``
    eta_delta  ``center_learning_rate``    1
    eta_sigma  ``shape_learning_rate``     ``(9 + 3 * log(dimension)) / (5 * dimension * sqrt(dimension))``
    eta_B      the same
    =========  ==========================  =============================================================

    It is made for small dimensions, 1000 at most: time and memory grow with the square of the dimension and more.

    Notes
    -----
    Deviations: ties share their mean utility. Matrices are multiplied by sums in a fixed order, and the exponential is
    Taylor's series after scaling, so that the bits are the same on every processor.

    >>> search = XNES(dimension=3, stdev=1.0, population_size=20, seed=1)
    >>> for _ in range(80):
    ...     ended = search.tell(-np.square(search.ask() - 1.0).sum(axis=1))
    >>> bool(np.abs(search.center - 1.0).max() < 1e-3)
    True
    """

    kind: ClassVar[str] = "xnes"

    def __init__(
        self,
        *,
        dimension: int | None = None,
        center: ArrayLike | None = None,
        population_size: int | None = None,
        radius: float | None = None,
        stdev: ArrayLike | None = None,
        center_learning_rate: float = 1.0,
        shape_learning_rate: float | None = None,
        interactions: int | None = None,
        population_max: int | None = None,
        seed: int | None = None,
    ) -> None:
        start = checks.initial_center(dimension, center)
        check_dimension(start.size)
        spread = checks.needed_stdev(start.size, radius, stdev, None).astype(np.float64)
        d = start.size
        self._center_learning_rate = check_positive("center_learning_rate", center_learning_rate)
        self._shape_learning_rate = (
            (9 + 3 * math.log(d)) / (5 * d * math.sqrt(d))
            if shape_learning_rate is None
            else check_positive("shape_learning_rate", shape_learning_rate)
        )
        size = PopulationSize.of(
            d,
            population_size,
            interactions,
            population_max,
            default=4 + math.floor(3 * math.log(d)),
            mirrored=False,
        )
        sigma = math.exp(float(log_each(spread.tolist()).mean()))  # so that B has determinant 1
        state = _State(
            center=start,
            seed=draw_seed() if seed is None else check_seed(seed),
            population_size=size.batch,
            sigma=sigma,
            shape=np.diag(spread / sigma).ravel(),
        )
        settings = {
            "radius": norm(spread),
            "center_learning_rate": self._center_learning_rate,
            "shape_learning_rate": self._shape_learning_rate,
        }
        super().__init__(size, state, settings)

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
    def transformation(self) -> Matrix:
        """``sigma * B``: a candidate is the center plus this matrix times a standard normal vector."""
        return self._state.sigma * self._state.shape.reshape(self.dimension, self.dimension)

    def _stdev_norm(self) -> float:
        return self._state.sigma * norm(self._state.shape)

    def _make_batch(self, start: int, stop: int) -> LinearBatch:
        state = self._state
        return LinearBatch(state.seed, state.generation, start, stop, state.center.copy(), self.transformation)

    def _updated(self, fitnesses: Vector, sum_blocks: SumBlocks | None) -> _State:
        state, d = self._state, self.dimension
        u = nes_utilities(fitnesses)[:, np.newaxis]
        z = directions(state.seed, state.generation, 0, fitnesses.size, d).astype(np.float64)
        g_delta = (z * u).sum(axis=0)
        g_matrix = product((z * u).T, z)  # the utilities sum to 0, so the identity drops out
        g_sigma = float(np.diag(g_matrix).sum()) / d
        g_shape = g_matrix - g_sigma * np.eye(d)
        step = self._center_learning_rate * (self.transformation * g_delta).sum(axis=1)
        rate = self._shape_learning_rate / 2
        with np.errstate(over="ignore", invalid="ignore"):
            shape = product(state.shape.reshape(d, d), exponential(rate * g_shape))
            sigma = max(state.sigma * math.exp(min(rate * g_sigma, 100.0)), float(STDEV_FLOOR))
        center = state.center + step
        if not np.isfinite(shape).all():
            raise Diverged("the shape of the distribution overflowed: lower shape_learning_rate")
        checks.check_reach(center, sigma * np.sqrt(np.square(shape).sum(axis=1)), state.generation)
        return self._next_state(fitnesses, center, step, sigma=sigma, shape=shape.ravel())

    def _loaded(self, state: State) -> _State:
        common = common_state(state, self.dimension)
        sigma = state_number(state, "sigma")
        shape = state_array(state, "shape", np.float64, self.dimension**2)
        if not (0 < sigma < math.inf and np.isfinite(shape).all() and shape.any()):
            raise StateMismatch("the saved sigma must be positive and the saved shape finite and not zero")
        return _State(**common, sigma=sigma, shape=shape)


def exponential(matrix: Matrix) -> Matrix:
    """Return the exponential of a symmetric matrix: Taylor's series of a part of it, squared again and again.

    >>> exponential(np.array([[0.0, 1.0], [1.0, 0.0]])).round(6)
    array([[1.543081, 1.175201],
           [1.175201, 1.543081]])
    """
    largest = float(np.abs(matrix).sum(axis=1).max())
    halvings = max(0, math.frexp(largest)[1] + 1) if math.isfinite(largest) else 0
    part = matrix / 2.0**halvings  # its norm is at most 1/2: 16 terms leave less than 1e-18
    result = term = np.eye(len(matrix))
    for order in range(1, 17):
        term = product(term, part) / order
        result = result + term
    for _ in range(halvings):
        result = product(result, result)
    return result
