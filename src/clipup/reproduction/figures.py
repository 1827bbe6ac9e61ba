"""The figures of a reproduction, each as PNG and SVG."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clipup.optimizers import OPTIMIZERS, OptimizerSettings, make_optimizer
from clipup.report.charts import new_figure, save_figure
from clipup.reproduction.experiments import Experiment
from clipup.reproduction.results import GroupResult, Results
from clipup.reproduction.targets import published_mean
from clipup.runs.config import RunConfig
from clipup.training.setup import make_search

COLORS = ("#0b6e99", "#d9730d", "#448361", "#9065b0", "#c14c8a", "#787774")
CLIPUP, PALE, GREY = "#0b6e99", "#d3e5ef", "#787774"
FEW = 5
"""With at most this many runs in each group, every run is drawn. The median of few runs that end at different places
would mislead."""


def draw(experiment: Experiment, results: Results, directory: Path) -> list[Path]:
    """Draw every figure of the experiment into `directory`; return the files."""
    written: list[Path] = []
    for kind in experiment.figures:
        figure = _FIGURES[kind](experiment, results)
        if figure is not None:
            written += save_figure(figure, directory / f"{experiment.name}-{kind}", dpi=120)
    return written


def _curves(experiment: Experiment, results: Results, *, whole_range: bool = False) -> Any:
    figure = new_figure(7, 4.2)
    axes = figure.subplots()
    single = all(len(group.runs) <= FEW for group in results.groups)
    draw_group = _each_run if single else partial(_median, whole_range=whole_range)
    for color, group in zip(COLORS, results.groups, strict=False):
        draw_group(axes, color, group)
    if experiment.threshold is not None:
        axes.axhline(experiment.threshold, color=GREY, linewidth=0.8, linestyle="--")
    shaded = "minimum and maximum" if whole_range else "mean ± standard deviation"
    axes.set(
        title=f"{experiment.title}\n" + ("each line is a run" if single else f"lines: medians; shaded: {shaded}"),
        xlabel="interactions (millions)",
        ylabel="score of the center (16 episodes)",
    )
    return _finish(figure, axes)


def _each_run(axes: Any, color: str, group: GroupResult) -> None:
    """A line for each run, with a dot at its end: a run may stop once it has solved its task."""
    runs = [run for run in group.runs if run.scores]
    for number, run in enumerate(runs):
        interactions = np.asarray(run.score_interactions) / 1e6
        label = f"{group.label} ({_count(len(runs))})" if number == 0 else None
        axes.plot(interactions, run.scores, color=color, linewidth=1.0, alpha=0.8, label=label)
        axes.scatter(interactions[-1:], run.scores[-1:], color=color, s=12, zorder=3)


def _median(axes: Any, color: str, group: GroupResult, *, whole_range: bool) -> None:
    grid, curves = group.common_curves()
    if not grid.size:
        return
    grid = grid / 1e6
    marker = "o" if grid.size == 1 else None
    axes.plot(
        grid, np.nanmedian(curves, axis=0), color=color, marker=marker, label=f"{group.label} ({_count(len(curves))})"
    )
    if len(curves) > 1:
        low, high = (np.nanmin(curves, axis=0), np.nanmax(curves, axis=0)) if whole_range else _spread(curves)
        axes.fill_between(grid, low, high, color=color, alpha=0.2, linewidth=0)


def _speeds(experiment: Experiment, results: Results) -> Any:
    figure = new_figure(7, 4.2)
    axes = figure.subplots()
    for color, group in zip(COLORS, results.groups, strict=False):
        runs = [run.speeds for run in group.runs if run.speeds]
        if not runs:
            continue
        speeds = np.full((len(runs), max(len(run) for run in runs)), np.nan)  # some runs go on where others have ended
        for row, run in zip(speeds, runs, strict=True):
            row[: len(run)] = run
        generations = np.arange(1, speeds.shape[1] + 1)
        axes.plot(generations, np.nanmedian(speeds, axis=0), color=color, label=f"{group.label} ({_count(len(runs))})")
        low, high = np.nanmin(speeds, axis=0), np.nanmax(speeds, axis=0)
        axes.fill_between(generations, low, high, color=color, alpha=0.2, linewidth=0)
    axes.set(
        title=f"{experiment.title}\nlines: medians; shaded: minimum and maximum",
        xlabel="generation",
        ylabel="size of the update",
    )
    axes.set_ylim(bottom=0.0)
    return _finish(figure, axes)


def _scores(experiment: Experiment, results: Results) -> Any:
    figure = new_figure(8, 4.8)
    axes = figure.subplots()
    labels = [group.label for group in results.groups]
    for place, group in enumerate(results.groups):
        scores = group.final_scores
        color = COLORS[(place // 4) % len(COLORS)]
        axes.scatter(scores, [place] * len(scores), color=color, s=14, alpha=0.5, linewidth=0)
        if scores:
            axes.scatter([float(np.mean(scores))], [place], color=color, marker="|", s=220, linewidth=2)
        published = published_mean(results.experiment, group.name)
        if published is not None:
            axes.scatter([published], [place], facecolor="none", edgecolor="black", marker="D", s=36)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set(
        title=f"{experiment.title}\ndots: runs, bars: their mean, diamonds: the paper's mean",
        xlabel=f"score after {results.generations} generations (16 episodes)",
    )
    axes.grid(axis="x", alpha=0.3)
    return figure


def _defaults(experiment: Experiment, results: Results) -> Any:
    """How step size and radius follow from ``max_speed``, drawn for a search in two dimensions.

    Every length is read from a search and an optimizer that were given only ``max_speed = 1``, so the figure cannot
    drift from the code. The step size is the length of the optimizer's first step.
    """
    del experiment, results
    figure = new_figure(9, 4.6)
    left, right = figure.subplots(1, 2)
    from matplotlib.patches import Circle

    search = make_search(RunConfig(env="any", max_speed=1.0, population=60, seed=7), 2)
    optimizer = make_optimizer(OPTIMIZERS[0], OptimizerSettings(max_speed=1.0), 2)
    radius, points = search.figures().stdev_norm, search.ask()
    step = float(np.linalg.norm(optimizer.ascent([1.0, 0.0])))

    left.add_patch(Circle((0, 0), radius, facecolor=PALE, edgecolor=CLIPUP, linewidth=1.2))
    left.add_patch(Circle((0, 0), 1.0, facecolor=CLIPUP))
    left.scatter(points[:, 0], points[:, 1], s=8, color=GREY, zorder=2)
    _arrow(left, (0, 0), (0.0, radius), CLIPUP)
    left.text(0, radius * 1.9, f"radius = {radius:g} max_speed (10 to 20 work well)", color=CLIPUP, ha="center")
    left.annotate(
        "max_speed",
        xy=(0.7, -0.7),
        xytext=(radius * 0.9, -radius * 1.4),
        color=CLIPUP,
        arrowprops={"arrowstyle": "-", "color": CLIPUP, "linewidth": 0.8},
    )
    left.set_title("where candidates are looked for")
    _frame(left, 2.2 * radius)

    right.add_patch(Circle((0, 0), 1.0, facecolor=PALE, edgecolor=CLIPUP, linewidth=1.2))
    right.add_patch(Circle((0, 0), step, facecolor="none", edgecolor=GREY, linewidth=1.0, linestyle="--"))
    _arrow(right, (0, 0), (step, 0.0), GREY)
    words = f"step_size = {step:g} max_speed,\nthe first update"
    right.text(0.0, -0.58, words, color=GREY, ha="center", va="top")
    tip = np.array([0.62, 1.05])
    _arrow(right, (0, 0), tuple(tip), GREY)
    _arrow(right, (0, 0), tuple(tip / np.linalg.norm(tip)), CLIPUP)
    right.text(0.66, 1.1, "momentum × velocity\n+ step_size × direction", color=GREY, ha="center", va="bottom")
    right.text(-0.38, 0.62, "clipped to\nmax_speed", color=CLIPUP, ha="center")
    right.set_title("how far the center may move")
    _frame(right, 1.55)
    return figure


_FIGURES: dict[str, Callable[[Experiment, Results], Any]] = {
    "curves": _curves,
    "range-curves": partial(_curves, whole_range=True),
    "speeds": _speeds,
    "scores": _scores,
    "defaults": _defaults,
}


def _finish(figure: Any, axes: Any) -> Any:
    if not axes.lines or all(line.get_linestyle() == "--" for line in axes.lines):
        return None  # no run has come far enough for a curve
    axes.grid(alpha=0.3)
    axes.legend(loc="best", frameon=False)
    return figure


def _spread(curves: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean ± standard deviation, with n - 1 as in the tables. A single run has no width."""
    middle = np.nanmean(curves, axis=0)
    count = np.count_nonzero(~np.isnan(curves), axis=0)
    spread = np.sqrt(np.nansum(np.square(curves - middle), axis=0) / np.maximum(count - 1, 1))
    return middle - spread, middle + spread


def _count(runs: int) -> str:
    return f"{runs} run{'s' if runs != 1 else ''}"


def _arrow(axes: Any, start: tuple[float, ...], end: tuple[float, ...], color: str) -> None:
    style = {"arrowstyle": "-|>", "color": color, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=end, xytext=start, arrowprops=style)


def _frame(axes: Any, reach: float) -> None:
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="parameter 1", ylabel="parameter 2")
    axes.set_xticks([])
    axes.set_yticks([])
