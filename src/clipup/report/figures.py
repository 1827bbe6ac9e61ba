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
# Of time: the first of which the longest run takes two or more.
UNITS = ((3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))
_CLOCK_FIELDS = frozenset({"seconds", "steps_per_second"})
Line = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Chart:
    """A metric of the records, or of the clock, and how it is called."""

    field: str
    title: str
    reference: bool = False


CHARTS = (
    Chart("score", "score of the center"),
    Chart("fitness_mean", "mean fitness of the candidates"),
    Chart("fitness_best", "fitness of the best candidate"),
    Chart("speed", "update speed", reference=True),
    Chart("stdev_norm", "norm of the standard deviations"),
    Chart("gradient_agreement", "agreement of gradient halves"),
    Chart("gradient_norm", "gradient norm"),
    Chart("population", "candidates per generation"),
    Chart("steps_per_second", "environment steps per second"),
)


def write_figures(runs: Sequence[LoadedRun], folder: Path, *, axis: str = "interactions") -> list[Path]:
    """Write each chart as PNG and SVG; return the files. `axis` is "interactions", "generations" or "time"."""
    figure_class = load_matplotlib()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFault(f"{folder}: cannot be made: {error.strerror or error}") from error
    groups = group_runs(runs)
    unit, label = axis_unit(runs, axis)
    written: list[Path] = []
    for chart in CHARTS:
        lines = {place: run_line(run, chart.field, axis, unit=unit) for place, run in enumerate(runs)}
        if not any(len(line[0]) for line in lines.values()):
            continue
        figure = figure_class(figsize=(6.4, 3.8), layout="constrained")
        _draw(figure.subplots(), chart, groups, runs, lines, label)
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


def axis_unit(runs: Sequence[LoadedRun], axis: str) -> tuple[float, str]:
    """What to divide the values of an axis by, and what to write below it."""
    if axis != "time":
        return 1.0, {"interactions": "environment interactions", "generations": "generations"}[axis]
    longest = max((line.seconds for run in runs for line in run.clock if np.isfinite(line.seconds)), default=0.0)
    unit, name = next(((unit, name) for unit, name in UNITS if longest >= 2 * unit), UNITS[-1])
    return unit, f"training time ({name})"


def run_line(run: LoadedRun, field: str, axis: str, *, unit: float = 1.0) -> Line:
    """The points of one run, gaps left out; `unit` divides the values of the axis."""
    xs = _values(run, {"interactions": "total_interactions", "generations": "generation", "time": "seconds"}[axis])
    pairs = zip(xs, _values(run, field), strict=True)
    known = [(x, y) for x, y in pairs if x is not None and y is not None and np.isfinite(x) and np.isfinite(y)]
    kept = np.array(known, np.float64).reshape(-1, 2)
    return kept[:, 0] / unit, kept[:, 1]


def _values(run: LoadedRun, field: str) -> list[float | None]:
    """A field of the records, or of the clock's line for each of them."""
    if field not in _CLOCK_FIELDS:
        return [getattr(record, field) for record in run.records]
    clock = {line.generation: line for line in run.clock}
    return [getattr(clock.get(record.generation), field, None) for record in run.records]


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
    axes: Any, chart: Chart, groups: Sequence[Group], runs: Sequence[LoadedRun], lines: dict[int, Line], label: str
) -> None:
    for number, group in enumerate(groups):
        members = [lines[place] for place in group.members if len(lines[place][0])]
        if not members:
            continue
        color, name = COLORS[number % len(COLORS)], plain_label(textwrap.shorten(group.label, 60, placeholder=" …"))
        if len(members) > 1:
            grid, quartiles = band(members)
            axes.fill_between(grid, quartiles[0], quartiles[2], color=color, alpha=0.18, linewidth=0)
            axes.plot(grid, quartiles[1], color=color, label=f"{name} ({len(members)} runs)")
        else:
            axes.plot(*members[0], color=color, label=name)
        if chart.reference:
            for speed in {runs[place].records[-1].max_speed for place in group.members if runs[place].records}:
                if speed is not None:
                    axes.axhline(speed, color=color, linestyle="--", linewidth=0.9)
    axes.set_xlabel(label)
    axes.set_ylabel(chart.title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#eceef1")
    axes.set_axisbelow(True)
    if len(groups) > 1:
        axes.legend(frameon=False, fontsize=8)
