"""How many candidates go into one message.

Two wishes pull apart: many, because each message costs time that is not simulation, and all of them go through one
trainer; few, because at the end of a batch everybody waits for the last one. So ranges are a share of what is left, and
shrink with it. But none is so short (where it would be less than an even share) that its message counts, or that the
trainer has not served all workers before the first is back; and none is longer than `longest`, which is what is lost
with a worker, or done for nothing by speculation.

The constants are those that did best in `benchmarks/executors_model.py`.
"""

from __future__ import annotations

import math

MESSAGES = 25
"""A range lasts at least so many times as long as its message takes."""

SPARE_SECONDS = 0.5
"""Ranges shorter than this are handed out before they are needed: the way to the worker and back would be felt."""


class Pace:
    """Learns how long one index takes, and says how many to hand out.

    Parameters
    ----------
    least, most
        Never fewer than this: engines that step many candidates at once are slow with few. Never more than that.
    share
        A range is a worker's even share of what is left, over this.
    message
        Seconds that the trainer spends on a range.
    longest
        Seconds that a range should last at most.
    """

    def __init__(
        self,
        *,
        least: int = 2,
        most: int | None = None,
        share: float = 3.0,
        message: float = 0.0004,
        longest: float = 3.0,
    ) -> None:
        self._least = least
        self._most = most
        self._share = share
        self._message = message
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
        wished = min(waiting / (self._share * workers), self._longest / each)
        shortest = self._message * max(MESSAGES, 1.5 * workers)
        size = math.ceil(max(wished, min(shortest / each, waiting / workers)))
        size = max(self._least, size + size % 2)
        return size if self._most is None else min(size, self._most)

    def is_short(self, size: int) -> bool:
        """Return whether a range of that size is done before the next one could be sent for."""
        return self._seconds is None or size * self._seconds < SPARE_SECONDS
