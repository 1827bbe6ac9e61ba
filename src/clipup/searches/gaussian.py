"""Searches whose candidates are normal, with one standard deviation for each coordinate: what they share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from clipup.errors import Diverged, StateMismatch
from clipup.optimizers.protocol import Optimizer, StateValue, Vector, check_positive, norm
from clipup.searches import checks
from clipup.searches.ask_tell import AskTell, SearchState, common_state
from clipup.searches.checks import STDEV_FLOOR, state_array, state_number
from clipup.searches.gradient import GradientWork, Sums, add_blocks
from clipup.searches.population import PopulationSize
from clipup.searches.protocol import FloatArray, SearchSettings, SumBlocks
from clipup.searches.sampling import GaussianBatch
from clipup.searches.shaping import Weights


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianState(SearchState):
    """The state of a search whose candidates are normal, with one standard deviation for each coordinate."""

    stdev: FloatArray
    radius_scale: float = 1.0  # what a schedule has multiplied the standard deviations by


def gaussian_state(state: Mapping[str, StateValue], dimension: int) -> dict[str, Any]:
    """Return the fields of `GaussianState` of a saved state, each one checked."""
    common = common_state(state, dimension)
    stdev = state_array(state, "stdev", np.float32, dimension)
    if not (np.isfinite(stdev).all() and (stdev > 0).all()):
        raise StateMismatch("the saved center must be finite and the saved stdev positive and finite")
    scale = state_number(state, "radius_scale") if "radius_scale" in state else 1.0  # states before it had none
    if not 0 < scale < np.inf:
        raise StateMismatch(f"the state's 'radius_scale' must be positive and finite, got {scale!r}")
    return {**common, "stdev": stdev, "radius_scale": scale}


GaussianStateT = TypeVar("GaussianStateT", bound=GaussianState)


class GaussianSearch(AskTell[GaussianStateT, GaussianBatch]):
    """A search whose candidates are ``center + stdev * z``, z standard normal, in mirrored pairs or one by one.

    Its update needs weighted sums of z and of z**2, which workers can share. `ask` keeps the directions that it made,
    so that `tell` need not make them again.
    """

    def __init__(
        self,
        size: PopulationSize,
        state: GaussianStateT,
        settings: Mapping[str, object],
        optimizer: Optimizer | None = None,
        *,
        mirrored: bool = True,
        orthogonal: int = 0,
    ) -> None:
        radius = norm(state.stdev.astype(np.float64))
        super().__init__(size, state, {"radius": radius, **settings}, optimizer)
        self._mirrored = mirrored
        self._orthogonal = orthogonal
        # This generation's directions if ask() made all of them; otherwise None, and tell() makes them again.
        self._kept: list[FloatArray] | None = []
        # The memory of the directions, one array for each batch of a generation, written again in the next one: the
        # first touch of fresh memory would cost half as much as drawing the numbers.
        self._buffers: list[FloatArray] = []

    @property
    def stdev(self) -> FloatArray:
        """The standard deviation of each coordinate, a copy."""
        return self._state.stdev.copy()

    def _stdev_norm(self) -> float:
        return norm(self._state.stdev.astype(np.float64))

    def _make_batch(self, start: int, stop: int) -> GaussianBatch:
        state = self._state
        return GaussianBatch(
            state.seed,
            state.generation,
            start,
            stop,
            state.center.copy(),
            state.stdev.copy(),
            self._mirrored,
            self._orthogonal,
        )

    def batch(self) -> GaussianBatch:
        """Return the candidates to evaluate next, without making them; the same until `tell` is called."""
        if self._state.asked == 0:
            self._kept = None  # tell() makes the directions of these candidates again; ask() keeps its own
        return super().batch()

    def ask(self) -> FloatArray:
        """Return the candidates to evaluate next, one in each row; in pairs, rows 2i and 2i + 1 mirror each other."""
        kept, asked_before = self._kept, self._state.asked > 0
        batch = self.batch()
        if kept is None or asked_before:
            return batch.candidates()
        number = batch.start // self._size.batch
        if number == len(self._buffers):
            rows = len(batch) // 2 if self._mirrored else len(batch)
            self._buffers.append(np.empty((rows, self.dimension), np.float32))
        population = batch.candidates_keeping(self._buffers[number])
        self._kept = [*kept, *self._buffers[number]]
        return population

    def adjust(self, settings: SearchSettings, radius_scale: float = 1.0) -> None:
        """Go on with another population and another optimizer, from the next generation on.

        `radius_scale` is a factor of the standard deviations. It is meant from the start of the search, not from the
        last call: the same factor twice changes them once.
        """
        state = self._state
        wider = check_positive("radius_scale", radius_scale) / state.radius_scale
        stdev = state.stdev.astype(np.float64) * wider
        checks.check_reach(state.center.astype(np.float64), stdev, state.generation)
        super().adjust(settings)
        if wider != 1:
            stdev = np.maximum(stdev, STDEV_FLOOR).astype(np.float32)
            self._state = replace(state, stdev=stdev, radius_scale=float(radius_scale))
        self._buffers = []

    def _sums(self, weights: Weights, sum_blocks: SumBlocks | None) -> Sums:
        """Return the sums over all directions of this generation, or refuse them if they overflow."""
        work = self._work(weights)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = add_blocks(work, self._blocks(work, sum_blocks))
        if not all(np.isfinite(each).all() for each in sums):
            raise Diverged("the update overflowed: scale the fitnesses down, or use a shaping by ranks")
        return sums

    def _work(self, weights: Weights) -> GradientWork:
        state = self._state
        return GradientWork(weights, state.seed, state.generation, self.dimension, self._orthogonal)

    def _blocks(self, work: GradientWork, sum_blocks: SumBlocks | None) -> Iterator[tuple[Vector, ...]]:
        if sum_blocks is not None:
            yield from sum_blocks(work)
            return
        for number in range(work.block_count):
            yield work.block(number, self._kept)

    def _commit(self, updated: GaussianStateT) -> None:
        self._kept = None  # first, so that an interruption here leaves no directions of another generation
        self._state = updated
        if updated.fitnesses.size == 0 and updated.asked == 0:
            self._kept = []
