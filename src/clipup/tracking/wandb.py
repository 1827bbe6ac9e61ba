"""Weights & Biases."""

from __future__ import annotations

import hashlib
from typing import Any

from clipup.errors import MissingDependency
from clipup.runs.config import config_values
from clipup.runs.records import ClockRecord, Record
from clipup.runs.rundir import Status
from clipup.tracking.protocol import RunInfo, Tracker, measurements, starting


class WandbTracker(Tracker):
    """Logs every number against the generation to one project."""

    def __init__(self, project: str) -> None:
        try:
            import wandb  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise MissingDependency.of("wandb", extra="wandb") from error
        self._library: Any = wandb
        self._project = project
        self._run: Any = None

    def begin(self, info: RunInfo) -> None:
        """Start a run, or go on with the one that belongs to the run directory."""
        identity = None
        if info.path is not None:
            identity = hashlib.sha256(str(info.path.resolve()).encode()).hexdigest()[:16]
        with starting("Weights & Biases", "log in, set WANDB_MODE=offline, or leave --wandb out"):
            self._run = self._library.init(
                project=self._project,
                name=info.path.name if info.path is not None else None,
                id=identity,
                resume="allow",
                config=config_values(info.config),
            )

    def generation(self, record: Record, clock: ClockRecord) -> None:
        """Log every number of the generation."""
        self._run.log(measurements(record, clock), step=record.generation)

    def end(self, status: Status) -> None:
        """Finish the run."""
        if self._run is not None:
            self._run.finish(exit_code=0 if status.state == "finished" else 1)
            self._run = None
