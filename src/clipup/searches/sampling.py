"""Noise as a function of its index.

Direction ``i`` of generation ``k`` of a run with seed ``s`` is a stream of standard normals: the one that Philox, a
counter-based generator, gives for the key ``s`` and the counter ``(i, k)``. Nothing else enters. So any process can
make any candidate from a center, a standard deviation and three integers, in any order, as often as needed.

Candidates are numbered within their generation. In mirrored pairs, candidate ``2i`` lies at
``center + stdev * direction(i)`` and candidate ``2i + 1`` is its mirror image about the center. Without mirroring,
candidate ``i`` lies at ``center + stdev * direction(i)``.

Directions can be orthogonal: those of a block (``orthogonal`` of them) are then made perpendicular to each other, and
each keeps the length that it was drawn with. A direction alone is still uniform in its angle, and still a standard
normal vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from clipup.errors import InvalidArgument
from clipup.processors import available_threads
from clipup.searches.protocol import FloatArray

# The second half of Philox's 128-bit key names what the numbers are for, so that other uses of the run's seed (such as
# the seeds of episodes) can never meet the stream of directions.
_DIRECTIONS = 0x636C6970_75700001

SEED_LIMIT = 2**64
_INDEX_LIMIT = 2**63

# A thread pays for its start from about 2 ms of drawing on. Beyond a few threads, memory is the limit.
_NORMALS_PER_THREAD = 250_000
_THREADS_MAX = 8


def check_seed(seed: int) -> int:
    """Return `seed` as an int, or refuse it: a seed is one 64-bit word of the generator's key."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < SEED_LIMIT:
        raise InvalidArgument(f"seed must be an integer from 0 to 2**64 - 1, got {seed!r}")
    return int(seed)


def draw_seed() -> int:
    """Return a fresh seed from the operating system's entropy."""
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])


def each_direction(
    seed: int, generation: int, start: int, stop: int, out: FloatArray, orthogonal: int = 0
) -> Iterator[tuple[int, FloatArray]]:
    """Yield ``(i, direction i)`` for i in ``start .. stop - 1``, written into the rows of `out` in turn.

    `out` has shape ``(rows, dimension)``. Row ``(i - start) % rows`` holds direction i until it is written again, so a
    single row is enough for a population of any size. `orthogonal` is the size of an orthogonal block; 0 for none.
    """
    if orthogonal:
        for index in range(start, stop):
            block, place = divmod(index, orthogonal)
            row = out[(index - start) % len(out)]
            row[:] = _orthogonal_block(seed, generation, block, orthogonal, out.shape[1])[place]
            yield index, row
        return
    # Setting the counter of one generator takes 2 µs, constructing a generator 20 µs (benchmarks/search_speed.py).
    bits = np.random.Philox(key=np.array([seed, _DIRECTIONS], dtype=np.uint64))
    generator = np.random.Generator(bits)
    state = bits.state
    counter: NDArray[np.uint64] = state["state"]["counter"]
    counter[2] = generation
    for index in range(start, stop):
        counter[1] = index
        bits.state = state
        row = out[(index - start) % len(out)]
        generator.standard_normal(dtype=np.float32, out=row)
        yield index, row


def direction_stream(seed: int, generation: int, index: int) -> Callable[[int], NDArray[np.float64]]:
    """Return a function that draws the next numbers of one direction: in parts of any size, the same numbers."""
    bits = np.random.Philox(key=np.array([seed, _DIRECTIONS], dtype=np.uint64), counter=[0, index, generation, 0])
    generator = np.random.Generator(bits)
    return lambda count: generator.standard_normal(count, dtype=np.float32).astype(np.float64)


@lru_cache(maxsize=2)  # neighbours in a generation are asked for one after the other
def _orthogonal_block(seed: int, generation: int, number: int, size: int, dimension: int) -> FloatArray:
    """Return the directions of one orthogonal block, by Gram and Schmidt. Elementwise sums keep the bits everywhere."""
    rows = directions(seed, generation, number * size, (number + 1) * size, dimension).astype(np.float64)
    lengths = np.sqrt(np.square(rows).sum(axis=1))
    for index in range(size):
        for _ in range(2):  # the second pass removes what the first one's rounding left
            before = rows[:index]
            shares = (before * rows[index]).sum(axis=1)
            rows[index] -= (before * shares[:, np.newaxis]).sum(axis=0)
        rows[index] /= np.sqrt(np.square(rows[index]).sum())
    result = (rows * lengths[:, np.newaxis]).astype(np.float32)
    result.flags.writeable = False
    return result


