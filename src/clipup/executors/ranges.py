"""Which indices are still to be done, by whom they were lost, and the results in order: no clocks, no processes.

A range that was lost with its worker is halved before it is tried again, so that the one index that kills its workers
is soon alone, and can be named. Results are put together by index: neither the order in which they arrive nor the
number of times that something was tried can be seen in them.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Result = TypeVar("Result")


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


class Ranges(Generic[Result]):
    """Indices to be worked on, handed out in spans.

    Parameters
    ----------
    start
        The first index of all.
    tries
        How many workers may be lost on a single index before it is given up.
    step
        Spans have multiples of it as length, as far as the end allows: 2 keeps mirrored pairs, whose noise is made
        once, together.
    """

    def __init__(self, start: int = 0, *, tries: int = 3, step: int = 2) -> None:
        self._tries = tries
        self._step = step
        self._waiting: list[Span] = []  # a heap: the lowest index first, so that what was lost comes again at once
        self._working: dict[int, Span] = {}
        self._done: dict[int, tuple[int, Result]] = {}
        self._end = start
        self._unfinished = 0

    @property
    def waiting(self) -> int:
        """How many indices nobody works on."""
        return sum(len(span) for span in self._waiting)

    @property
    def unfinished(self) -> int:
        """How many indices are not done, whether somebody works on them or not."""
        return self._unfinished

    @property
    def first(self) -> int:
        """The lowest index that nobody works on; `end` where there is none."""
        return self._waiting[0].start if self._waiting else self._end

    @property
    def end(self) -> int:
        """One past the highest index that was added."""
        return self._end

    def add(self, start: int, stop: int) -> None:
        """Add the indices ``start … stop - 1``; those below `end` are there already."""
        start = max(start, self._end)
        if start < stop:
            heapq.heappush(self._waiting, Span(start, stop))
            self._end = stop
            self._unfinished += stop - start

    def take(self, size: int) -> Span | None:
        """Return the next span, of at most `size` indices; None where nothing waits."""
        if not self._waiting:
            return None
        span = heapq.heappop(self._waiting)
        size = max(self._step, size - size % self._step)
        if len(span) > size:
            heapq.heappush(self._waiting, Span(span.start + size, span.stop, span.losses))
            span = Span(span.start, span.start + size, span.losses)
        self._working[span.start] = span
        return span

    def finish(self, start: int, stop: int, result: Result) -> None:
        """Take in the result of a span that was taken."""
        del self._working[start]
        self._done[start] = (stop, result)
        self._unfinished -= stop - start

    def give_back(self, start: int) -> None:
        """Let somebody else have a span that nobody began."""
        heapq.heappush(self._waiting, self._working.pop(start))

    def lose(self, start: int) -> Span | None:
        """Put back the span that a worker was lost on; return it instead where it used up its tries."""
        span = self._working.pop(start)
        losses = span.losses + 1
        if len(span) > 1:
            half = len(span) // 2
            if len(span) > self._step:
                half = max(self._step, half - half % self._step)
            middle = span.start + half
            # Halving starts the count again: a worker lost on many indices says little about any one of them.
            for first, last in ((span.start, middle), (middle, span.stop)):
                heapq.heappush(self._waiting, Span(first, last))
            return None
        if losses >= self._tries:
            return Span(span.start, span.stop, losses)
        heapq.heappush(self._waiting, Span(span.start, span.stop, losses))
        return None

    def ready(self, start: int) -> int:
        """Return the index up to which, from `start` on, all results are there."""
        while start in self._done:
            start = self._done[start][0]
        return start

    def collect(self, start: int, stop: int) -> list[Result]:
        """Return the results of ``start … stop - 1``, which are ready, in order, and forget them."""
        results: list[Result] = []
        while start < stop:
            start, result = self._done.pop(start)
            results.append(result)
        return results
