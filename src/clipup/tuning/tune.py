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
from clipup.optimizers import OptimizerSettings, make_optimizer, step_report
from clipup.report.charts import new_figure, plain_label, save_figure
from clipup.report.commands import train_command
from clipup.runs.config import RunConfig
from clipup.runs.files import write_atomically
from clipup.runs.toml import format_config
from clipup.training.setup import make_task
from clipup.tuning.directory import TRIALS, claimed
from clipup.tuning.journal import EXTRA_RANGES, Journal
from clipup.tuning.speed_search import Point, Standing, TuningSettings, search_max_speed
from clipup.tuning.trials import TrialProgress, TrialRuns


@dataclass(frozen=True)
class TuningResult:
    """The best settings, the evidence for them, and where they are stored."""

    config: RunConfig
    """The configuration with the values found."""
    standings: tuple[Standing, ...]
    """Every value that was run to the end, with its scores by seed, best first."""
    spent: float
    """Training done, in whole runs."""
    command: str
    findings: tuple[Finding, ...]
    """What is still wrong with the best value's first run: a search can only choose among the values it tried."""
    path: Path

    @property
    def max_speed(self) -> float:
        """The best value."""
        return self.config.max_speed


def tune(
    config: RunConfig,
    path: str | os.PathLike[str],
    *,
    settings: TuningSettings | None = None,
    extra: Sequence[str] = (),
    report: Callable[[TrialProgress], None] | None = None,
) -> TuningResult:
    """Search `max_speed` (and `extra`: "radius_factor", "step_ratio") for the task of `config`.

    `path` is a new directory, or that of an earlier call with the same arguments, which is continued. While one call
    works there, another is refused. With other `extra` or a larger budget, finished trials are used again. The result
    is ``best.toml``, ``score-by-max-speed.png`` and ``.svg``, Optuna's ``journal.log``, and a run directory for each
    trial under ``trials``.
    """
    settings = settings or TuningSettings()
    for name in extra:
        if name not in EXTRA_RANGES:
            raise InvalidArgument(f"besides max_speed, only {' and '.join(EXTRA_RANGES)} can be tuned, got {name!r}")
    if config.generations is None or config.generations < 2:
        raise InvalidArgument(
            "tuning compares half runs and whole runs of one length, so generations must be at least 2, got "
            f"{config.generations}"
        )
    if step_report(make_optimizer(config.optimizer, OptimizerSettings(max_speed=1.0), 1)).max_speed is None:
        raise InvalidArgument(f"tuning finds max_speed, but the optimizer {config.optimizer!r} has none")
    directory = Path(path)
    # A trial must be evaluated where the search looks at it, and only its generations may end it.
    generations = config.generations
    every = config.evaluate_every if 0 < config.evaluate_every <= generations // 10 else max(1, generations // 10)
    # The configuration's own max_speed plays no part, so it must not make it another search.
    base = dataclasses.replace(
        config, max_speed=1.0, evaluate_every=every, target_score=None, total_interactions=None, time_limit=None
    )
    if not directory.exists() and config.cluster is None:
        make_engine(make_task(config), lanes=2).close()  # a task that cannot be made leaves no directory behind
    with claimed(directory, base):
        return _search(config, base, directory, settings, extra, report)


def _search(
    config: RunConfig,
    base: RunConfig,
    directory: Path,
    settings: TuningSettings,
    extra: Sequence[str],
    report: Callable[[TrialProgress], None] | None,
) -> TuningResult:
    generations = base.generations or 0
    journal = Journal(directory / "journal.log", seed=config.seed, low=settings.low, high=settings.high, extra=extra)
    dots: dict[tuple[Point, int], TrialProgress] = {}  # how far each trial was run

    def remember(progress: TrialProgress) -> None:
        dots[progress.point, progress.seed] = progress
        if report is not None:
            report(progress)

    trials = TrialRuns(base, directory / TRIALS, journal, remember, generations)
    standings = search_max_speed(trials, settings, journal.suggest if extra else None, trials.expect)
    journal.close()
    best = standings[0]
    found = dataclasses.replace(config, **best.point.settings())  # pyright: ignore[reportArgumentType]
    seeds = f"{len(best.values)} seed{'s' if len(best.values) > 1 else ''}"
    comment = (
        f"Found by clipup tune with the training of {trials.spent():.3g} whole runs: "
        f"mean score {best.mean:.5g} over {seeds}."
    )
    write_atomically(directory / "best.toml", format_config(found, comment=comment).encode("utf-8"))
    title = f"{config.env}, {generations} generations"
    write_figure(list(dots.values()), found.max_speed, title, directory / "score-by-max-speed")
    findings = diagnose(trials.records(best.point, 0), found)
    return TuningResult(found, tuple(standings), trials.spent(), train_command(found), tuple(findings), directory)


def write_figure(dots: Sequence[TrialProgress], chosen: float, title: str, stem: Path) -> list[Path]:
    """Draw score against `max_speed`, one dot per trial; return the files (PNG and SVG)."""
    figure = new_figure(6.4, 4.0)
    axes = figure.subplots()
    finite = [dot for dot in dots if math.isfinite(dot.value)]
    whole = [dot for dot in finite if dot.share >= 1]
    early = [dot for dot in finite if dot.share < 1]
    means: dict[float, list[float]] = {}
    for dot in whole:
        if dot.point == Point(dot.point.max_speed):  # without variations in further settings
            means.setdefault(dot.point.max_speed, []).append(dot.value)
    speeds = sorted(means)
    axes.plot(speeds, [sum(means[speed]) / len(means[speed]) for speed in speeds], color="#0b6bcb", linewidth=1.6)
    hollow = {"color": "#9aa3b0", "markerfacecolor": "none", "label": "stopped early"}
    full = {"color": "#0b6bcb", "alpha": 0.75, "label": "whole run, one seed"}
    for shown, style in ((early, hollow), (whole, full)):
        axes.plot([dot.point.max_speed for dot in shown], [dot.value for dot in shown], "o", markersize=5, **style)
    axes.axvline(chosen, color="#d1490c", linestyle="--", linewidth=1.2, label=f"chosen: {chosen:g}")
    axes.set_xscale("log")
    axes.set_xlabel("max_speed")
    axes.set_ylabel("score")
    axes.set_title(plain_label(title), loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#eceef1")
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=8)
    return save_figure(figure, stem)
