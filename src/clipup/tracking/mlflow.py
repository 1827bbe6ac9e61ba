"""MLflow."""

from __future__ import annotations

from typing import Any

from clipup.errors import MissingDependency
from clipup.runs.config import config_values
from clipup.runs.records import ClockRecord, Record
from clipup.runs.rundir import Status
from clipup.tracking.protocol import RunInfo, Tracker, measurements, starting


class MlflowTracker(Tracker):
    """Logs every number against the generation to one experiment."""

    def __init__(self, experiment: str) -> None:
        try:
            import mlflow  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise MissingDependency.of("mlflow", extra="mlflow") from error
        self._library: Any = mlflow
        self._experiment = experiment

    def begin(self, info: RunInfo) -> None:
        """Start a run of the experiment."""
        with starting("MLflow", "check MLFLOW_TRACKING_URI, or leave --mlflow out"):
            self._library.set_experiment(self._experiment)
            self._library.start_run(run_name=info.path.name if info.path is not None else None)
            self._library.log_params({name: str(value) for name, value in config_values(info.config).items()})

    def generation(self, record: Record, clock: ClockRecord) -> None:
        """Log every number of the generation."""
        self._library.log_metrics(measurements(record, clock), step=record.generation)

    def end(self, status: Status) -> None:
        """Finish the run."""
        self._library.end_run(status="FINISHED" if status.state == "finished" else "KILLED")
