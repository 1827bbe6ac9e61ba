"""All trackers of a run as one, none of which can end it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clipup.errors import one_line
from clipup.runs.records import ClockRecord, Record
from clipup.runs.rundir import Status
from clipup.tracking.protocol import RunInfo, Tracker


class Audience:
    """Tells every tracker; one that fails once the run has begun is left out from then on, and the others are told.

    Parameters
    ----------
    trackers
        In the order in which they are told.
    """

    def __init__(self, trackers: Sequence[Tracker]) -> None:
        self._invited = tuple(trackers)
        self._present: list[Tracker] = []

    def begin(self, info: RunInfo) -> None:
        """The run starts; a tracker that cannot start is an error, as long as there is nothing to lose."""
        for tracker in self._invited:
            tracker.begin(info)
            self._present.append(tracker)

    def generation(self, record: Record, clock: ClockRecord) -> None:
        """A generation ended."""
        self._tell(lambda tracker: tracker.generation(record, clock))

    def message(self, text: str) -> None:
        """Something that a person should know happened."""
        self._tell(lambda tracker: tracker.message(text))

    def end(self, status: Status) -> None:
        """The run ended, for whatever reason."""
        self._tell(lambda tracker: tracker.end(status))

    def _tell(self, what: Callable[[Tracker], None]) -> None:
        for tracker in list(self._present):
            try:
                what(tracker)
            except Exception as error:
                self._present.remove(tracker)
                name = type(tracker).__name__
                self.message(f"warning: {name} failed and is left out, the run goes on ({one_line(error)})")