def directions(seed: int, generation: int, start: int, stop: int, dimension: int) -> FloatArray:
    """Return directions ``start .. stop - 1`` of a generation: standard normals of shape ``(stop - start, dimension)``.

    >>> few = directions(seed=1, generation=5, start=2, stop=4, dimension=3)
    >>> many = directions(seed=1, generation=5, start=0, stop=9, dimension=3)
    >>> bool((few == many[2:4]).all())
    True
    """
    _check_range(generation, start, stop)
    out = np.empty((stop - start, dimension), dtype=np.float32)
    for _ in each_direction(check_seed(seed), generation, start, stop, out):
        pass
    return out


def candidates(center: FloatArray, stdev: FloatArray, seed: int, generation: int, start: int, stop: int) -> FloatArray:
    """Return candidates ``start .. stop - 1`` of a generation, of shape ``(stop - start, dimension)``, float32.

    A pure function of its arguments: a worker that has the center, the standard deviation and the seed makes its own
    share of the population, and any split of the range gives the same rows.

    >>> center, stdev = np.zeros(3, np.float32), np.ones(3, np.float32)
    >>> whole = candidates(center, stdev, seed=1, generation=0, start=0, stop=6)
    >>> part = candidates(center, stdev, seed=1, generation=0, start=3, stop=5)
    >>> bool((part == whole[3:5]).all() and (whole[0] == -whole[1]).all())
    True
    """
    return _candidates(center, stdev, seed, generation, start, stop, None)


