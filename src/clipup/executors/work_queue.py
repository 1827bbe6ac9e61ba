"""Which indices are waiting, which are being run, the results in order, and how large the next range is.

A range that was lost with its worker is halved before it runs again. So an index that kills its workers is soon alone
in its range, and can be named. Results are stored by index: neither the order of their arrival nor the number of tries
shows in them.

How many indices go into one range is a compromise. Large ranges are good because each message costs time, and all
messages pass through one trainer. Small ranges are good because all workers wait for the last one at the end of a
batch. So a range is a share of the waiting indices, and ranges shrink towards the end. Two limits apply. A range is
never so short that its message matters, or that its worker is back before the trainer has served the others (unless
that is more than an even share). And a range never lasts longer than `RangeRule.longest`, because that much work is
lost with a worker, or with speculation that is not needed. The constants are those that did best in
`benchmarks/executors_model.py`.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from typing import Generic, TypeVar

MESSAGES = 25
"""A range lasts at least this many times as long as its message takes."""

SPARE_SECONDS = 0.5
"""Ranges shorter than this are sent before the worker needs them, because the round trip would be noticeable."""

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, order=True)
class Span:
    """Indices ``start … stop - 1``, and how many workers were lost on them."""

    start: int
    stop: int
    losses: int = field(default=0, compare=False)

    def __len__(self) -> int:
        return self.stop - self.start

    def __str__(self) -> str:
        return str(self.start) if len(self) == 1 else f"{self.start}..{self.stop - 1}"


class WorkQueue(Generic[ResultT]):
    """The indices ``start … stop - 1``, handed out in spans. `extend` adds more. `unfinished` have no result yet.

    An index is given up when `tries` workers were lost on it alone. Spans have a multiple of `step` indices where
    possible: 2 keeps mirrored pairs together, whose noise is then made once.
    """

    def __init__(self, start: int = 0, stop: int = 0, *, tries: int = 3, step: int = 2) -> None:
        self._tries = tries
        self._step = step
        self._waiting: list[Span] = []  # a heap with the lowest index first, so that lost spans run again at once
        self._running: dict[int, Span] = {}
        self._done: dict[int, tuple[int, ResultT]] = {}
        self.stop = start
        self.unfinished = 0
        self.extend(stop)

    @property
    def waiting(self) -> int:
        """How many indices wait for a worker."""
        return sum(len(span) for span in self._waiting)

    def extend(self, stop: int) -> None:
        """Add the indices from the end of the queue to ``stop - 1``."""
        if self.stop < stop:
            heapq.heappush(self._waiting, Span(self.stop, stop))
            self.unfinished += stop - self.stop
            self.stop = stop

    def take(self, size: int) -> Span | None:
        """Return the next span, of at most `size` indices; None if nothing is waiting."""
        if not self._waiting:
            return None
        span = heapq.heappop(self._waiting)
        size = max(self._step, size - size % self._step)
        if len(span) > size:
            heapq.heappush(self._waiting, Span(span.start + size, span.stop, span.losses))
            span = Span(span.start, span.start + size, span.losses)
        self._running[span.start] = span
        return span

    def finish(self, start: int, result: ResultT) -> None:
        """Store the result of the running span that begins at `start`."""
        span = self._running.pop(start)
        self._done[start] = (span.stop, result)
        self.unfinished -= len(span)

    def give_back(self, start: int) -> None:
        """Let another worker have a span that no worker has begun."""
        heapq.heappush(self._waiting, self._running.pop(start))

    def lose(self, start: int) -> Span | None:
        """Put back the span on which a worker was lost. Return it instead if it is one index without tries left."""
        span = self._running.pop(start)
        if len(span) > 1:
            half = len(span) // 2
            if len(span) > self._step:
                half = max(self._step, half - half % self._step)
            middle = span.start + half
            # The count starts again: a worker lost on many indices says little about any one of them.
            for first, last in ((span.start, middle), (middle, span.stop)):
                heapq.heappush(self._waiting, Span(first, last))
            return None
        span = Span(span.start, span.stop, span.losses + 1)
        if span.losses >= self._tries:
            return span
        heapq.heappush(self._waiting, span)
        return None

    def ready(self, start: int) -> int:
        """Return the end of the results that follow each other from `start` on without a gap."""
        while start in self._done:
            start = self._done[start][0]
        return start

    def collect(self, start: int, stop: int) -> list[ResultT]:
        """Remove and return the results of ``start … stop - 1``, which are all ready, in order."""
        results: list[ResultT] = []
        while start < stop:
            start, result = self._done.pop(start)
            results.append(result)
        return results


@dataclass(frozen=True)
class RangeRule:
    """How a transport's work is best divided into ranges. It follows from what a message costs there."""

    share: float = 3.0
    """Divisor: a range is 1/share of an even split of the waiting indices."""
    message: float = 0.0004
    """Seconds that one range costs the trainer."""
    longest: float = 3.0
    """Seconds that a range should last at most."""
    depth: int = 2
    """How many ranges a worker may hold, including the one that it runs."""


class RangeSizer:
    """Learns how long one index takes, and says how many indices the next range has.

    That is `least` to `most` indices: engines that step many candidates at once are slow with few.
    """

    def __init__(self, rule: RangeRule, *, least: int = 2, most: int | None = None) -> None:
        self._rule = rule
        self._least = least
        self._most = most
        self._seconds: float | None = None

    def learn(self, count: int, seconds: float) -> None:
        """Note that `count` indices took `seconds`."""
        each = seconds / count
        # Exponential average with weight 1/10.
        self._seconds = each if self._seconds is None else self._seconds + 0.1 * (each - self._seconds)

    def size(self, waiting: int, workers: int) -> int:
        """Return the size of the next range, for this many waiting indices and workers."""
        if self._seconds is None:
            return self._least
        workers, each, rule = max(workers, 1), max(self._seconds, 1e-9), self._rule
        wanted = min(waiting / (rule.share * workers), rule.longest / each)
        shortest = rule.message * max(MESSAGES, 1.5 * workers)
        size = math.ceil(max(wanted, min(shortest / each, waiting / workers)))
        size = max(self._least, size + size % 2)
        return size if self._most is None else min(size, self._most)

    def is_short(self, size: int) -> bool:
        """Return whether a range of that size ends sooner than the next one could be fetched."""
        return self._seconds is None or size * self._seconds < SPARE_SECONDS
