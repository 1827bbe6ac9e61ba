"""How many candidates go into one message.

Two wishes pull apart: many, because each message costs time that is not simulation; few, because at the end of a batch
everybody waits for the last one. So ranges are a share of what is left, and shrink with it, but last neither less than
`shortest` (where that is still an even share) nor more than `longest` (what is lost with a worker, or done for nothing
by speculation).
"""

from __future__ import annotations

import math

SHARE = 3
"""A worker's range is this part of its even share of what is left."""


class Pace:
    """Learns how long one index takes, and says how many to hand out.

    Parameters
    ----------
    least, most
        Never fewer than this: engines that step many candidates at once are slow with few. Never more than that.
    shortest, longest
        Seconds that a range should last at least (some fifty times what a message costs) and at most.
    """

    def __init__(
        self, *, least: int = 2, most: int | None = None, shortest: float = 0.01, longest: float = 3.0
    ) -> None:
        self._least = least
        self._most = most
        self._shortest = shortest
        self._longest = longest
        self._seconds: float | None = None

    def learn(self, count: int, seconds: float) -> None:
        """Take in that `count` indices took `seconds`."""
        each = seconds / count
        # Later ones count as much as all before them taken together over about ten messages.
        self._seconds = each if self._seconds is None else self._seconds + 0.1 * (each - self._seconds)

    def size(self, waiting: int, workers: int) -> int:
        """Return how many of `waiting` indices to hand out next, with so many workers."""
        if self._seconds is None:
            return self._least
        workers, each = max(workers, 1), max(self._seconds, 1e-9)
        wished = min(waiting / (SHARE * workers), self._longest / each)
        size = math.ceil(max(wished, min(self._shortest / each, waiting / workers)))
        size = max(self._least, size + size % 2)
        return size if self._most is None else min(size, self._most)
