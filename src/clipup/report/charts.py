"""The page's charts as PNG and SVG files, and how every figure of clipup is made and saved."""

from __future__ import annotations

import importlib
import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clipup.errors import MissingDependency
from clipup.files import make_directories, write_output
from clipup.report.groups import RunGroup, group_runs
from clipup.report.loading import LoadedRun
from clipup.runs.names import NAMES
from clipup.runs.rundir import directory_name

COLORS = ("#0b6bcb", "#d1490c", "#0f8a5f", "#9333a8", "#a87400", "#0a8ca3", "#c2255c", "#5b6470")
AXES = ("interactions", "generations", "time")
# Units of time. The axis uses the first one of which the longest run takes two or more.
UNITS = ((3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))
_CLOCK_FIELDS = frozenset({"seconds", "steps_per_second"})
Line = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Chart:
    """A field of the records or of the clock."""

    field: str
    reference: bool = False

    @property
    def title(self) -> str:
        """The name of the field, as everywhere."""
        return NAMES[self.field]


CHARTS = (
    Chart("score"),
    Chart("fitness_mean"),
    Chart("fitness_best"),
    Chart("speed", reference=True),
    Chart("stdev_norm"),
    Chart("gradient_agreement"),
    Chart("gradient_norm"),
    Chart("population"),
    Chart("steps_per_second"),
)


def write_charts(runs: Sequence[LoadedRun], directory: Path, *, axis: str = "interactions") -> list[Path]:
    """Write each chart as PNG and SVG, each task apart; return the files. `axis` is one of `AXES`."""
    everything = group_runs(runs)
    tasks = list(dict.fromkeys(group.task for group in everything))
    unit, label = axis_unit(runs, axis)
    written: list[Path] = []
    for task in tasks:
        groups = [group for group in everything if group.task == task]
        suffix = f"-{directory_name(task)}" if len(tasks) > 1 else ""
        for chart in CHARTS:
            places = [place for group in groups for place in group.members]
            lines = {place: run_line(runs[place], chart.field, axis, unit=unit) for place in places}
            if any(len(line[0]) for line in lines.values()):
                figure = new_figure(6.4, 3.8)
                _draw(figure.subplots(), chart, groups, runs, lines, label)
                written += save_figure(figure, directory / f"{chart.field}{suffix}")
    return written


def new_figure(width: float, height: float) -> Any:
    """A Matplotlib figure of that size in inches. It needs no screen and touches no global state."""
    return _matplotlib("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, stem: Path, *, dpi: int = 160) -> list[Path]:
    """Write a figure as PNG and SVG; return the files. Equal figures give equal bytes: no date, no random ids."""
    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in ("png", "svg")]
    make_directories(stem.parent)
    with _matplotlib("matplotlib").rc_context({"svg.hashsalt": stem.name}):
        for path, metadata in zip(paths, ({"Software": None}, {"Date": None}), strict=True):
            drawn = io.BytesIO()
            figure.savefig(drawn, format=path.suffix[1:], dpi=dpi, metadata=metadata)
            write_output(path, drawn.getvalue())
    return paths


def _matplotlib(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingDependency.of("matplotlib", extra="plot") from error


def plain_label(text: str) -> str:
    """Escape text for Matplotlib: a dollar would begin a formula, and a directory's name may not be valid text.

    >>> plain_label("b$x_{$")
    'b\\\\$x_{\\\\$'
    """
    return text.replace("$", r"\$").encode("utf-8", "replace").decode("utf-8")


def axis_unit(runs: Sequence[LoadedRun], axis: str) -> tuple[float, str]:
    """The divisor of an axis, and its label."""
    if axis != "time":
        return 1.0, {"interactions": "environment interactions", "generations": "generations"}[axis]
    longest = max((line.seconds for run in runs for line in run.clock if np.isfinite(line.seconds)), default=0.0)
    unit, name = next(((unit, name) for unit, name in UNITS if longest >= 2 * unit), UNITS[-1])
    return unit, f"training time ({name})"


def run_line(run: LoadedRun, field: str, axis: str, *, unit: float = 1.0) -> Line:
    """The points of one run, without gaps. `unit` divides the values of the axis."""
    xs = _values(run, {"interactions": "total_interactions", "generations": "generation", "time": "seconds"}[axis])
    pairs = zip(xs, _values(run, field), strict=True)
    known = [(x, y) for x, y in pairs if x is not None and y is not None and np.isfinite(x) and np.isfinite(y)]
    kept = np.array(known, np.float64).reshape(-1, 2)
    return kept[:, 0] / unit, kept[:, 1]


def _values(run: LoadedRun, field: str) -> list[float | None]:
    """A field of each record, or of the clock line of its generation."""
    if field not in _CLOCK_FIELDS:
        return [getattr(record, field) for record in run.records]
    clock = {line.generation: line for line in run.clock}
    return [getattr(clock.get(record.generation), field, None) for record in run.records]


def band(lines: Sequence[Line]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A grid, and at each of its points the lower quartile, median and upper quartile of the lines that reach it."""
    present = [line for line in lines if len(line[0])]
    grid = np.array(sorted({x for line in present for x in line[0].tolist()}), np.float64)
    if grid.size > 1000:
        grid = np.linspace(float(grid[0]), float(grid[-1]), 1000, dtype=np.float64)
    values = np.array([np.interp(grid, x, y, left=np.nan, right=np.nan) for x, y in present])
    covered = np.isfinite(values).sum(axis=0) * 2 >= len(present)
    return grid[covered], np.nanpercentile(values[:, covered], [25, 50, 75], axis=0)


def _draw(
    axes: Any, chart: Chart, groups: Sequence[RunGroup], runs: Sequence[LoadedRun], lines: dict[int, Line], label: str
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
