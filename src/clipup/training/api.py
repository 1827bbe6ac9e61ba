"""Training: `train` and `resume`, which the command line calls too, and what they are made of."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Unpack, cast

from clipup.engines import Task, registry
from clipup.engines.compiled import named
from clipup.engines.compiled.task import ArrayTask, MujocoTask
from clipup.engines.task import Environment
from clipup.errors import FileFault, InvalidArgument, RunBusy, RunExists
from clipup.executors import Executor, make_executor
from clipup.export.policy import PolicyTask, encode_policy
from clipup.files import write_output
from clipup.policies import Policy
from clipup.policies.named import name_of
from clipup.runs import rundir
from clipup.runs.config import CHANGEABLE, RunConfig, check_name, differences
from clipup.runs.keywords import RunChanges, RunSettings
from clipup.runs.records import Record, read_records
from clipup.runs.resolve import parse_flag, resolve
from clipup.runs.rundir import RunDirectory
from clipup.runs.storage import DirectoryStorage, Storage
from clipup.runs.trust import (
    check_cluster,
    check_import,
    check_init,
    check_policy_import,
    check_same_start,
    trusted_execution,
)
from clipup.searches import Search
from clipup.tracking import Tracker, make_trackers
from clipup.training.callbacks import Callback
from clipup.training.setup import make_search, make_task
from clipup.training.signals import EXIT_CODES, Interruption
from clipup.training.trainer import Trainer, target_score
from clipup.training.warm_start import read_start


@dataclass(frozen=True, repr=False)
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
    path: Path | None
    config: RunConfig
    _kept: tuple[Record, ...] = ()
    """The records of a run that is not on disk."""

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """What happened in each generation, in order. Of a run on disk, they are read when they are first asked for."""
        if self.path is None:
            return self._kept
        found = tuple(
            record
            for record in read_records(RunDirectory(self.path).records_path)
            if record.generation <= self.generation  # it may have been resumed since
        )
        if self.generation and (not found or found[-1].generation != self.generation):
            raise FileFault(f"{self.path}: its records up to generation {self.generation} are no longer there")
        return found

    def __repr__(self) -> str:
        """Return one short line; the fields hold the rest."""
        error = "" if self.score_standard_error is None else f" ± {self.score_standard_error:.2f}"
        score = "no score" if self.score is None else f"score {self.score:.2f}{error}"
        place = "" if self.path is None else f", in {self.path}"
        return (
            f"TrainingResult({self.config.env}: {score}, generation {self.generation}, "
            f"{self.total_interactions} interactions, {self.state}: {self.reason}{place})"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy and its task into a file that ``clipup evaluate`` and `clipup.load_policy` read."""
        config = self.config
        task = PolicyTask(
            env=config.env,
            env_options=config.env_options,
            engine=config.engine,
            rescale_actions=config.rescale_actions,
            wrapper=config.wrapper or "",
            generation=self.generation,
            total_interactions=self.total_interactions,
            score=self.score,
            trained_engine=config.engine,
            max_episode_steps=config.max_episode_steps,
        )
        write_output(Path(path), encode_policy(self.policy, task))


class RunInterrupted(KeyboardInterrupt):
    """A signal ended the run; everything is saved. `result` is how it stands."""

    def __init__(self, result: TrainingResult, exit_code: int) -> None:
        super().__init__("the run was interrupted")
        self.result = result
        self.exit_code = exit_code


