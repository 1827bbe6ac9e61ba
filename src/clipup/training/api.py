"""Training from Python: `train` and `resume`."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from clipup.engines.task import EnvironmentMaker
from clipup.errors import InvalidArgument
from clipup.executors import make_executor
from clipup.policies import Policy
from clipup.runs.checkpoint import list_checkpoints
from clipup.runs.config import CHANGEABLE, RunConfig
from clipup.runs.records import Record, read_records
from clipup.runs.resolve import resolve
from clipup.runs.rundir import RunDirectory
from clipup.runs.storage import DirectoryStorage, NoStorage, Storage
from clipup.runs.toml import read_toml
from clipup.runs.trust import check_cluster, check_import
from clipup.tracking import Tracker, make_trackers
from clipup.training.setup import make_search, make_task
from clipup.training.signals import EXIT_CODES, Interruption
from clipup.training.trainer import Trainer


@dataclass(frozen=True)
class TrainingResult:
    """What a run came to."""

    policy: Policy
    """The final center as a policy: a callable from an observation to an action."""
    score: float | None
    """Mean return of the final center over the evaluation episodes."""
    score_standard_error: float | None
    generation: int
    total_interactions: int
    state: str
    """``finished`` or ``interrupted``."""
    reason: str
    records: tuple[Record, ...]
    path: Path | None
    config: RunConfig


def train(
    env: str | EnvironmentMaker | None = None,
    *,
    run: str | os.PathLike[str] | None = None,
    config: str | os.PathLike[str] | None = None,
    preset: str = "auto",
    progress: bool = False,
    **settings: object,
) -> TrainingResult:
    """Train a policy and return it.

    Parameters
    ----------
    env
        Id of an environment, or a callable that makes one (which `clipup.resume` then needs again).
    run
        Directory for the run: records, checkpoints, policy. None keeps nothing on disk.
    config
        TOML file with settings.
    preset
        ``"auto"`` for the task's own, ``"none"``, or the name of one.
    progress
        Whether progress is shown on standard error.
    settings
        Any field of `clipup.runs.config.RunConfig`: ``max_speed=0.1, generations=100``.

    Examples
    --------
    ``clipup.train("CartPole-v1", generations=20).policy``
    """
    maker = env if callable(env) else None
    if maker is not None:
        settings["env"] = getattr(maker, "__qualname__", type(maker).__name__)
    elif env is not None:
        settings["env"] = env
    values = read_toml(config) if config is not None else None
    resolved, _ = resolve(settings, file=values, file_name=str(config), preset=preset)
    if "env" not in settings:
        check_import(resolved.env, named=(), source=str(config))
    check_cluster(resolved.cluster, named="cluster" in settings, source=str(config))
    directory = RunDirectory(run) if run is not None else None
    trackers = _displays(progress)
    return start(resolved, directory, trackers=trackers, maker=maker)


def resume(
    run: str | os.PathLike[str],
    *,
    env: EnvironmentMaker | None = None,
    progress: bool = False,
    imports: Collection[str] = (),
    **changes: object,
) -> TrainingResult:
    """Go on with a run from its newest checkpoint, to the same bits as if it had never stopped.

    `changes` may set the fields that do not change what was done so far: the limits (``generations=…``) and those of
    execution. `imports` names modules that the run's environment may import, `env` an environment that has no id.
    """
    directory = RunDirectory(run)
    config = change_config(directory.read_config(), changes)
    check_limit(config, directory)
    if env is None:
        check_import(config.env, named=imports, source=str(directory.config_path))
    check_cluster(config.cluster, named="cluster" in changes, source=str(directory.config_path))
    return proceed(config, directory, trackers=_displays(progress), maker=env)


def start(
    config: RunConfig,
    directory: RunDirectory | None,
    *,
    trackers: Sequence[Tracker] = (),
    maker: EnvironmentMaker | None = None,
    comment: str = "",
) -> TrainingResult:
    """Run a configuration from its beginning, in a new directory or in none."""
    if directory is not None:
        directory.check_new()  # again when it is made; but so nobody waits for environments first

    def store() -> Storage:
        if directory is None:
            return NoStorage()
        directory.create(config, comment)
        return DirectoryStorage(directory, config, _warner(trackers))

    return _run(config, directory, store, trackers, maker)


def proceed(
    config: RunConfig,
    directory: RunDirectory,
    *,
    trackers: Sequence[Tracker] = (),
    maker: EnvironmentMaker | None = None,
    comment: str = "",
) -> TrainingResult:
    """Go on with the run in `directory`."""
    directory.check_free()

    def store() -> Storage:
        directory.open()
        storage = DirectoryStorage(directory, config, _warner(trackers))
        if config != directory.read_config():
            directory.write_config(config, comment)
        return storage

    return _run(config, directory, store, trackers, maker)


def generations_made(directory: RunDirectory) -> int:
    """Generations that a run would go on from."""
    return max((generation for generation, _ in list_checkpoints(directory.checkpoints_path)), default=0)


def check_limit(config: RunConfig, directory: RunDirectory) -> None:
    """Refuse fewer generations than the run has made: it would end at once, and its configuration be untrue."""
    made = generations_made(directory)
    if config.generations is not None and config.generations < made:
        raise InvalidArgument(f"generations must be at least the {made} already made, got {config.generations}")


def change_config(config: RunConfig, changes: dict[str, object]) -> RunConfig:
    """The configuration with changes that leave what was done so far as it is."""
    from clipup.runs.config import check_name

    for name in changes:
        if check_name(name) not in CHANGEABLE:
            raise InvalidArgument(f"{name} cannot change within a run: it would not be the same run; start a new one")
    return dataclasses.replace(config, **changes)  # pyright: ignore[reportArgumentType]  (checked by RunConfig)


def _run(
    config: RunConfig,
    directory: RunDirectory | None,
    store: Callable[[], Storage],
    trackers: Sequence[Tracker],
    maker: EnvironmentMaker | None,
) -> TrainingResult:
    path = directory.path if directory is not None else None
    everyone = [*trackers, *make_trackers(config, path)]
    task = make_task(config, maker)
    executor = make_executor(
        task,
        config.policy,
        collect_moments=config.normalize,
        lanes=config.lanes,
        workers=config.workers,
        cluster=config.cluster,
        episode_timeout=config.episode_timeout,
    )
    # Everything that the configuration can have wrong is found before anything is written.
    try:
        make_search(config, executor.description.network.parameter_count)
        with Interruption() as interruption:
            trainer = Trainer(config, executor, store(), everyone, interruption)
            status = trainer.run()
    finally:
        executor.close()
        if directory is not None:
            directory.close()
    records = tuple(trainer.records) if directory is None else tuple(read_records(directory.records_path))
    result = TrainingResult(
        trainer.policy,
        status.score,
        status.score_standard_error,
        status.generation,
        status.total_interactions,
        status.state,
        status.reason,
        records,
        path,
        config,
    )
    if interruption.signal is not None and status.state == "interrupted":
        raise RunInterrupted(result, EXIT_CODES[interruption.signal])
    return result


class RunInterrupted(KeyboardInterrupt):
    """A signal ended the run; everything is saved. `result` is how it stands."""

    def __init__(self, result: TrainingResult, exit_code: int) -> None:
        super().__init__("the run was interrupted")
        self.result = result
        self.exit_code = exit_code


def _warner(trackers: Sequence[Tracker]) -> Callable[[str], None]:
    def warn(text: str) -> None:
        for tracker in trackers:
            tracker.message(f"warning: {text}")

    return warn


def _displays(progress: bool) -> list[Tracker]:
    if not progress:
        return []
    from clipup.tracking.terminal import PlainDisplay

    return [PlainDisplay(sys.stderr)]


__all__ = ["RunInterrupted", "TrainingResult", "proceed", "resume", "start", "train"]
