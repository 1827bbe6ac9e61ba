"""Seeds as functions of an index: each can be made alone, in any process and in any order.

A counter-based generator (Philox) is keyed by the run's seed and a tag for the purpose. Its counter is
``(index, episode, epoch, stream)``. Block *i* of its output belongs to index *i*, so one draw gives a range of seeds.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from clipup.errors import InvalidArgument

Stream = Literal["training", "evaluation"]
Purpose = Literal["candidate", "home", "overflow"]
_STREAMS: dict[str, int] = {"training": 0, "evaluation": 1}
# Random constants; they keep these seeds apart from each other and from the noise of `clipup.searches.sampling`.
_TAGS: dict[Purpose, int] = {
    "candidate": 0x5E3C9A7741D20B86,
    "home": 0x1F84B6E2C07A593D,
    "overflow": 0xA9D05374E6182FCB,
}


def stream_number(stream: str) -> int:
    """Return the number of a stream of seeds; `InvalidArgument` for an unknown one."""
    if stream not in _STREAMS:
        raise InvalidArgument(f"stream must be 'training' or 'evaluation', got {stream!r}")
    return _STREAMS[stream]


def seed_words(
    seed: int, purpose: Purpose, *, epoch: int, stream: Stream, indices: NDArray[np.int64], episode: int = 0
) -> NDArray[np.uint64]:
    """Return 64 random bits for each of `indices` (not empty, not negative)."""
    if not 0 <= seed < 2**64:
        raise InvalidArgument(f"seed must be an integer from 0 to 2**64 - 1, got {seed}")
    if epoch < 0 or int(indices.min()) < 0:
        raise InvalidArgument(f"generation and candidate must not be negative, got {epoch} and {int(indices.min())}")
    first, last = int(indices.min()), int(indices.max())
    key = np.array([seed, _TAGS[purpose]], dtype=np.uint64)
    counter = np.array([first, episode, epoch, stream_number(stream)], dtype=np.uint64)
    # Four words to a block, one block to an index.
    blocks = np.random.Philox(key=key, counter=counter).random_raw(4 * (last - first + 1))[::4]
    return blocks[indices - first]


def int31(words: NDArray[np.uint64]) -> list[int]:
    """Return seeds as EnvPool takes them: non-negative 32-bit integers."""
    return (words >> np.uint64(33)).astype(np.int64).tolist()


def uint32(words: NDArray[np.uint64]) -> list[int]:
    """Return seeds as ``reset(seed=…)`` takes them everywhere: unsigned 32-bit integers."""
    return (words >> np.uint64(32)).astype(np.int64).tolist()


def seed_indices(indices: NDArray[np.int64], sharing: str) -> NDArray[np.int64]:
    """Return which index each candidate takes its seeds from: its own, its pair's, or the generation's."""
    if sharing == "pair":
        return indices // 2
    if sharing == "shared":
        return np.zeros_like(indices)
    return indices
