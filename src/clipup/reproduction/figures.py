"""The pictures of a reproduction, each as PNG and SVG."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clipup.errors import MissingDependency
from clipup.reproduction.curves import common_curves
from clipup.reproduction.experiments import Experiment
from clipup.reproduction.results import Results
from clipup.reproduction.targets import published_mean

COLORS = ("#0b6e99", "#d9730d", "#448361", "#9065b0", "#c14c8a", "#787774")


def draw(experiment: Experiment, results: Results, folder: Path) -> list[Path]:
    """Draw every figure of the experiment into `folder`; return the files."""
    written: list[Path] = []
    for kind in experiment.figures:
        figure = _FIGURES[kind](experiment, results)
        if figure is not None:
            written += save(figure, folder / f"{experiment.name}-{kind}")
    return written


def save(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as PNG and SVG: the same picture gives the same bytes, no date, no random ids."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in ("png", "svg")]
    plot = _pyplot()
    with plot.rc_context({"svg.hashsalt": stem.name}):
        figure.savefig(paths[0], dpi=120, metadata={"Software": None})
        figure.savefig(paths[1], metadata={"Date": None})
    plot.close(figure)
    return paths


def _curves(experiment: Experiment, results: Results, *, whole_range: bool = False) -> Any:
    figure, axes = _pyplot().subplots(figsize=(7, 4.2), layout="constrained")
    for color, group in zip(COLORS, results.groups, strict=False):
        grid, curves = common_curves(group)
        if not grid.size:
            continue
        grid = grid / 1e6
        marker = "o" if grid.size == 1 else None
        label = f"{group.label} ({_count(len(curves))})"
        axes.plot(grid, np.nanmedian(curves, axis=0), color=color, marker=marker, label=label)
        if len(curves) > 1:
            low, high = _range(curves) if whole_range else _spread(curves)
            axes.fill_between(grid, low, high, color=color, alpha=0.2, linewidth=0)
    if experiment.threshold is not None:
        axes.axhline(experiment.threshold, color="#787774", linewidth=0.8, linestyle="--")
    shaded = "minimum and maximum" if whole_range else "mean ± standard deviation"
    axes.set(
        title=f"{experiment.title}\nlines: medians; shaded: {shaded}",
        xlabel="interactions (millions)",
        ylabel="score of the center (16 episodes)",
    )
    return _finish(figure, axes)


def _range_curves(experiment: Experiment, results: Results) -> Any:
    return _curves(experiment, results, whole_range=True)


def _speeds(experiment: Experiment, results: Results) -> Any:
    figure, axes = _pyplot().subplots(figsize=(7, 4.2), layout="constrained")
    for color, group in zip(COLORS, results.groups, strict=False):
        runs = [run.speeds for run in group.runs if run.speeds]
        if not runs:
            continue
        length = min(len(speeds) for speeds in runs)
        speeds = np.asarray([run[:length] for run in runs])
        generations = np.arange(1, length + 1)
        axes.plot(generations, np.median(speeds, axis=0), color=color, label=f"{group.label} ({_count(len(runs))})")
        axes.fill_between(generations, speeds.min(axis=0), speeds.max(axis=0), color=color, alpha=0.2, linewidth=0)
    axes.set(
        title=f"{experiment.title}\nlines: medians; shaded: minimum and maximum",
        xlabel="generation",
        ylabel="size of the update",
    )
    axes.set_ylim(bottom=0.0)
    return _finish(figure, axes)


def _scores(experiment: Experiment, results: Results) -> Any:
    figure, axes = _pyplot().subplots(figsize=(8, 4.8), layout="constrained")
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
    del experiment, results
    from clipup.reproduction.defaults_figure import defaults_figure

    return defaults_figure()


_FIGURES: dict[str, Callable[[Experiment, Results], Any]] = {
    "curves": _curves,
    "range-curves": _range_curves,
    "speeds": _speeds,
    "scores": _scores,
    "defaults": _defaults,
}


def _finish(figure: Any, axes: Any) -> Any:
    if not axes.lines or all(line.get_linestyle() == "--" for line in axes.lines):
        _pyplot().close(figure)  # no run has got far enough for a picture
        return None
    axes.grid(alpha=0.3)
    axes.legend(loc="best", frameon=False)
    return figure


def _range(curves: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.nanmin(curves, axis=0), np.nanmax(curves, axis=0)


def _spread(curves: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean ± standard deviation, with n - 1 as in the tables; a single run has no width."""
    middle = np.nanmean(curves, axis=0)
    count = np.count_nonzero(~np.isnan(curves), axis=0)
    spread = np.sqrt(np.nansum(np.square(curves - middle), axis=0) / np.maximum(count - 1, 1))
    return middle - spread, middle + spread


def _count(runs: int) -> str:
    return f"{runs} run{'s' if runs != 1 else ''}"


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise MissingDependency.of("matplotlib", extra="plot") from None
    matplotlib.use("Agg", force=False)
    from matplotlib import pyplot

    return pyplot
