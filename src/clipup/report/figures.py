"""The page's charts as picture files, for papers and slides."""

from __future__ import annotations

import importlib
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clipup.errors import FileFault, MissingDependency
from clipup.report.groups import Group, group_runs
from clipup.report.runs import LoadedRun

COLORS = ("#0b6bcb", "#d1490c", "#0f8a5f", "#9333a8", "#a87400", "#0a8ca3", "#c2255c", "#5b6470")
FORMATS = ("png", "svg")
Line = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Chart:
    """A metric of the records and how it is called."""

    field: str
    title: str
    reference: bool = False


CHARTS = (
    Chart("score", "score of the center"),
    Chart("fitness_mean", "mean fitness of the candidates"),
    Chart("speed", "update speed", reference=True),
    Chart("stdev_norm", "norm of the standard deviations"),
    Chart("gradient_agreement", "agreement of gradient halves"),
    Chart("gradient_norm", "gradient norm"),
    Chart("population", "candidates per generation"),
)


def write_figures(runs: Sequence[LoadedRun], folder: Path, *, axis: str = "interactions") -> list[Path]:
    """Write each chart as PNG and SVG; return the files. `axis` is "interactions" or "generations"."""
    figure_class = load_matplotlib()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFault(f"{folder}: cannot be made: {error.strerror or error}") from error
    groups = group_runs(runs)
    written: list[Path] = []
    for chart in CHARTS:
        lines = {place: run_line(run, chart.field, axis) for place, run in enumerate(runs)}
        if not any(len(line[0]) for line in lines.values()):
            continue
        figure = figure_class(figsize=(6.4, 3.8), layout="constrained")
        _draw(figure.subplots(), chart, groups, runs, lines, axis)
        for suffix in FORMATS:
            path = folder / f"{chart.field}.{suffix}"
            # Without its date, the same runs give the same file.
            metadata = {"Date": None} if suffix == "svg" else {}
            try:
                figure.savefig(path, dpi=160, metadata=metadata)
            except OSError as error:
                raise FileFault(f"{path}: cannot be written: {error.strerror or error}") from error
            written.append(path)
    return written


def load_matplotlib() -> Any:
    """Matplotlib's figure class, which needs no screen and no global state."""
    try:
        module: Any = importlib.import_module("matplotlib.figure")
    except ImportError as error:
        raise MissingDependency.of("matplotlib", extra="plot") from error
    return module.Figure


def plain_label(text: str) -> str:
    """Text that Matplotlib draws as it stands: dollars begin a formula, and a directory's name need not be text.

    >>> plain_label("b$x_{$")
    'b\\\\$x_{\\\\$'
    """
    return text.replace("$", r"\$").encode("utf-8", "replace").decode("utf-8")


def run_line(run: LoadedRun, field: str, axis: str) -> Line:
    """The points of one run, gaps left out."""
    name = {"interactions": "total_interactions", "generations": "generation"}[axis]
    pairs = [(getattr(record, name), getattr(record, field)) for record in run.records]
    kept = np.array([(x, y) for x, y in pairs if y is not None and np.isfinite(y) and np.isfinite(x)], np.float64)
    return (kept[:, 0], kept[:, 1]) if kept.size else (np.empty(0), np.empty(0))


def band(lines: Sequence[Line]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A grid, and the lower quartile, median and upper quartile over the lines that reach each of its points."""
    present = [line for line in lines if len(line[0])]
    grid = np.array(sorted({x for line in present for x in line[0].tolist()}), np.float64)
    if grid.size > 1000:
        grid = np.linspace(float(grid[0]), float(grid[-1]), 1000, dtype=np.float64)
    values = np.array([np.interp(grid, x, y, left=np.nan, right=np.nan) for x, y in present])
    covered = np.isfinite(values).sum(axis=0) * 2 >= len(present)
    return grid[covered], np.nanpercentile(values[:, covered], [25, 50, 75], axis=0)


def _draw(
    axes: Any, chart: Chart, groups: Sequence[Group], runs: Sequence[LoadedRun], lines: dict[int, Line], axis: str
) -> None:
    for number, group in enumerate(groups):
        members = [lines[place] for place in group.members if len(lines[place][0])]
        if not members:
            continue
        color, label = COLORS[number % len(COLORS)], plain_label(textwrap.shorten(group.label, 60, placeholder=" …"))
        if len(members) > 1:
            grid, quartiles = band(members)
            axes.fill_between(grid, quartiles[0], quartiles[2], color=color, alpha=0.18, linewidth=0)
            axes.plot(grid, quartiles[1], color=color, label=f"{label} ({len(members)} runs)")
        else:
            axes.plot(*members[0], color=color, label=label)
        if chart.reference:
            for speed in {runs[place].records[-1].max_speed for place in group.members if runs[place].records}:
                if speed is not None:
                    axes.axhline(speed, color=color, linestyle="--", linewidth=0.9)
    axes.set_xlabel("environment interactions" if axis == "interactions" else "generations")
    axes.set_ylabel(chart.title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#eceef1")
    axes.set_axisbelow(True)
    if len(groups) > 1:
        axes.legend(frameon=False, fontsize=8)
