"""The same training with several seeds, side by side: one directory, one run for each seed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Unpack, cast

import numpy as np

from clipup.errors import ClipUpError, FileFault, InvalidArgument, RunBusy, RunExists
from clipup.runs import rundir
from clipup.runs.config import RunConfig
from clipup.runs.keywords import RunChanges, RunSettings
from clipup.runs.records import Standing, read_standing
from clipup.runs.resolve import resolve
from clipup.runs.rundir import RunDirectory
from clipup.runs.seeds import Seeds, SeedsDirectory
from clipup.runs.trust import check_cluster, check_import, check_init, check_policy_import, check_same_start
from clipup.training.api import check, with_changes
from clipup.training.side_by_side import ScheduleEnd, ScheduleProgress, SideBySide, SideRun

LIMITS = ("generations", "total_interactions", "time_limit", "target_score", "stop", "patience")

Watch = Callable[[ScheduleProgress], None]


@dataclass(frozen=True)
class SeedRun:
    """How the run of one seed stands."""

    seed: int
    path: Path
    state: str
    """``finished``, ``interrupted``, ``failed``, ``killed`` or ``unknown``; ``waiting`` before it began."""
    reason: str
    generation: int
    total_interactions: int
    score: float | None
    """Mean return of the last evaluation of its center."""
    best_score: float | None


@dataclass(frozen=True, repr=False)
class SeedsResult:
    """What training with several seeds came to."""

    path: Path
    config: RunConfig
    """Of the first run; the others differ by their seed."""
    runs: tuple[SeedRun, ...]
    end: ScheduleEnd
    chosen: int | None = None
    """The seed that went on, where only the best one does (``best_after``); None before it is chosen."""

    @property
    def scores(self) -> tuple[float, ...]:
        """The scores of the finished runs, in the order of their seeds."""
        return tuple(run.score for run in self.runs if run.state == "finished" and run.score is not None)

    @property
    def quartiles(self) -> tuple[float, float, float] | None:
        """The lower quartile, the median and the upper quartile of the scores; None where no run is finished."""
        if not self.scores:
            return None
        low, middle, high = np.percentile(np.array(self.scores), [25, 50, 75])
        return float(low), float(middle), float(high)

    def __repr__(self) -> str:
        """Return one short line; the fields hold the rest."""
        scores = "no score"
        if self.quartiles is not None:
            low, middle, high = self.quartiles
            scores = f"median score {middle:.2f}, quartiles {low:.2f} to {high:.2f}"
        return f"SeedsResult({self.config.env}: {scores}, {len(self.scores)} of {len(self.runs)} runs, in {self.path})"


class SeedsInterrupted(KeyboardInterrupt):
    """A signal ended the runs; everything is saved. `result` is how they stand."""

    def __init__(self, result: SeedsResult, exit_code: int) -> None:
        super().__init__("the runs were interrupted")
        self.result = result
        self.exit_code = exit_code


def train_seeds(
    env: str | None = None,
    *,
    seeds: int,
    best_after: int | None = None,
    run: str | os.PathLike[str] | None = None,
    config: str | os.PathLike[str] | None = None,
    preset: str = "auto",
    imports: Collection[str] = (),
    watch: Watch | None = None,
    watch_seconds: float = 1.0,
    warn: Callable[[str], None] | None = None,
    **settings: Unpack[RunSettings],
) -> SeedsResult:
    """Train with `seeds` seeds, as many runs at a time as the cores allow; `seed` is the first of them.

    Each run has a process of its own, and is the run that `clipup.train` would make with that seed, bit for bit.

    Parameters
    ----------
    env
        Id of an environment, or the name of a task (``module:Name``, ``file.py:Name``).
    seeds
        How many.
    best_after
        Interactions after which only the run with the best score goes on; None lets all go on.
    run
        Directory for the runs; each has its own in it. None names it ``runs/ENV-1``, or the next free number.
    config, preset, imports, settings
        As for `clipup.train`. With ``workers``, as many runs go at a time as there are cores for them.
    watch, watch_seconds
        A function that is told how far the runs are, and how often.
    warn
        A function that is told what is odd about the environment.

    Examples
    --------
    ``clipup.train_seeds("CartPole-v1", seeds=5, generations=20).quartiles``
    """
    if env is not None and not isinstance(env, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument(
            "several seeds run in processes of their own, which get the name of an environment and no object; give "
            "its id, or module:Name"
        )
    if not isinstance(settings.get("policy", ""), str):
        raise InvalidArgument("several seeds run in processes of their own: give the name of a policy, module:Class")
    given: dict[str, object] = dict(settings) if env is None else {**settings, "env": env}
    if given.get("init") is not None:
        given["init"] = os.fspath(cast("str | os.PathLike[str]", given["init"]))
    resolved, _ = resolve(given, file=config, preset=preset, imports=imports)
    wanted = Seeds(resolved, seeds, best_after)
    if resolved.seed + seeds > 2**63:
        raise InvalidArgument(f"the last of {seeds} seeds from {resolved.seed} on would be above 2**63 - 1")
    # The user need not wait for environments before a place is refused.
    if run is not None:
        SeedsDirectory(run).check_new()
    else:
        rundir.is_taken(rundir.next_free(Path("runs"), resolved.env))
    # An environment that may hang is made by the runs only, whose clocks watch it.
    for text in check(resolved) if resolved.cluster is None and resolved.episode_timeout is None else ():
        if warn is not None:
            warn(f"warning: {text}")
    tried: Path | None = None
    while True:
        path = Path(run) if run is not None else rundir.next_free(Path("runs"), resolved.env)
        directory = SeedsDirectory(path)
        try:
            with directory.claimed(wanted, new=True):
                return _advance(directory, set(given), watch, watch_seconds)
        except (RunExists, RunBusy):
            if run is not None or path == tried:
                raise
            tried = path  # another run took the name since it was found free; the next number is looked for


def resume_seeds(
    run: str | os.PathLike[str],
    *,
    init: str | os.PathLike[str] | None = None,
    imports: Collection[str] = (),
    more_generations: int | None = None,
    watch: Watch | None = None,
    watch_seconds: float = 1.0,
    **changes: Unpack[RunChanges],
) -> SeedsResult:
    """Go on with all runs below the directory of `train_seeds`, to the same bits as if they had never stopped.

    The arguments are those of `clipup.resume` and `train_seeds`; changes hold for all runs.
    """
    directory = SeedsDirectory(run)
    if not directory.exists():
        raise FileFault(f"{run}: no runs of several seeds in it; they are made by: clipup train ENV --seeds N")
    seeds = directory.read()
    before, source = seeds.config, str(directory.path / rundir.SEEDS)
    made = max((_made(one) for one, _ in directory.runs().values()), default=0) if before.generations is None else 0
    given: Mapping[str, object] = dict(changes)
    config = with_changes(before, made, given, more_generations)
    check_import(config.env, named=imports, source=source, wrapper=config.wrapper)
    check_policy_import(config.policy, named=imports, source=source)
    check_cluster(config.cluster, named="cluster" in given, source=source)
    check_same_start(init, config, source)
    if any(_made(one) == 0 for one, _ in directory.runs().values()):
        check_init(config.init, named=init is not None, source=source)
    with directory.claimed(replace(seeds, config=config), new=False):
        return _advance(directory, set(given) if init is None else {*given, "init"}, watch, watch_seconds)


_Runs = Mapping[int, tuple[RunDirectory, RunConfig]]


def _advance(directory: SeedsDirectory, typed: Collection[str], watch: Watch | None, seconds: float) -> SeedsResult:
    """Bring all runs to their limits; or all to where the best is chosen, and that one to its limits."""
    seeds, runs = directory.read(), directory.runs()

    def bring(some: _Runs) -> ScheduleEnd:
        sides = [
            SideRun(f"seed {seed}", one, config, partial(_is_finished, one, config), typed)
            for seed, (one, config) in some.items()
        ]
        return SideBySide(sides, watch=watch, watch_seconds=seconds).run()

    chosen: int | None = None
    if seeds.best_after is None:
        end = bring(runs)
    else:
        trials = {
            seed: (one, replace(config, total_interactions=seeds.best_after)) for seed, (one, config) in runs.items()
        }
        chosen = _went_on(trials)
        end = bring(trials if chosen is None else {})
        if chosen is None and end.reason == "complete":
            chosen = _best(trials)
        if chosen is not None:
            end = bring({chosen: runs[chosen]})
    standings = tuple(_seed_run(seed, one) for seed, (one, _) in runs.items())
    result = SeedsResult(directory.path, seeds.config, standings, end, chosen)
    if end.reason == "interrupted":
        raise SeedsInterrupted(result, end.exit_code)
    return result


def _went_on(trials: _Runs) -> int | None:
    """Return the seed that was chosen before. Its scores could not tell: it dropped that of the end of its trial."""
    return next(
        (
            seed
            for seed, (one, trial) in trials.items()
            if one.exists() and one.read_config().total_interactions != trial.total_interactions
        ),
        None,
    )


def _best(runs: _Runs) -> int | None:
    """Return the seed with the highest score, the first of equals; None where no run has one."""
    scores = {seed: _seed_run(seed, one).best_score for seed, (one, _) in runs.items()}
    scored = {seed: score for seed, score in scores.items() if score is not None}
    return max(scored, key=lambda seed: scored[seed], default=None)


def _is_finished(directory: RunDirectory, wanted: RunConfig) -> bool:
    """Whether the run reached the limits of `wanted`, or went beyond its generations by itself."""
    if not directory.exists() or directory.read_status().state != "finished":
        return False
    config = directory.read_config()
    if wanted.generations is not None and _made(directory) >= wanted.generations:
        return True
    return all(getattr(config, name) == getattr(wanted, name) for name in LIMITS)


def _made(directory: RunDirectory) -> int:
    return directory.newest_generation() if directory.exists() else 0


def _seed_run(seed: int, directory: RunDirectory) -> SeedRun:
    if not directory.exists():
        return SeedRun(seed, directory.path, "waiting", "", 0, 0, None, None)
    status = directory.read_status()
    try:
        standing = read_standing(directory.records_path)
    except ClipUpError:
        standing = Standing()
    return SeedRun(
        seed=seed,
        path=directory.path,
        state=status.state,
        reason=status.reason,
        generation=standing.generation,
        total_interactions=standing.total_interactions,
        score=standing.score,
        best_score=standing.best_score,
    )
