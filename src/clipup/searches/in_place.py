"""A search over arrays that are changed in place: for parameters of which memory holds one copy and no population."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clipup.errors import Diverged, InvalidArgument, StateMismatch, WrongOrder
from clipup.optimizers.clipup import STEP_RATIO
from clipup.optimizers.protocol import State, StateValue, Vector, check_decay, check_positive
from clipup.searches.checks import check_told, plain_state, state_whole
from clipup.searches.population import PopulationSize
from clipup.searches.protocol import FloatArray
from clipup.searches.sampling import SEED_LIMIT, check_seed, direction_stream, draw_seed
from clipup.searches.shaping import centered_rank

CHUNK = 2**16
"""How many numbers are drawn and added at a time. It changes no result."""
_ROOM = 8.0  # how far the largest parameter may grow before the grid is made coarser
_REACH = 16.0  # no standard normal that numpy draws in float32 comes near it


@dataclass(frozen=True)
class Candidate:
    """A candidate of :class:`InPlaceES`: three numbers that make it anywhere."""

    seed: int
    generation: int
    index: int


class InPlaceES:
    """Evolution strategies on your own float32 arrays: candidates are made in them and taken back exactly.

    One generation, with mirrored candidates and ranks as in :class:`clipup.OpenAIES`, and the step of ClipUp::

        f+, f- = rank of the fitness of  x + stdev * z_i,  x - stdev * z_i      i = 1 .. n / 2
        g      = sum_i (f+ - f-) z_i
        v      = momentum * v + step_size * g / |g|,   shortened to max_speed
        x     += v

    Parameters
    ----------
    arrays
        The parameters: writeable float32 arrays of any shape. The search changes them, and only them.
    stdev : float
        The standard deviation of each parameter of a candidate.
    max_speed : float
        The longest step of all parameters together. `step_size` is half of it.
    population_size : int
        Candidates in a generation, even.
    momentum : float
        With the default of 0, nothing of the size of the parameters is kept besides them. Otherwise a velocity of their
        size is.
    seed : int
        From 0 to 2**64 - 1. Default: from the operating system.

    Notes
    -----
    Adding and subtracting the same number does not give back a float32 in general. So the parameters of each array, the
    noise and the steps are kept on a grid of steps ``q``, a power of two, 2**21 to 2**24 of which reach the array's
    largest parameter: then sums are exact. Making the search rounds the arrays to this grid, by at most ``q / 2``. A
    `stdev` below ``16 q`` is refused.

    >>> weights = [np.zeros((2, 3), np.float32), np.zeros(4, np.float32)]
    >>> search = InPlaceES(weights, stdev=0.1, max_speed=0.3, population_size=20, seed=1)
    >>> for _ in range(60):
    ...     fitnesses = []
    ...     for candidate in search.ask():
    ...         with search.applied(candidate):
    ...             fitnesses.append(-sum(np.square(array - 1).sum() for array in weights))
    ...     search.tell(fitnesses)
    >>> max(float(np.abs(array - 1).max()) for array in weights) < 0.3
    True
    """

    kind: ClassVar[str] = "in-place-es"

    def __init__(
        self,
        arrays: Sequence[FloatArray],
        *,
        stdev: float,
        max_speed: float,
        population_size: int = 16,
        momentum: float = 0.0,
        seed: int | None = None,
    ) -> None:
        self._stdev = check_positive("stdev", stdev)
        self._max_speed = check_positive("max_speed", max_speed)
        self._momentum = check_decay("momentum", momentum)
        self._arrays = [_flat(array) for array in arrays]
        if not sum(array.size for array in self._arrays):
            raise InvalidArgument("arrays must hold at least one parameter, got none")
        self._size = PopulationSize.of(self.dimension, population_size, None, None).batch
        self._seed = draw_seed() if seed is None else check_seed(seed)
        self._generation = 0
        self._asked = 0
        self._applied: Candidate | None = None
        self._grid = [_grid(array, self._stdev) for array in self._arrays]
        for array, step in zip(self._arrays, self._grid, strict=True):
            if self._stdev < 16 * step:
                raise InvalidArgument(
                    f"stdev={stdev!r} is lost beside parameters as large as {_largest(array):g}; "
                    f"at least {16 * step:.3g} is needed"
                )
            _snap(array, step)
        self._velocity = [np.zeros(array.size, np.float32) for array in self._arrays] if self._momentum else None

    @property
    def dimension(self) -> int:
        """The number of parameters in all arrays."""
        return sum(array.size for array in self._arrays)

    @property
    def generation(self) -> int:
        """The number of updates made."""
        return self._generation

    def ask(self) -> list[Candidate]:
        """Return the candidates of this generation: 2i and 2i + 1 mirror each other."""
        self._asked = self._size
        return [Candidate(self._seed, self._generation, index) for index in range(self._size)]

    @contextmanager
    def applied(self, candidate: Candidate) -> Generator[None]:
        """Turn the arrays into a candidate, and back to the same bits at the end of the block."""
        if self._applied is not None:
            raise WrongOrder(f"the arrays hold candidate {self._applied.index} already; leave its block first")
        if (candidate.seed, candidate.generation) != (self._seed, self._generation):
            raise WrongOrder("the candidate belongs to another generation; call ask() again")
        self._applied = candidate
        sign = -1.0 if candidate.index % 2 else 1.0
        self._shift(candidate, sign)
        try:
            yield
        finally:
            self._shift(candidate, -sign)
            self._applied = None

    def tell(self, fitnesses: ArrayLike) -> None:
        """Take the fitnesses of all candidates, in their order, and move the arrays. Higher is better."""
        if self._applied is not None:
            raise WrongOrder("the arrays hold a candidate: leave its block before tell()")
        ranks = centered_rank(check_told(fitnesses, self._asked))
        weights = ranks[0::2] - ranks[1::2]
        square = 0.0
        for _, gradient in self._gradient(weights):
            square += float(np.square(gradient).sum())
        pull = STEP_RATIO * self._max_speed / math.sqrt(square) if square > 0 else 0.0
        if self._velocity is None:
            for (number, part), gradient in self._gradient(weights):
                self._move(number, part, pull * gradient)
        else:
            shrink = self._accelerated(weights, pull)
            for number, velocity in enumerate(self._velocity):
                for part in _parts(velocity.size):
                    velocity[part] *= np.float32(shrink)
                    self._move(number, part, velocity[part].astype(np.float64))
        for number, array in enumerate(self._arrays):
            self._grid[number] = max(self._grid[number], _grid(array, self._stdev, room=1.0))
            _snap(array, self._grid[number])
        self._generation, self._asked = self._generation + 1, 0

    def state_dict(self) -> State:
        """Return the state besides the arrays, which are yours to save."""
        state: State = {"kind": self.kind, "seed": self._seed, "generation": self._generation}
        state["grid"] = np.array(self._grid)
        if self._velocity is not None:
            state |= {f"velocity.{number}": velocity.copy() for number, velocity in enumerate(self._velocity)}
        return state

    def load_state_dict(self, state: Mapping[str, StateValue]) -> None:
        """Go on from a saved state. The arrays must hold what they held when it was saved."""
        state = plain_state(self.kind, state)
        seed, generation = state_whole(state, "seed", SEED_LIMIT), state_whole(state, "generation")
        grid = state.get("grid")
        shape = (len(self._arrays),)
        if not isinstance(grid, np.ndarray) or grid.dtype != np.float64 or grid.shape != shape:
            raise StateMismatch(f"the saved grid must be {len(self._arrays)} numbers of float64, one for each array")
        steps = [float(step) for step in cast(Vector, grid)]
        if not all(0 < step < math.inf for step in steps):
            raise StateMismatch(f"the saved grid must have a positive number for each of {len(self._arrays)} arrays")
        if self._velocity is not None:
            found = [state.get(f"velocity.{number}") for number in range(len(self._arrays))]
            for saved, own in zip(found, self._velocity, strict=True):
                if not isinstance(saved, np.ndarray) or saved.shape != own.shape or saved.dtype != np.float32:
                    raise StateMismatch("the saved velocity must have the size of the arrays, in float32")
            self._velocity = [np.array(saved, np.float32) for saved in found]
        self._seed, self._generation, self._asked = seed, generation, 0
        self._grid = steps

    # -- noise, in parts ----------------------------------------------------------------------------------------------

    def _shift(self, candidate: Candidate, sign: float) -> None:
        draw = direction_stream(candidate.seed, candidate.generation, candidate.index // 2)
        for array, step in zip(self._arrays, self._grid, strict=True):
            for part in _parts(array.size):
                array[part] += _on_grid(sign * self._stdev * draw(len(array[part])), step)

    def _gradient(self, weights: Vector) -> Iterator[tuple[tuple[int, slice], Vector]]:
        """Yield the gradient part by part: the noise of all directions is drawn again, never kept."""
        draws: list[Callable[[int], Vector]] = [
            direction_stream(self._seed, self._generation, index) for index in range(len(weights))
        ]
        for number, array in enumerate(self._arrays):
            for part in _parts(array.size):
                total = np.zeros(len(array[part]))
                for weight, draw in zip(weights, draws, strict=True):
                    total += weight * draw(total.size)
                yield (number, part), total

    def _accelerated(self, weights: Vector, pull: float) -> float:
        """Advance the velocity; return the factor that shortens it to max_speed."""
        velocity = self._velocity or []
        for (number, part), gradient in self._gradient(weights):
            velocity[number][part] = self._momentum * velocity[number][part].astype(np.float64) + pull * gradient
        speed = math.sqrt(sum(float(np.square(each.astype(np.float64)).sum()) for each in velocity))
        return self._max_speed / speed if speed > self._max_speed else 1.0

    def _move(self, number: int, part: slice, step: Vector) -> None:
        self._arrays[number][part] += _on_grid(step, self._grid[number])


def _flat(array: FloatArray) -> FloatArray:
    """Return the array as a vector that shares its memory, or refuse it."""
    if not isinstance(array, np.ndarray) or array.dtype != np.float32 or not array.flags.writeable:
        raise InvalidArgument("arrays must be writeable numpy arrays of float32")
    if not array.flags.c_contiguous:
        raise InvalidArgument("arrays must lie in one piece of memory, in C order; use numpy.ascontiguousarray")
    flat = array.reshape(-1)
    if not math.isfinite(_largest(flat)):
        raise InvalidArgument("arrays must be finite")
    return flat


def _largest(array: FloatArray) -> float:
    """Return the largest size of a number, part by part: a copy of the array would not fit into memory."""
    return max((float(np.abs(array[part]).max()) for part in _parts(array.size)), default=0.0)


def _grid(array: FloatArray, stdev: float, room: float = _ROOM) -> float:
    """Return the step of a grid on which the array, its noise and their sums are exact in float32."""
    reach = room * (_largest(array) + _REACH * stdev)
    if not reach < float(np.finfo(np.float32).max) / 2:
        raise Diverged("the parameters left the range of float32: lower max_speed")
    return 2.0 ** (math.frexp(reach)[1] - 24)


def _on_grid(values: Vector, step: float) -> NDArray[np.float32]:
    return (np.rint(values / step) * step).astype(np.float32)


def _snap(array: FloatArray, step: float) -> None:
    for part in _parts(array.size):
        array[part] = _on_grid(array[part].astype(np.float64), step)


def _parts(size: int) -> Iterator[slice]:
    return (slice(start, min(start + CHUNK, size)) for start in range(0, size, CHUNK))
