"""What a trainer saves: everything into a run directory, or nothing at all."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clipup.decoding import WORDS, decode_object
from clipup.errors import FileFault
from clipup.export.policy import PolicyTask, encode_policy
from clipup.policies import Policy
from clipup.runs.checkpoint import Checkpoint, newest_checkpoint, whole_value, write_checkpoint
from clipup.runs.config import RunConfig, differing, identity
from clipup.runs.line_file import LineFile, encode_clock, read_clock_prefix, read_prefix
from clipup.runs.records import ClockRecord, Record, decode_line, encode_line, last_line
from clipup.runs.rundir import RunDirectory, Status


@dataclass(frozen=True)
class RecordsMark:
    """How many bytes the records of a run have, and their digest."""

    size: int = 0
    digest: str = ""


class Storage:
    """What a trainer calls to save a run. This one saves nothing, for a run without a directory."""

    checkpoint: Checkpoint | None = None
    """Where the run stands; None for its start."""
    seconds: float = 0.0
    """Training time so far."""
    path: Path | None = None
    """The run directory, if there is one."""
    limits_evaluation: bool = False
    """Whether `max_episode_steps` holds for evaluations too, because the environment has no limit of its own."""

    def take_up(self) -> None:
        """Go on from the checkpoint, which was found to fit; nothing was changed before."""

    def begin(self, status: Status) -> None:
        """The run starts."""

    def append(self, record: Record, clock: ClockRecord) -> RecordsMark:
        """Add the lines of a generation; return how far the records reach now."""
        return RecordsMark()

    def append_again(self, record: Record) -> None:
        """Add a line about the last generation once more, which no checkpoint counts."""

    def last_lines(self) -> tuple[Record, ClockRecord] | None:
        """The lines of the generation that the run goes on from; None at its start."""
        return None

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

    def __init__(
        self, directory: RunDirectory, config: RunConfig, warn: Callable[[str], None], *, changed: bool = False
    ) -> None:
        """Find the newest usable checkpoint. Nothing is changed before `take_up`.

        `changed` says that the directory's configuration is not `config` yet. It is written when the run begins.
        """
        self.path = directory.path
        self._directory = directory
        self._config = config
        self._config_changed = changed
        self._warn = warn
        self._written = -1
        # The first generation of every start is saved: a run that is killed again and again gets ahead all the same.
        self._written_at = -math.inf
        self._lost = False
        self.checkpoint = newest_checkpoint(directory.checkpoints, self._objection, warn)
        # A policy is written after a checkpoint.
        if self.checkpoint is None and directory.files.state(directory.policy_path.name) is not None:
            raise FileFault(
                f"{directory.path}: the run has a policy but no checkpoint to go on from; put its checkpoints back, or "
                "start a new run; nothing was changed"
            )
        if self.checkpoint is not None:
            self._check_fits(self.checkpoint)

    def take_up(self) -> None:
        """Bring the record files to where the checkpoint stands, and remove what a crash left."""
        directory, warn = self._directory, self._warn
        generation = 0
        size = 0
        if self.checkpoint is not None:
            generation = self._written = self.checkpoint.generation
            size = whole_value(self.checkpoint.counters, "records_size")
        kept = read_clock_prefix(directory.files, directory.clock_path.name, generation)
        if kept.problem is not None:
            warn(kept.problem)
        self._clock = LineFile(directory.files, directory.clock_path.name, warn)
        try:
            self._records = LineFile(directory.files, directory.records_path.name, warn)
        except FileFault:
            self._clock.close()
            raise
        directory.files.clean_up()
        directory.checkpoints.clean_up()
        self._records.cut(size)
        self._clock.cut(kept.size)
        self._clock_digest, self.seconds = kept.digest, kept.seconds

    def begin(self, status: Status) -> None:
        """Write that the run is going."""
        # The status first: killed between the two, a run must not look as if it had finished with its new limits.
        self._directory.write_status(status)
        if self._config_changed:
            self._directory.write_config(self._config)

    def append(self, record: Record, clock: ClockRecord) -> RecordsMark:
        """Append both lines."""
        try:
            self._directory.check_lock()
            self._records.append(encode_line(record))
        except FileFault:
            self._lost = True
            raise
        line, self._clock_digest = encode_clock(clock, self._clock_digest)
        self._clock.append(line)
        return RecordsMark(self._records.size, self._records.digest)

    def append_again(self, record: Record) -> None:
        """Append the line."""
        self._records.append(encode_line(record))

    def last_lines(self) -> tuple[Record, ClockRecord] | None:
        """The last line of each file, which the checkpoint counts."""
        if self.checkpoint is None:
            return None
        record = last_line(self._directory.files, self._directory.records_path.name, Record)
        clock = last_line(self._directory.files, self._directory.clock_path.name, ClockRecord)
        if record is None or clock is None or record.generation != self.checkpoint.generation:
            return None
        return record, clock

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
            # Where records were lost, a new checkpoint could not be used, and would push out those that can.
            if whole.generation and not self._lost:
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
        write_checkpoint(self._directory.checkpoints, whole, keep=self._config.keep_checkpoints)
        self._written = whole.generation
        self._written_at = time.monotonic()

    def _write_policy(self, path: Path, whole: Checkpoint, policy: Policy, score: float | None) -> None:
        config = self._config
        task = PolicyTask(
            env=config.env,
            env_options=config.env_options,
            engine=config.engine,
            rescale_actions=config.rescale_actions,
            wrapper=config.wrapper or "",
            generation=whole.generation,
            total_interactions=whole_value(whole.counters, "total_interactions"),
            score=score,
            max_episode_steps=config.max_episode_steps if self.limits_evaluation else None,
            trained_engine=str(whole.counters.get("engine", "")),
            simulator_version=str(whole.counters.get("simulator_version", "")),
        )
        self._directory.files.replace(path.name, encode_policy(policy, task))

    def _check_fits(self, checkpoint: Checkpoint) -> None:
        """Refuse to go on with other settings than the checkpoint was made with."""
        kept = checkpoint.counters.get("settings")
        if kept is None:  # written before checkpoints held them
            return
        before = decode_object(str(kept), f"{self._directory.checkpoints_path}: the settings kept there", WORDS)
        now = identity(self._config)
        if different := differing(before, now):
            raise FileFault(
                f"{self._directory.config_path}: changed since the run began ({', '.join(different)}); undo that, or "
                "start another run"
            )

    def _objection(self, checkpoint: Checkpoint) -> str | None:
        """Why the records that the checkpoint counts are not whole, or None if they are."""
        name, path = self._directory.records_path.name, self._directory.records_path
        generations = f"the records of its {checkpoint.generation} generations"
        size = whole_value(checkpoint.counters, "records_size")
        try:
            prefix = read_prefix(self._directory.files, name, size)
        except FileNotFoundError:
            return f"{generations} are lost: there is no {name}"
        except OSError as error:
            return f"{generations} are lost: {FileFault.of(name, 'read', error)}"
        if prefix.size < size:
            return f"{generations} are not all in {name}: {prefix.size} of {size} bytes"
        digest = checkpoint.counters.get("records_sha256")
        if digest:  # older checkpoints hold none
            return None if digest == prefix.digest else f"{generations} were changed in {name}"
        try:
            if decode_line(prefix.last, Record, str(path)).generation == checkpoint.generation:
                return None
        except FileFault:
            pass
        return f"{generations} are not all in {name}"
