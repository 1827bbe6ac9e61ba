"""All trackers of a run as one, so that none of them can end it; and which ones a configuration asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from clipup.errors import InvalidArgument, one_line
from clipup.runs.config import RunConfig
from clipup.runs.records import ClockRecord, Record
from clipup.runs.rundir import Status
from clipup.tracking.protocol import RunInfo, Tracker


class Trackers:
    """Tells every tracker, in order. One that fails after its start is left out, and the others are told."""

    def __init__(self, trackers: Sequence[Tracker]) -> None:
        self._given = tuple(trackers)
        self._active: list[Tracker] = []

    def begin(self, info: RunInfo) -> None:
        """The run starts. A tracker that cannot start raises: nothing can be lost yet."""
        for tracker in self._given:
            tracker.begin(info)
            self._active.append(tracker)

    def generation(self, record: Record, clock: ClockRecord) -> None:
        """A generation ended."""
        self._tell(lambda tracker: tracker.generation(record, clock))

    def message(self, text: str) -> None:
        """Something happened that a person should know."""
        self._tell(lambda tracker: tracker.message(text))

    def end(self, status: Status) -> None:
        """The run ended, for whatever reason."""
        self._tell(lambda tracker: tracker.end(status))

    def _tell(self, what: Callable[[Tracker], None]) -> None:
        for tracker in list(self._active):
            try:
                what(tracker)
            except Exception as error:
                self._active.remove(tracker)
                name = type(tracker).__name__
                self.message(f"warning: {name} failed and is left out, the run goes on ({one_line(error)})")


def make_trackers(config: RunConfig, path: Path | None) -> list[Tracker]:
    """The trackers of a configuration. A library that is missing is reported now, before anything has started."""
    trackers: list[Tracker] = []
    if config.tensorboard:
        if path is None:
            raise InvalidArgument("tensorboard writes into the run directory; give run=… too")
        from clipup.tracking.tensorboard import TensorBoardTracker

        trackers.append(TensorBoardTracker(path / "tensorboard"))
    if config.wandb is not None:
        from clipup.tracking.wandb import WandbTracker

        trackers.append(WandbTracker(config.wandb))
    if config.mlflow is not None:
        from clipup.tracking.mlflow import MlflowTracker

        trackers.append(MlflowTracker(config.mlflow))
    return trackers
