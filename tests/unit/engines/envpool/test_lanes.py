"""Pools of lanes: made when needed, caught up when behind, made anew when ahead."""

import numpy as np

from clipup.engines import Task
from clipup.engines.envpool.lanes import LanePools
from clipup.engines.envpool.pool import pool_layout


class Kept:
    """Lane pools, and the lanes that they had to make."""

    def __init__(self) -> None:
        self.pools = LanePools(pool_layout(Task("InvertedPendulum-v4")), threads=1, parts=2)
        self.made: list[list[int]] = []

    def take(self, page: int, lanes: list[int], resets: int) -> list[list[int]]:
        """Return the lanes of each piece."""

        def seeds(chosen: np.ndarray) -> list[int]:
            self.made.append(chosen.tolist())
            return chosen.tolist()

        pieces = self.pools.take(page, seeds, np.array(lanes), np.full(len(lanes), resets))
        for pool, slots, places in pieces:
            assert (pool.resets[slots] == resets).all()
            assert pool.lanes[slots].tolist() == np.array(lanes)[places].tolist()
        return [pool.lanes[slots].tolist() for pool, slots, _ in pieces]


def test_lanes_are_made_once_for_a_page_in_parts() -> None:
    kept = Kept()
    assert kept.take(0, [0, 1, 2, 3], 0) == [[0, 1], [2, 3]]
    assert kept.take(0, [1, 2], 3) == [[1], [2]]
    assert kept.take(0, [2, 3, 4], 3) == [[2, 3], [4]]
    assert kept.made == [[0, 1], [2, 3], [4]]
    kept.pools.close()


def test_a_lane_that_is_ahead_is_made_anew() -> None:
    kept = Kept()
    kept.take(0, [0, 1], 5)
    kept.take(0, [1], 2)
    assert kept.made == [[0], [1], [1]]
    kept.pools.close()


def test_another_page_starts_afresh() -> None:
    kept = Kept()
    kept.take(0, [0], 0)
    kept.take(1, [0], 0)
    assert kept.made == [[0], [0]]
    kept.pools.close()
