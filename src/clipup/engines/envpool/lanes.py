"""Pools of lanes that are kept from one rollout to the next."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from clipup.engines.envpool.pool import Layout, Pool

SeedLanes = Callable[[NDArray[np.int64]], Sequence[int]]


Piece = tuple[Pool, NDArray[np.int32], NDArray[np.int64]]
"""A pool, and some of the lanes asked for: their environments in the pool, and their places among those asked for."""


class LanePools:
    """The lanes of one page, made when they are needed. Within a page (some generations) each lane has one seed.

    Lanes that are made together are split into `parts` pools, each with this many threads.
    """

    def __init__(self, layout: Layout, threads: int, parts: int) -> None:
        self._layout = layout
        self._threads = threads
        self._parts = parts
        self._page: Hashable = None
        self._pools: list[Pool] = []

    def take(
        self, page: Hashable, seed_lanes: SeedLanes, lanes: NDArray[np.int64], resets: NDArray[np.int64]
    ) -> list[Piece]:
        """Return pools that hold `lanes` (ascending), each lane reset exactly as often as `resets` says."""
        if page != self._page:
            self.close()
            self._page = page
        for pool in list(self._pools):
            slots, places = _common(pool.lanes, lanes)
            if (pool.resets[slots] > resets[places]).any():
                pool.close()
                self._pools.remove(pool)
        held = [pool.lanes for pool in self._pools]
        missing = np.setdiff1d(lanes, np.concatenate(held)) if held else lanes
        for part in np.array_split(missing, min(self._parts, len(missing)) or 1):
            if len(part):
                self._pools.append(Pool(self._layout, part, seed_lanes(part), self._threads))
        pieces: list[Piece] = []
        for pool in self._pools:
            slots, places = _common(pool.lanes, lanes)
            if len(slots):
                pool.advance_to(slots, resets[places])
                pieces.append((pool, slots, places))
        return pieces

    def close(self) -> None:
        """Free all pools."""
        for pool in self._pools:
            pool.close()
        self._pools.clear()
        self._page = None


def _common(held: NDArray[np.int64], asked: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the places in each of the lanes that are in both."""
    _, slots, places = np.intersect1d(held, asked, assume_unique=True, return_indices=True)
    return slots.astype(np.int32), places
