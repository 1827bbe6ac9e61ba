"""`tune`: find `max_speed` for a task, or what matters in its place."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from clipup.diagnosis import Finding, diagnose
from clipup.diagnosis.scale import WHY, is_scale_free
from clipup.engines import make_engine
from clipup.errors import ClipUpError, InvalidArgument
from clipup.files import Directory
from clipup.optimizers import OptimizerSettings, make_optimizer, step_report
from clipup.report.charts import new_figure, plain_label, save_figure
from clipup.report.commands import train_command
from clipup.runs.config import RunConfig
from clipup.runs.toml import format_config
from clipup.training.setup import make_task
from clipup.tuning.baseline import Gain, gain_over, measure_baseline
from clipup.tuning.directory import TRIALS, claimed
from clipup.tuning.journal import EXTRA_RANGES, Journal
from clipup.tuning.speed_search import RANGES, Point, Standing, TuningSettings, search_max_speed
from clipup.tuning.trials import TrialProgress, TrialRuns

BEST = "best.toml"
"""The settings of the winner. A search without a winner leaves none."""


@dataclass(frozen=True)
class TuningResult:
    """The best settings, the evidence for them, and where they are stored."""

    config: RunConfig
    """The configuration with the best values: a winner only if they `learned`."""
    standings: tuple[Standing, ...]
    """Every value that was run to the end, with its scores by seed, best first."""
    spent: float
    """Training done, in whole runs."""
    command: str
    gain: Gain | None
    """How much better the best is than policies without training; None where they could not be measured here."""
    notes: tuple[str, ...]
    """What a person should know about the search, one sentence or two each."""
    setting: str
    """The setting that was searched: ``max_speed``, or ``radius_factor`` where `max_speed` cannot matter."""
    findings: tuple[Finding, ...]
    """What is still wrong with the best value's first run: a search can only choose among the values it tried."""
    path: Path

    @property
    def max_speed(self) -> float:
        """The best value."""
        return self.config.max_speed

    @property
    def learned(self) -> bool:
        """Whether the best is better than policies without training, beyond luck; True where that is not known."""
        return self.gain is None or self.gain.learned


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
    is ``best.toml`` (unless nothing learned), ``score-by-max-speed.png`` and ``.svg``, Optuna's ``journal.log``, and a
    run directory for each trial under ``trials``.

    Where `max_speed` cannot matter (`clipup.diagnosis.scale.is_scale_free`), `radius_factor` and the population are
    searched in its place, over their own ranges. The best is compared with policies without training.
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
    scale_free = False
    if config.cluster is None:
        engine = make_engine(make_task(config), lanes=2)  # a task that cannot be made leaves no directory behind
        engine.close()
        scale_free = is_scale_free(config, engine.actions.kind)
    if scale_free:
        low, high = RANGES["radius_factor"]
        settings = dataclasses.replace(settings, setting="radius_factor", low=low, high=high)
    # The configuration's own value plays no part, so it must not make it another search.
    own = {settings.setting: 1.0}
    base = dataclasses.replace(
        config, **own, evaluate_every=every, target_score=None, total_interactions=None, time_limit=None
    )
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
    journal = Journal(
        directory / "journal.log",
        seed=config.seed,
        low=settings.low,
        high=settings.high,
        extra=extra,
        setting=settings.setting,
    )
    dots: dict[tuple[Point, int], TrialProgress] = {}  # how far each trial was run

    def remember(progress: TrialProgress) -> None:
        dots[progress.point, progress.seed] = progress
        if report is not None:
            report(progress)

    trials = TrialRuns(base, directory / TRIALS, journal, remember, generations)
    scale_free = settings.setting == "radius_factor"
    further = [name for name in extra if name != settings.setting]
    suggest = journal.suggest if further else None
    if scale_free and suggest is None and config.interactions is None:
        # Half and twice the population, with as many candidates in all.
        sizes = (2 * max(1, config.population // 4), 2 * config.population)
        settings = dataclasses.replace(settings, extra=len(sizes))

        def vary(point: Point, number: int) -> Point:
            return dataclasses.replace(point, population=sizes[number])

        suggest = vary
    standings = search_max_speed(trials, settings, suggest, trials.expect)
    journal.close()
    best = standings[0]
    found = dataclasses.replace(
        config,
        **best.point.settings(),  # pyright: ignore[reportArgumentType]
        generations=trials.generations(best.point),
    )
    gain = _gain(found, best, trials)
    learned = gain is None or gain.learned
    seeds = f"{len(best.values)} seed{'s' if len(best.values) > 1 else ''}"
    comment = (
        f"Found by clipup tune with the training of {trials.spent():.3g} whole runs: "
        f"mean score {best.mean:.5g} over {seeds}."
    )
    with Directory(directory) as files:
        if learned:
            files.replace(BEST, format_config(found, comment=comment).encode("utf-8"))
        else:
            files.remove(BEST)  # of an earlier call with a smaller budget
    write_figure(
        list(dots.values()),
        best.point.value(settings.setting) if learned else None,
        f"{config.env}, {generations} generations",
        directory / f"score-by-{settings.setting.replace('_', '-')}",
        setting=settings.setting,
    )
    findings = diagnose(trials.records(best.point, 0), found, "discrete" if scale_free else "")
    return TuningResult(
        found,
        tuple(standings),
        trials.spent(),
        train_command(found),
        gain,
        tuple(_notes(settings.setting, standings, gain)),
        settings.setting,
        tuple(findings),
        directory,
    )


def _gain(found: RunConfig, best: Standing, trials: TrialRuns) -> Gain | None:
    """How much better the best is than no training; None where this machine cannot run the task."""
    try:
        baseline = measure_baseline(found)
    except ClipUpError:
        if found.cluster is None:
            raise
        return None
    errors = [record.score_standard_error for record in trials.records(best.point, 0) if record.score is not None]
    return gain_over(baseline, best, (errors[-1] if errors else None) or 0.0)


def _notes(setting: str, standings: Sequence[Standing], gain: Gain | None) -> list[str]:
    notes = [f"{WHY}. So radius_factor and the population were tuned."] if setting == "radius_factor" else []
    values = {value for standing in standings for value in standing.values}
    learned = gain is None or gain.learned
    if len(standings) > 1 and len(values) == 1:
        tried = ", ".join(f"{standing.point.value(setting):g}" for standing in standings)
        why = "every value solves the task; shorter runs would tell them apart" if learned else "nothing was learned"
        notes.append(f"{setting} makes no difference: {tried} all scored {values.pop():.5g}, because {why}.")
    if not learned:
        notes.append("None of these learned. Try longer runs (--generations) or another population (--population).")
    return notes


def write_figure(
    dots: Sequence[TrialProgress], chosen: float | None, title: str, stem: Path, *, setting: str = "max_speed"
) -> list[Path]:
    """Draw score against a setting, one dot per trial, with a line at `chosen`; return the files (PNG and SVG)."""
    figure = new_figure(6.4, 4.0)
    axes = figure.subplots()
    finite = [dot for dot in dots if math.isfinite(dot.value)]
    whole = [dot for dot in finite if dot.share >= 1]
    early = [dot for dot in finite if dot.share < 1]
    means: dict[float, list[float]] = {}
    for dot in whole:
        if set(dot.point.settings()) == {setting}:  # without variations in further settings
            means.setdefault(dot.point.value(setting), []).append(dot.value)
    places = sorted(means)
    axes.plot(places, [sum(means[place]) / len(means[place]) for place in places], color="#0b6bcb", linewidth=1.6)
    for some, style in (
        (early, {"color": "#9aa3b0", "markerfacecolor": "none", "label": "stopped early"}),
        (whole, {"color": "#0b6bcb", "alpha": 0.75, "label": "whole run, one seed"}),
    ):
        axes.plot([dot.point.value(setting) for dot in some], [dot.value for dot in some], "o", markersize=5, **style)
    if chosen is not None:
        axes.axvline(chosen, color="#d1490c", linestyle="--", linewidth=1.2, label=f"chosen: {chosen:g}")
    axes.set_xscale("log")
    axes.set_xlabel(setting)
    axes.set_ylabel("score")
    axes.set_title(plain_label(title), loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#eceef1")
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=8)
    return save_figure(figure, stem)