def train(
    env: str | Environment | None = None,
    *,
    run: str | os.PathLike[str] | bool | None = None,
    config: str | os.PathLike[str] | None = None,
    preset: str = "auto",
    imports: Collection[str] = (),
    progress: bool = False,
    trackers: Sequence[Tracker] = (),
    callbacks: Sequence[Callback] = (),
    **settings: Unpack[RunSettings],
) -> TrainingResult:
    """Train a policy and return it.

    Settings come from the defaults, the preset of the task, `config` and `settings`; later ones win.

    Parameters
    ----------
    env
        Id of an environment; a task of one's own (`clipup.MujocoTask`, `clipup.ArrayTask`) or its name; or a callable
        that makes a Gymnasium environment (which `clipup.resume` then needs again).
    run
        Directory for the run: records, checkpoints, policy. True names it as ``clipup train`` does: ``runs/ENV-1``, or
        the next free number. None keeps nothing on disk.
    config
        TOML file with settings.
    preset
        ``"auto"`` for the task's own, ``"none"``, or the name of one.
    imports
        Modules that an environment named in `config` may import.
    progress
        Whether progress is shown on standard error.
    trackers
        Objects that are told about the run as it goes (`clipup.tracking.Tracker`).
    callbacks
        Functions (or objects that can be called) that get a `clipup.training.callbacks.Progress` after each
        generation. One that returns True stops the run after it. One that returns numbers by name adds them to the
        record. An error in one ends the run, with everything saved.
    settings
        Any field of `clipup.runs.config.RunConfig`: ``max_speed=0.1, generations=100``. `policy` may also be a policy
        of one's own (docs/policies.md): a class, an object or a ``torch.nn.Module``.

    Examples
    --------
    ``clipup.train("CartPole-v1", generations=20).policy``
    """
    maker, name = _environment(env)
    given: dict[str, object] = dict(settings)
    policy = _own_policy(given)
    if isinstance(given.get("generations"), str):
        given["generations"] = parse_flag("generations", str(given["generations"]))
    if given.get("init") is not None:
        given["init"] = os.fspath(cast("str | os.PathLike[str]", given["init"]))
    if name is not None:
        given["env"] = name
    if run == "":
        raise InvalidArgument("run needs the name of a directory, got nothing")
    resolved, _ = resolve(given, file=config, preset=preset, imports=imports)
    told = [*trackers, *_displays(progress)]
    if maker is None and env is not None and env != resolved.env:
        for tracker in told:
            tracker.message(f"{env}: training on {resolved.env}")
    tried: Path | None = None
    while run is True:
        path = rundir.next_free(Path("runs"), resolved.env)
        try:
            return start(
                resolved,
                RunDirectory(path),
                trackers=told,
                maker=maker,
                typed=given,
                callbacks=callbacks,
                policy=policy,
            )
        except (RunExists, RunBusy):
            if path == tried:
                raise
            tried = path  # another run took the name since it was found free; the next number is looked for
    return start(
        resolved,
        RunDirectory(run) if run else None,
        trackers=told,
        maker=maker,
        typed=given,
        callbacks=callbacks,
        policy=policy,
    )


def resume(
    run: str | os.PathLike[str],
    *,
    env: str | Environment | None = None,
    policy: object = None,
    init: str | os.PathLike[str] | None = None,
    imports: Collection[str] = (),
    more_generations: int | None = None,
    progress: bool = False,
    trackers: Sequence[Tracker] = (),
    callbacks: Sequence[Callback] = (),
    **changes: Unpack[RunChanges],
) -> TrainingResult:
    """Go on with a run from its newest checkpoint, to the same bits as if it had never stopped.

    Parameters
    ----------
    run
        The directory of the run.
    env
        The callable that makes the environment, or the task, for a run that was trained with one; or its name,
        ``module:function``.
    policy
        The policy of one's own, for a run that was trained with an object.
    init
        The policy that the run starts from, if it was stopped before its first checkpoint: it lies outside of the run,
        so it is read only if you name it again.
    imports
        Modules that the run's environment or policy may import.
    more_generations
        Raises the limit by this many generations.
    progress, trackers, callbacks
        As for `clipup.train`.
    changes
        Settings that leave what was done so far as it is: the limits (``generations=…``) and those of execution.
    """
    directory = RunDirectory(run)
    before = directory.read_config()
    given: dict[str, object] = dict(changes)
    config = with_changes(before, directory.newest_generation(), given, more_generations)
    source = str(directory.config_path)
    check_import(config.env if env is None else "", named=imports, source=source, wrapper=config.wrapper)
    if policy is None:
        check_policy_import(config.policy, named=imports, source=source)
    check_cluster(config.cluster, named="cluster" in given, source=source)
    check_same_start(init, config, source)
    if isinstance(env, str) and env.rpartition(":")[2] != config.env.rpartition(":")[2]:
        raise InvalidArgument(
            f"{directory.path} was trained on {config.env!r}; env may only say where that is, such as "
            f"module:{config.env.rpartition(':')[2]}, got {env!r}"
        )
    maker = env if isinstance(env, str) else _environment(env)[0]
    return proceed(
        config,
        directory,
        trackers=[*trackers, *_displays(progress)],
        maker=maker,
        typed=set(given) if init is None else {*given, "init"},
        callbacks=callbacks,
        policy=policy,
    )


