"""Noise as a function of its index.

Direction ``i`` of generation ``k`` of a run with seed ``s`` is a stream of standard normals: the one that Philox, a
counter-based generator, gives for the key ``s`` and the counter ``(i, k)``. Nothing else enters. So any process can
make any candidate from a center, a standard deviation and three integers, in any order, as often as needed.

Candidates are numbered within their generation. Candidate ``2i`` lies at ``center + stdev * direction(i)`` and
candidate ``2i + 1`` is its mirror image about the center.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
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

# A thread pays for its start from about 20 ms of drawing on; beyond a few threads, memory is the limit.
_NORMALS_PER_THREAD = 2_000_000
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
    seed: int, generation: int, start: int, stop: int, out: FloatArray
) -> Iterator[tuple[int, FloatArray]]:
    """Yield ``(i, direction i)`` for i in ``start .. stop - 1``, written into the rows of `out` in turn.

    `out` has shape ``(rows, dimension)``. Row ``(i - start) % rows`` holds direction i until it is written again, so a
    single row is enough for a population of any size.
    """
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
    center: FloatArray, stdev: FloatArray, seed: int, generation: int, start: int, stop: int, keep_in: FloatArray | None
) -> FloatArray:
    """Return the candidates, and write their directions into the rows of `keep_in` if it is given."""
    _check_range(generation, start, stop)
    seed, center, stdev = check_seed(seed), np.asarray(center, np.float32), np.asarray(stdev, np.float32)
    if center.ndim != 1 or stdev.shape not in {(), center.shape}:
        raise InvalidArgument(
            f"a center of shape (dimension,) and a stdev like it are needed, got {center.shape} and {stdev.shape}"
        )
    first, last = start // 2, (stop + 1) // 2
    population = np.empty((stop - start, center.size), dtype=np.float32)

    def fill(begin: int, end: int) -> None:
        noise = np.empty((1, center.size), np.float32) if keep_in is None else keep_in[begin - first : end - first]
        delta = np.empty(center.size, dtype=np.float32)
        for index, direction in each_direction(seed, generation, begin, end, noise):
            np.multiply(stdev, direction, out=delta)
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
    """A batch of candidates drawn around `center` in mirrored pairs: a few integers and two vectors."""

    seed: int
    generation: int
    start: int
    stop: int
    center: FloatArray
    stdev: FloatArray

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def dimension(self) -> int:
        """The number of parameters of a candidate."""
        return self.center.size

    def candidates(self, start: int | None = None, stop: int | None = None) -> FloatArray:
        """Return candidates ``start .. stop - 1`` (indices within the generation; default: the whole batch)."""
        first = self.start if start is None else start
        last = self.stop if stop is None else stop
        if not self.start <= first <= last <= self.stop:
            raise InvalidArgument(
                f"a range within the batch's candidates {self.start}..{self.stop} is needed, got {first}..{last}"
            )
        return candidates(self.center, self.stdev, self.seed, self.generation, first, last)

    def candidates_keeping(self, directions: FloatArray) -> FloatArray:
        """Return the candidates of the whole batch, and write their directions into the array `directions`."""
        return _candidates(self.center, self.stdev, self.seed, self.generation, self.start, self.stop, directions)

    def until(self, stop: int) -> GaussianBatch:
        """Return the candidates that follow this batch in its generation: ``self.stop .. stop - 1``."""
        return replace(self, start=self.stop, stop=stop)

    def same_generation(self, other: object) -> bool:
        """Return whether equal indices mean equal candidates in both batches."""
        return (
            isinstance(other, GaussianBatch)
            and (self.seed, self.generation) == (other.seed, other.generation)
            and self.center.tobytes() == other.center.tobytes()
            and self.stdev.tobytes() == other.stdev.tobytes()
        )


def _check_range(generation: int, start: int, stop: int) -> None:
    whole = all(isinstance(value, int | np.integer) for value in (generation, start, stop))
    if not whole or not (0 <= generation < _INDEX_LIMIT and 0 <= start <= stop < _INDEX_LIMIT):
        raise InvalidArgument(
            f"0 <= generation and 0 <= start <= stop are needed, got generation={generation!r}, "
            f"start={start!r}, stop={stop!r}"
        )
