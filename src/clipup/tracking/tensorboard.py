"""TensorBoard events, written with the `tensorboard` package alone (no TensorFlow, no PyTorch)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from clipup.errors import MissingDependency
from clipup.runs.records import ClockRecord, Record
from clipup.runs.rundir import Status
from clipup.runs.toml import format_config
from clipup.tracking.protocol import RunInfo, Tracker, measurements


class TensorBoardTracker(Tracker):
    """Writes scalars against the generation into `directory`; a resumed run goes on in the same plots."""

    def __init__(self, directory: Path) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError as error:
            raise MissingDependency.of("tensorboard", extra="tensorboard") from error
        self._directory = directory
        self._events: Any = event_pb2
        self._summaries: Any = summary_pb2
        self._make_writer: Any = EventFileWriter
        self._writer: Any = None

    def begin(self, info: RunInfo) -> None:
        """Open an event file; points newer than the checkpoint that the run goes on from are dropped by TensorBoard."""
        self._writer = self._make_writer(str(self._directory))
        restart = self._events.SessionLog(status=self._events.SessionLog.START)
        self._add(info.generation + 1, session_log=restart)
        text = self._summaries.Summary()
        value = text.value.add(tag="config/text_summary")
        value.metadata.plugin_data.plugin_name = "text"
        value.tensor.dtype = 7  # DT_STRING
        value.tensor.string_val.append(f"```\n{format_config(info.config)}```".encode())
        self._add(info.generation, summary=text)

    def generation(self, record: Record, clock: ClockRecord) -> None:
        """Write every number of the generation."""
        summary = self._summaries.Summary()
        for name, value in measurements(record, clock).items():
            summary.value.add(tag=f"clipup/{name}", simple_value=value)
        self._add(record.generation, summary=summary)

    def end(self, status: Status) -> None:
        """Flush and close."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _add(self, step: int, **fields: Any) -> None:
        self._writer.add_event(self._events.Event(wall_time=time.time(), step=step, **fields))