def with_changes(
    before: RunConfig, made: int, changes: Mapping[str, object], more_generations: int | None
) -> RunConfig:
    """Return the configuration of a run that goes on after `made` generations; `changes` must leave it the same run."""
    given = dict(changes)
    text = given.get("generations")
    if isinstance(text, str) and text.startswith("+") and text[1:].isdecimal() and more_generations is None:
        more_generations = int(text[1:])
        del given["generations"]
    elif isinstance(text, str):
        given["generations"] = parse_flag("generations", text)
    if more_generations is not None:
        if "generations" in given or more_generations < 0:
            raise InvalidArgument("give either generations or more_generations, which is at least 0")
        given["generations"] = more_generations + (made if before.generations is None else before.generations)
    for name in given:
        if check_name(name) not in CHANGEABLE:
            raise InvalidArgument(f"{name} cannot change within a run: it would not be the same run; start a new one")
    config = dataclasses.replace(before, **given)  # pyright: ignore[reportArgumentType]  (checked by RunConfig)
    if config.generations is not None and config.generations < made:
        # It would end at once, and its configuration would be untrue.
        raise InvalidArgument(f"generations must be at least the {made} already made, got {config.generations}")
    return config


def _own_policy(given: dict[str, object]) -> object:
    """Return the policy that is an object, if one is given; its name takes its place among the settings."""
    policy = given.get("policy")
    if policy is None or isinstance(policy, str):
        return None
    given["policy"] = name_of(policy)
    return policy


def _environment(env: str | Environment | None) -> tuple[Environment | None, str | None]:
    """Return what stands for an environment without an id, and the name that a run's configuration has for it."""
    if isinstance(env, MujocoTask | ArrayTask):
        return named.named(env), named.name_of(env)
    if env is not None and not isinstance(env, str):
        return env, _callable_name(env)
    return None, env


def _callable_name(maker: Environment) -> str:
    """The name of a callable, with its module where it can be imported from there."""
    name = str(getattr(maker, "__qualname__", type(maker).__name__))
    module = str(getattr(maker, "__module__", ""))
    if module != "__main__" and getattr(sys.modules.get(module), name, None) is maker:
        return f"{module}:{name}"
    return name


def advance(
    config: RunConfig,
    directory: RunDirectory,
    *,
    trackers: Sequence[Tracker] = (),
    typed: Collection[str] | None = None,
    workers: int | None = None,
) -> TrainingResult:
    """Bring the run in `directory` to the limits of `config`: begin it, or go on with it.

    `workers` holds for this call only, instead of those of `config`.
    """
    go = proceed if directory.exists() else start
    return go(config, directory, trackers=trackers, typed=typed, workers=workers)


def check(config: RunConfig) -> tuple[str, ...]:
    """Find the mistakes in a configuration by making what its run needs; return what is odd about the environment."""
    executor = make_executor(make_task(config), config.policy, collect_moments=config.normalize, lanes=2, workers=1)
    try:
        _begin(config, executor, begun=False)
        return executor.description.notes
    finally:
        executor.close()


def start(
    config: RunConfig,
    directory: RunDirectory | None,
    *,
    trackers: Sequence[Tracker] = (),
    maker: Environment | str | None = None,
    typed: Collection[str] | None = None,
    callbacks: Sequence[Callback] = (),
    workers: int | None = None,
    policy: object = None,
) -> TrainingResult:
    """Run a configuration from its beginning, in a new directory or in none.

    `typed` names the settings that are a person's own words; None for all.
    """
    if directory is not None:
        directory.check_new()  # checked again when it is made; the user need not wait for environments first

    def store() -> Storage:
        if directory is None:
            return Storage()
        directory.create(config)
        return DirectoryStorage(directory, config, _warner(trackers))

    return _run(config, directory, store, trackers, maker, typed, callbacks, workers=workers, policy=policy)


