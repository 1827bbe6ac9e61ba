"""ARS: augmented random search (Mania, Guy and Recht 2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from clipup.errors import InvalidArgument
from clipup.optimizers.ascent import GradientAscent
from clipup.optimizers.protocol import Optimizer, State, Vector, norm, step_report
from clipup.optimizers.registry import make_optimizer
from clipup.searches import checks
from clipup.searches.checks import is_whole, state_number
from clipup.searches.gaussian import GaussianSearch, GaussianState, gaussian_state
from clipup.searches.gradient import agreement
from clipup.searches.population import PopulationSize
from clipup.searches.protocol import SearchSettings, SumBlocks
from clipup.searches.sampling import check_seed, draw_seed
from clipup.searches.shaping import Weights

STEP_SIZE, STDEV = 0.02, 0.03  # within the authors' grids for MuJoCo (their Table 9)


@dataclass(frozen=True, eq=False, kw_only=True)
class _State(GaussianState):
    gradient_norm: float = 0.0
    gradient_agreement: float = 0.0


class ARS(GaussianSearch[_State]):
    """Augmented random search: the best directions, with steps divided by the spread of their rewards.

    One generation (the authors' Algorithm 2)::

        d_i ~ N(0, I)                                            i = 1 .. N
        r+, r- = reward of  M + nu * d_i,  M - nu * d_i           line 5
        keep the b directions with the largest  max(r+, r-)       line 6
        s_R = standard deviation of the 2 b rewards that are kept
        M  += alpha / (b * s_R) * sum over those of (r+ - r-) * d_i      line 7

    ======  =========================  ================================================================
    symbol  argument                   meaning
    ======  =========================  ================================================================
    M       ``center``                 where to start; default: zeros
    nu      ``stdev``                  the fixed standard deviation; default 0.03, or from ``radius`` or ``max_speed``
    N       ``population_size / 2``    directions; a population is 2 N candidates
    b       ``top``                    directions that are kept; default: all of them
    alpha   ``step_size``              default 0.02
    ======  =========================  ================================================================

    The authors' variants: V1 has ``top=None``, V1-t has ``top=b``. V2 and V2-t are the same two, with observations
    normalized: that is the setting `normalize` of a run, and nothing that the search sees.

    Parameters
    ----------
    optimizer, max_speed, momentum
        The rule above is plain ascent. With `max_speed`, ClipUp takes its place, and `stdev` follows from it as in
        :class:`clipup.PGPE`. With `optimizer`, that one does.
    dimension, center, radius, stdev, interactions, population_max, seed
        As in :class:`clipup.PGPE`.

    Notes
    -----
    Deviations: if several directions tie for the last of the b places, all of them are kept, because a choice by index
    would invent a gradient; b is then larger. A direction with a reward that is not finite is never kept. If all kept
    rewards are equal, the step is that of a zero gradient. In a growing generation `top` is a share: it is scaled with
    the number of directions.

    >>> search = ARS(dimension=3, stdev=0.1, step_size=0.1, population_size=20, top=5, seed=1)
    >>> for _ in range(60):
    ...     ended = search.tell(-np.square(search.ask() - 1.0).sum(axis=1))
    >>> bool(np.abs(search.center - 1.0).max() < 0.3)
    True
    """

    kind: ClassVar[str] = "ars"

    def __init__(
        self,
        *,
        dimension: int | None = None,
        center: ArrayLike | None = None,
        population_size: int | None = None,
        step_size: float | None = None,
        top: int | None = None,
        max_speed: float | None = None,
        momentum: float | None = None,
        radius: float | None = None,
        stdev: ArrayLike | None = None,
        optimizer: Optimizer | None = None,
        interactions: int | None = None,
        population_max: int | None = None,
        seed: int | None = None,
    ) -> None:
        start = checks.initial_center(dimension, center)
        if optimizer is None and max_speed is None and momentum is None:
            optimizer = GradientAscent(STEP_SIZE if step_size is None else step_size)
        else:
            optimizer = checks.check_optimizer(optimizer, max_speed, step_size, momentum)
        if radius is None and stdev is None and step_report(optimizer).max_speed is None:
            stdev = STDEV
        spread = checks.initial_stdev(start.size, radius, stdev, step_report(optimizer).max_speed)
        size = PopulationSize.of(start.size, population_size, interactions, population_max)
        if top is not None and not (is_whole(top) and 1 <= top <= size.batch // 2):
            raise InvalidArgument(
                f"top must be a number of directions from 1 to {size.batch // 2} (half of population_size), got {top!r}"
            )
        self._share = 1.0 if top is None else top / (size.batch // 2)
        state = _State(
            center=start,
            stdev=spread,
            seed=draw_seed() if seed is None else check_seed(seed),
            population_size=size.batch,
        )
        super().__init__(size, state, {"top": None if top is None else int(top)}, optimizer)

    @classmethod
    def from_settings(cls, settings: SearchSettings, dimension: int) -> Self:
        """Return the search that the settings of a run describe."""
        return cls(
            dimension=dimension,
            population_size=settings.population,
            radius=settings.initial_radius(dimension),
            top=settings.top,
            optimizer=make_optimizer(settings.optimizer, settings, dimension),
            interactions=settings.interactions,
            population_max=settings.population_max if settings.interactions is not None else None,
            seed=settings.seed,
        )

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer that turns gradients into steps."""
        return cast(Optimizer, self._optimizer)

    def _updated(self, fitnesses: Vector, sum_blocks: SumBlocks | None) -> _State:
        state = self._state
        sums = self._sums(Weights(ars_weights(fitnesses, self._share), None), sum_blocks)
        with self._ascent(sums.center) as step:
            center = state.center + step
            checks.check_reach(center, state.stdev.astype(np.float64), state.generation)
            return self._next_state(
                fitnesses, center, step, gradient_norm=norm(sums.center), gradient_agreement=agreement(sums)
            )

    def _gradient_figures(self) -> tuple[float, float]:
        return self._state.gradient_norm, self._state.gradient_agreement

    def _loaded(self, state: State) -> _State:
        return _State(
            **gaussian_state(state, self.dimension),
            gradient_norm=state_number(state, "gradient_norm"),
            gradient_agreement=state_number(state, "gradient_agreement"),
        )


def ars_weights(fitnesses: Vector, share: float) -> Vector:
    """Return each direction's factor in the step of ARS: 0 for those that are not kept.

    >>> ars_weights(np.array([4.0, 0.0, 1.0, 0.0]), share=0.5)
    array([2., 0.])
    """
    above, below = fitnesses[0::2], fitnesses[1::2]
    weights = np.zeros(above.size)
    usable = np.isfinite(above) & np.isfinite(below)
    count = min(max(1, round(share * above.size)), int(np.count_nonzero(usable)))
    if count == 0:
        return weights
    best = np.where(usable, np.maximum(above, below), -np.inf)
    kept = usable & (best >= np.sort(best)[-count])
    rewards = np.concatenate([above[kept], below[kept]])
    if (rewards == rewards[0]).all():
        return weights
    # A power of two changes no digit. It keeps squares from over- and underflowing.
    scale = 2.0 ** -min(1000, math.frexp(float(np.abs(rewards).max()))[1])
    above, below, rewards = above[kept] * scale, below[kept] * scale, rewards * scale
    spread = math.sqrt(float(np.square(rewards - rewards.mean()).mean()))
    if spread > 0:
        weights[kept] = (above - below) / (np.count_nonzero(kept) * spread)
    return weights
