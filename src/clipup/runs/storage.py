"""What a trainer saves: everything into a run directory, or nothing at all."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from clipup.errors import FileFault
from clipup.export.policy import PolicyTask, encode_policy
from clipup.policies import Policy
from clipup.runs.checkpoint import Checkpoint, clean_up, newest_checkpoint, whole_value, write_checkpoint
from clipup.runs.config import RunConfig, differing, identity
from clipup.runs.files import write_atomically
from clipup.runs.records import (
    ClockRecord,
    LineFile,
    Record,
    decode_line,
    encode_line,
    read_clock,
    size_up_to,
)
from clipup.runs.rundir import RunDirectory, Status


class Storage:
    """What a trainer calls to save a run. This one saves nothing, for a run without a directory."""

    checkpoint: Checkpoint | None = None
    """Where the run stands; None for its start."""
    seconds: float = 0.0
    """Training time so far."""
    path: Path | None = None
    """The run directory, if there is one."""

    def begin(self, status: Status) -> None:
        """The run starts."""

    def append(self, record: Record, clock: ClockRecord) -> int:
        """Add the lines of a generation; return the bytes of all records so far."""
        return 0

    def keep_best(self, whole: Checkpoint, policy: Policy, score: float | None) -> None:
        """Write the policy of a generation that scored better than all before it."""

    def keep(self, whole: Checkpoint, policy: Policy, score: float | None) -> None:
        """Take the state after a whole generation; write it now or later."""

    def finish(self, whole: Checkpoint, policy: Policy, status: Status) -> None:
        """Write everything that is not yet written, and how the run ended."""


class DirectoryStorage(Storage):
    """Keeps a run in its directory, which must be locked.

    Order matters. A record line is written and synced before the checkpoint that counts it. So, at whatever instant
    the machine stops, the newest checkpoint finds its records whole. Lines beyond it are cut off on resuming.
    """

    def __init__(self, directory: RunDirectory, config: RunConfig, warn: Callable[[str], None]) -> None:
        """Find the newest usable checkpoint and bring the record files to where it stands."""
        self.path = directory.path
        self._directory = directory
        self._config = config
        self._written = -1
        self._written_at = time.monotonic()
        self.checkpoint = newest_checkpoint(directory.checkpoints_path, self._objection, warn)
        if self.checkpoint is None and directory.policy_path.exists():  # which is written after a checkpoint
            raise FileFault(
                f"{directory.path}: the run has a policy but no checkpoint to go on from; put its checkpoints back, or "
                "start a new run; nothing was changed"
            )
        if self.checkpoint is not None:
            self._check_fits(self.checkpoint)
        clean_up(directory.checkpoints_path)
        generation = 0
        size = 0
        if self.checkpoint is not None:
            generation = self._written = self.checkpoint.generation
            size = whole_value(self.checkpoint.counters, "records_size")
        kept = size_up_to(directory.clock_path, generation)
        self._clock = LineFile(directory.clock_path)
        try:
            self._records = LineFile(directory.records_path)
        except FileFault:
            self._clock.close()
            raise
        self._records.cut(size)
        self._clock.cut(kept)
        clock = read_clock(directory.clock_path)
        self.seconds = clock[-1].seconds if clock else 0.0

    def begin(self, status: Status) -> None:
        """Write that the run is going."""
        self._directory.write_status(status)

    def append(self, record: Record, clock: ClockRecord) -> int:
        """Append both lines."""
        self._records.append(encode_line(record))
        self._clock.append(encode_line(clock))
        return self._records.size

    def keep_best(self, whole: Checkpoint, policy: Policy, score: float | None) -> None:
        """Write the best policy."""
        self._write_policy(self._directory.best_policy_path, whole, policy, score)

    def keep(self, whole: Checkpoint, policy: Policy, score: float | None) -> None:
        """Write the checkpoint when the last one is old enough."""
        if time.monotonic() - self._written_at >= self._config.checkpoint_seconds:
            self._write_checkpoint(whole)
            self._write_policy(self._directory.policy_path, whole, policy, score)

    def finish(self, whole: Checkpoint, policy: Policy, status: Status) -> None:
        """Write the last state, and how the run ended."""
        try:
            if whole.generation:
                if whole.generation != self._written:
                    self._write_checkpoint(whole)
                # Always: a crash may have come between the last checkpoint and its policy.
                self._write_policy(self._directory.policy_path, whole, policy, status.score)
            self._directory.write_status(status)
        finally:
            self._records.close()
            self._clock.close()

    def _write_checkpoint(self, whole: Checkpoint) -> None:
        self._records.sync()
        write_checkpoint(self._directory.checkpoints_path, whole, keep=self._config.keep_checkpoints)
        self._written = whole.generation
        self._written_at = time.monotonic()

    def _write_policy(self, path: Path, whole: Checkpoint, policy: Policy, score: float | None) -> None:
        config = self._config
        task = PolicyTask(
            env=config.env,
            env_options=config.env_options,
            engine=config.engine,
            rescale_actions=config.rescale_actions,
            generation=whole.generation,
            total_interactions=whole_value(whole.counters, "total_interactions"),
            score=score,
            trained_engine=str(whole.counters.get("engine", "")),
            simulator_version=str(whole.counters.get("simulator_version", "")),
        )
        write_atomically(path, encode_policy(policy, task))

    def _check_fits(self, checkpoint: Checkpoint) -> None:
        """Refuse to go on with other settings than the checkpoint was made with."""
        kept = checkpoint.counters.get("settings")
        if kept is None:  # written before checkpoints held them
            return
        try:
            before, now = dict(json.loads(str(kept))), identity(self._config)
        except (ValueError, TypeError, RecursionError) as error:
            raise FileFault(f"{self._directory.checkpoints_path}: the settings kept there cannot be read") from error
        if different := differing(before, now):
            raise FileFault(
                f"{self._directory.config_path}: changed since the run began ({', '.join(different)}); undo that, or "
                "start another run"
            )

    def _objection(self, checkpoint: Checkpoint) -> str | None:
        """Whether the records that the checkpoint counts are all there."""
        try:
            size = whole_value(checkpoint.counters, "records_size")
            with self._directory.records_path.open("rb") as file:
                data = file.read(size)
            last = data.rstrip(b"\n").rpartition(b"\n")[2]
            if len(data) == size and data.endswith(b"\n"):
                record = decode_line(last, Record, str(self._directory.records_path))
                if record.generation == checkpoint.generation:
                    return None
        except (OSError, FileFault):
            pass
        return f"the records of its {checkpoint.generation} generations are not all in records.jsonl"