def proceed(
    config: RunConfig,
    directory: RunDirectory,
    *,
    trackers: Sequence[Tracker] = (),
    maker: Environment | str | None = None,
    typed: Collection[str] | None = None,
    callbacks: Sequence[Callback] = (),
    workers: int | None = None,
    policy: object = None,
) -> TrainingResult:
    """Go on with the run in `directory`. Its settings may differ from `config` in limits and execution only.

    `typed` names the settings that are a person's own words; None for all.
    """
    before = directory.read_config()
    if different := differences(before, config):
        raise FileFault(f"{directory.path}: its run differs in {', '.join(different)}; start a new run elsewhere")
    directory.check_free()

    def store() -> Storage:
        directory.open()
        return DirectoryStorage(directory, config, _warner(trackers), changed=config != before)

    engine = engine_of(directory, make_task(config, maker))
    return _run(config, directory, store, trackers, maker, typed, callbacks, engine, workers, policy)


def engine_of(directory: RunDirectory, task: Task) -> str:
    """The engine that the run goes on with: the one that it was made with, which "auto" may mean no longer."""
    if task.engine != registry.AUTO:
        return task.engine
    for kept in directory.kept_engines():
        before = registry.engine_before(task) if kept is None else str(kept)
        usable = before in registry.names() and registry.entry(before).refusal(task) is None
        return before if usable else registry.AUTO  # which the trainer then compares with the checkpoint
    return registry.AUTO


def _run(
    config: RunConfig,
    directory: RunDirectory | None,
    store: Callable[[], Storage],
    trackers: Sequence[Tracker],
    maker: Environment | str | None,
    typed: Collection[str] | None = None,
    callbacks: Sequence[Callback] = (),
    engine: str | None = None,
    workers: int | None = None,
    policy: object = None,
) -> TrainingResult:
    path = directory.path if directory is not None else None
    begun = directory is not None and directory.exists() and directory.newest_generation() > 0
    if directory is not None and not begun:
        check_init(config.init, named=typed is None or "init" in typed, source=str(directory.config_path))
    trusted = config if typed is None else trusted_execution(config, typed, _warner(trackers))
    everyone = [*trackers, *make_trackers(trusted, path)]
    task = make_task(config, maker)
    executor = make_executor(
        task if engine is None else dataclasses.replace(task, engine=engine),
        config.policy if policy is None else policy,
        collect_moments=config.normalize,
        lanes=config.lanes,
        workers=trusted.workers if workers is None else workers,
        cluster=config.cluster,
        episode_timeout=config.episode_timeout,
        mixed_arithmetic=config.mixed_arithmetic,
    )
    # Every mistake in the configuration is found before anything is written.
    with Interruption() as interruption:  # until everything is closed: a late signal must not disturb that
        try:
            search, initial = _begin(config, executor, begun=begun)
            trainer = Trainer(config, search, executor, store(), everyone, interruption, callbacks, initial)
            status = trainer.run()
        finally:
            try:
                executor.close()
            finally:
                if directory is not None:
                    directory.close()
    outcome = dataclasses.asdict(status)
    for name in ("engine", "actions", "warning", "arithmetic_changed_at"):
        del outcome[name]
    result = TrainingResult(policy=trainer.policy, path=path, config=config, _kept=tuple(trainer.records), **outcome)
    if interruption.signal is not None and status.state == "interrupted":
        raise RunInterrupted(result, EXIT_CODES[interruption.signal])
    return result


def _begin(config: RunConfig, executor: Executor, *, begun: bool) -> tuple[Search, tuple[Policy, PolicyTask] | None]:
    """The search at its start, and the policy that a new run starts from. Mistakes in the configuration are found."""
    network = executor.description.network
    search = make_search(config, network.parameter_count)
    initial = read_start(config.init, network) if config.init is not None and not begun else None
    target_score(config, executor.description.engine)
    return search, initial


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
