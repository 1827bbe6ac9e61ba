"""`tune`: find `max_speed` for a task."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from clipup.diagnosis import Finding, diagnose
from clipup.engines import make_engine
from clipup.errors import InvalidArgument
from clipup.report.commands import train_command
from clipup.runs.config import RunConfig
from clipup.runs.files import write_atomically
from clipup.runs.toml import format_config
from clipup.training.setup import make_task
from clipup.tuning.folder import TRIALS, claimed
from clipup.tuning.journal import EXTRA_RANGES, Journal
from clipup.tuning.picture import Dot, write_picture
from clipup.tuning.plan import Point, SearchSettings, Standing, search
from clipup.tuning.trials import Progress, TrialRuns


@dataclass(frozen=True)
class TuningResult:
    """The answer, what it rests on, and where it is."""

    config: RunConfig
    """The configuration with the values found."""
    standings: tuple[Standing, ...]
    """Every value that was run to the end with its scores by seed, the answer first."""
    spent: float
    """Whole runs' worth of training."""
    command: str
    findings: tuple[Finding, ...]
    """What is still wrong with the best value's first run; a search can only choose among what it tried."""
    path: Path

    @property
    def max_speed(self) -> float:
        """The value found."""
        return self.config.max_speed


def tune(
    config: RunConfig,
    path: str | os.PathLike[str],
    *,
    settings: SearchSettings | None = None,
    extra: Sequence[str] = (),
    report: Callable[[Progress], None] | None = None,
) -> TuningResult:
    """Search `max_speed` (and `extra`: "radius_factor", "step_ratio") for the task of `config`.

    `path` is a new directory, or one where an earlier call with the same arguments was stopped: then it goes on there.
    While one call works in it, another is refused. With other `extra`, or more budget, it builds on what was run.
    It ends with ``best.toml``, ``score-by-max-speed.png`` and ``.svg``, Optuna's ``journal.log``, and a run directory
    for each trial under ``trials``.
    """
    settings = settings or SearchSettings()
    for name in extra:
        if name not in EXTRA_RANGES:
            raise InvalidArgument(f"only {' and '.join(EXTRA_RANGES)} can be tuned besides max_speed, got {name!r}")
    if config.generations is None or config.generations < 2:
        raise InvalidArgument(
            "tuning compares halves of runs, and whole ones, of the same length: set generations, at least 2, got "
            f"{config.generations}"
        )
    if config.optimizer != "clipup":
        raise InvalidArgument(f"tuning is for max_speed, which optimizer {config.optimizer!r} does not have")
    folder = Path(path)
    # A trial must be evaluated at the rungs of the search, and nothing else may end it.
    generations = config.generations
    every = config.evaluate_every if 0 < config.evaluate_every <= generations // 10 else max(1, generations // 10)
    # What max_speed the configuration itself says plays no part, and must not make it another search.
    base = dataclasses.replace(
        config, max_speed=1.0, evaluate_every=every, target_score=None, total_interactions=None, time_limit=None
    )
    if not folder.exists() and config.cluster is None:
        make_engine(make_task(config), lanes=2).close()  # so that nothing is left of a task that cannot be made
    with claimed(folder, base):
        return _search(config, base, folder, settings, extra, report)


def _search(
    config: RunConfig,
    base: RunConfig,
    folder: Path,
    settings: SearchSettings,
    extra: Sequence[str],
    report: Callable[[Progress], None] | None,
) -> TuningResult:
    generations = base.generations or 0
    journal = Journal(folder / "journal.log", seed=config.seed, low=settings.low, high=settings.high, extra=extra)
    dots: dict[tuple[Point, int], Dot] = {}

    def told(progress: Progress) -> None:
        dots[progress.point, progress.seed] = Dot(progress.point, progress.seed, progress.share, progress.value)
        if report is not None:
            report(progress)

    trials = TrialRuns(base, folder / TRIALS, journal, told, generations)
    standings = search(trials, settings, journal.suggest if extra else None, trials.expect)
    journal.close()
    best = standings[0]
    found = dataclasses.replace(config, **best.point.settings())  # pyright: ignore[reportArgumentType]
    seeds = f"{len(best.values)} seed{'s' if len(best.values) > 1 else ''}"
    comment = (
        f"Found by clipup tune in {trials.spent():.3g} runs' worth of training: "
        f"mean score {best.mean:.5g} over {seeds}."
    )
    write_atomically(folder / "best.toml", format_config(found, comment=comment).encode("utf-8"))
    write_picture(
        list(dots.values()), found.max_speed, f"{config.env}, {generations} generations", folder / "score-by-max-speed"
    )
    findings = diagnose(trials.records(best.point, 0), found)
    return TuningResult(found, tuple(standings), trials.spent(), train_command(found), tuple(findings), folder)


def spread(standing: Standing) -> float:
    """The standard error of a standing's mean; nan for one seed."""
    count = len(standing.values)
    if count < 2:
        return math.nan
    variance = sum((value - standing.mean) ** 2 for value in standing.values) / (count - 1)
    return math.sqrt(variance / count)
