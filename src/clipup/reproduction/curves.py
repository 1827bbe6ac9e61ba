"""Learning curves of several runs on one grid of interactions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clipup.reproduction.results import GroupResult

GRID_POINTS = 200


def on_grid(group: GroupResult) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Interactions from the first to the last evaluation, and each run's score there, nan beyond its end."""
    runs = [run for run in group.runs if run.scores]
    if not runs:
        return np.empty(0), np.empty((0, 0))
    if max(len(run.scores) for run in runs) == 1:  # a point, where the runs are on average
        place = float(np.mean([run.score_interactions[0] for run in runs]))
        return np.asarray([place]), np.asarray([run.scores for run in runs])
    first = min(run.score_interactions[0] for run in runs)
    last = max(run.score_interactions[-1] for run in runs)
    grid = np.linspace(first, last, GRID_POINTS)
    curves = [np.interp(grid, run.score_interactions, run.scores, left=np.nan, right=np.nan) for run in runs]
    return grid, np.asarray(curves)


def common_curves(group: GroupResult) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """`on_grid`, only where at least half of the runs have a score."""
    grid, curves = on_grid(group)
    if not grid.size:
        return grid, curves
    enough = np.count_nonzero(~np.isnan(curves), axis=0) * 2 >= len(curves)
    return grid[enough], curves[:, enough]


def median_curve(group: GroupResult) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Interactions, and the median over runs of the score there: the line of the paper's figures."""
    grid, curves = common_curves(group)
    return grid, np.nanmedian(curves, axis=0) if grid.size else grid
