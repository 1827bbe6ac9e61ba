"""What is told about a run while it goes: displays, TensorBoard, Weights & Biases, MLflow."""

from clipup.tracking.protocol import RunInfo, Tracker
from clipup.tracking.trackers import Trackers, make_trackers

__all__ = ["RunInfo", "Tracker", "Trackers", "make_trackers"]
