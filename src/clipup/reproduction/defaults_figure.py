"""The picture of how maximum speed, step size and radius relate when only the maximum speed is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from clipup.searches import PGPE, candidates

CLIPUP, PALE, GREY = "#0b6e99", "#d3e5ef", "#787774"


def defaults_figure() -> Any:
    """Draw, in units of ``max_speed``, what a search in two dimensions makes of it.

    Every length is read from a search that was given ``max_speed = 1`` alone, so the picture cannot drift from the
    code: the radius is the norm of its standard deviation, the step size that of its optimizer's first step.
    """
    from matplotlib import pyplot
    from matplotlib.patches import Circle

    plot: Any = pyplot
    search = PGPE(dimension=2, max_speed=1.0, population_size=60, seed=7)
    radius = float(np.linalg.norm(search.stdev))
    step = float(np.linalg.norm(search.optimizer.ascent(np.array([1.0, 0.0], dtype=np.float32))))
    points = candidates(search.center, search.stdev, search.seed, 0, 0, 60)

    figure, (left, right) = plot.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
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


def _arrow(axes: Any, start: tuple[float, ...], end: tuple[float, ...], color: str) -> None:
    style = {"arrowstyle": "-|>", "color": color, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=end, xytext=start, arrowprops=style)


def _frame(axes: Any, reach: float) -> None:
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="parameter 1", ylabel="parameter 2")
    axes.set_xticks([])
    axes.set_yticks([])