def _candidates(
    center: FloatArray,
    stdev: FloatArray,
    seed: int,
    generation: int,
    start: int,
    stop: int,
    keep_in: FloatArray | None,
    mirrored: bool = True,
    orthogonal: int = 0,
) -> FloatArray:
    """Return the candidates, and write their directions into the rows of `keep_in` if it is given."""
    _check_range(generation, start, stop)
    # Small integers of numpy would overflow below.
    generation, start, stop = int(generation), int(start), int(stop)
    seed, center, stdev = check_seed(seed), np.asarray(center, np.float32), np.asarray(stdev, np.float32)
    if center.ndim != 1 or stdev.shape not in {(), center.shape}:
        raise InvalidArgument(
            f"a center of shape (dimension,) and a stdev like it are needed, got {center.shape} and {stdev.shape}"
        )
    first, last = (start // 2, (stop + 1) // 2) if mirrored else (start, stop)
    population = np.empty((stop - start, center.size), dtype=np.float32)

    def fill(begin: int, end: int) -> None:
        noise = np.empty((1, center.size), np.float32) if keep_in is None else keep_in[begin - first : end - first]
        delta = np.empty(center.size, dtype=np.float32)
        for index, direction in each_direction(seed, generation, begin, end, noise, orthogonal):
            np.multiply(stdev, direction, out=delta)
            if not mirrored:
                np.add(center, delta, out=population[index - start])
                continue
            above, below = 2 * index - start, 2 * index + 1 - start
            if above >= 0:
                np.add(center, delta, out=population[above])
            if below < len(population):
                np.subtract(center, delta, out=population[below])

    _in_threads(fill, first, last, center.size)
    return population


def _in_threads(fill: Callable[[int, int], None], first: int, last: int, dimension: int) -> None:
    """Call `fill` on parts of ``first .. last``, in parallel if they are large enough: numpy draws without the GIL.

    A direction is the same in every part, so the number of threads changes nothing.
    """
    threads = min(_THREADS_MAX, available_threads(), (last - first) * dimension // _NORMALS_PER_THREAD)
    if threads < 2:
        fill(first, last)
        return
    from concurrent.futures import ThreadPoolExecutor  # here: it imports logging, which a small search never needs

    edges = [first + (last - first) * part // threads for part in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(fill, begin, end) for begin, end in pairwise(edges)]:
            done.result()


@dataclass(frozen=True, eq=False)
class GaussianBatch:
    """A batch of candidates drawn around `center`, in mirrored pairs or not: a few integers and two vectors."""

    seed: int
    generation: int
    start: int
    stop: int
    center: FloatArray
    stdev: FloatArray
    mirrored: bool = True
    orthogonal: int = 0
    """How many directions are made orthogonal to each other; 0 for none."""

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def dimension(self) -> int:
        """The number of parameters of a candidate."""
        return self.center.size

    def candidates(self, start: int | None = None, stop: int | None = None) -> FloatArray:
        """Return candidates ``start .. stop - 1`` (indices within the generation; default: the whole batch)."""
        first, last = range_within(self.start, self.stop, start, stop)
        return self._made(first, last, None)

    def candidates_keeping(self, directions: FloatArray) -> FloatArray:
        """Return the candidates of the whole batch, and write their directions into the array `directions`."""
        return self._made(self.start, self.stop, directions)

    def _made(self, start: int, stop: int, keep_in: FloatArray | None) -> FloatArray:
        return _candidates(
            self.center,
            self.stdev,
            self.seed,
            self.generation,
            start,
            stop,
            keep_in,
            self.mirrored,
            self.orthogonal,
        )

    def until(self, stop: int) -> GaussianBatch:
        """Return the candidates that follow this batch in its generation: ``self.stop .. stop - 1``."""
        return replace(self, start=self.stop, stop=stop)

    def same_generation(self, other: object) -> bool:
        """Return whether equal indices mean equal candidates in both batches."""
        return (
            isinstance(other, GaussianBatch)
            and (self.seed, self.generation) == (other.seed, other.generation)
            and (self.mirrored, self.orthogonal) == (other.mirrored, other.orthogonal)
            and self.center.tobytes() == other.center.tobytes()
            and self.stdev.tobytes() == other.stdev.tobytes()
        )


@dataclass(frozen=True, eq=False)
class LinearBatch:
    """A batch of candidates ``center + matrix @ z``, unmirrored: a few integers, a vector and a matrix."""

    seed: int
    generation: int
    start: int
    stop: int
    center: FloatArray
    matrix: NDArray[np.float64]

    def __len__(self) -> int:
        return self.stop - self.start

    def candidates(self, start: int | None = None, stop: int | None = None) -> FloatArray:
        """Return candidates ``start .. stop - 1`` (indices within the generation; default: the whole batch)."""
        first, last = range_within(self.start, self.stop, start, stop)
        normals = directions(self.seed, self.generation, first, last, self.center.size).astype(np.float64)
        return (self.center + product(normals, self.matrix.T)).astype(np.float32)

    def until(self, stop: int) -> LinearBatch:
        """Return the candidates that follow this batch in its generation: ``self.stop .. stop - 1``."""
        return replace(self, start=self.stop, stop=stop)

    def same_generation(self, other: object) -> bool:
        """Return whether equal indices mean equal candidates in both batches."""
        return (
            isinstance(other, LinearBatch)
            and (self.seed, self.generation) == (other.seed, other.generation)
            and self.center.tobytes() == other.center.tobytes()
            and self.matrix.tobytes() == other.matrix.tobytes()
        )


def product(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the matrix product, summed in one order: a BLAS gives other bits on other processors and other shapes."""
    result = np.zeros((len(one), other.shape[1]))
    for column, row in zip(one.T, other, strict=True):
        result += column[:, np.newaxis] * row
    return result


def range_within(begin: int, end: int, start: int | None, stop: int | None) -> tuple[int, int]:
    """Return the range ``start .. stop``, by default the whole of ``begin .. end``, or refuse one outside of it."""
    first, last = begin if start is None else start, end if stop is None else stop
    if not begin <= first <= last <= end:
        raise InvalidArgument(f"a range within the batch's candidates {begin}..{end} is needed, got {first}..{last}")
    return first, last


def _check_range(generation: int, start: int, stop: int) -> None:
    whole = all(isinstance(value, int | np.integer) for value in (generation, start, stop))
    if not whole or not (0 <= generation < _INDEX_LIMIT and 0 <= start <= stop < _INDEX_LIMIT):
        raise InvalidArgument(
            f"0 <= generation and 0 <= start <= stop are needed, got generation={generation!r}, "
            f"start={start!r}, stop={stop!r}"
        )
