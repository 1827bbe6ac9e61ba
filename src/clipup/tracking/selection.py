"""Which trackers a configuration asks for."""

from __future__ import annotations

from pathlib import Path

from clipup.errors import InvalidArgument
from clipup.runs.config import RunConfig
from clipup.tracking.protocol import Tracker


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
