"""Whether the next batch of an adaptive generation is worth starting on before it is asked for."""

from __future__ import annotations

from clipup.searches.sampling import Batch


class Foresight:
    """Generations resemble each other: a batch is expected where the generation before needed one like it.

    A wrong guess costs time on workers that would have been idle, and at worst the rest of the ranges they are at;
    it never changes a result.

    >>> import numpy as np
    >>> nothing = np.zeros(1, np.float32)
    >>> batch = lambda generation, start: Batch(0, generation, start, start + 4, nothing, nothing)
    >>> foresight = Foresight()
    >>> foresight.learn(batch(0, 0))
    >>> foresight.expects(batch(0, 4))  # the first generation: nothing speaks against it
    True
    >>> foresight.learn(batch(0, 4))
    >>> foresight.learn(batch(1, 0))
    >>> foresight.expects(batch(1, 4)), foresight.expects(batch(1, 8))
    (True, False)
    """

    def __init__(self) -> None:
        self._current: int | None = None
        self._reached = 0
        self._needed: int | None = None  # by the generation before the current one

    def learn(self, batch: Batch) -> None:
        """Take in that a batch was asked for."""
        if self._current is not None and batch.generation != self._current:
            self._needed = self._reached
        self._current, self._reached = batch.generation, batch.stop

    def expects(self, following: Batch) -> bool:
        """Return whether that batch is likely to be asked for."""
        return self._needed is None or following.start < self._needed
