"""Score against `max_speed`: one dot per trial, a line through what was run to the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clipup.errors import FileFault
from clipup.report.figures import load_matplotlib, plain_label
from clipup.tuning.plan import Point


@dataclass(frozen=True)
class Dot:
    """A trial: how far it was run, and how good it was then."""

    point: Point
    seed: int
    share: float
    value: float

    @property
    def max_speed(self) -> float:
        """Where it is drawn."""
        return self.point.max_speed


def write_picture(dots: Sequence[Dot], chosen: float, title: str, stem: Path) -> list[Path]:
    """Draw the trials; return the files (PNG and SVG)."""
    figure = load_matplotlib()(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    finite = [dot for dot in dots if math.isfinite(dot.value)]
    whole = [dot for dot in finite if dot.share >= 1]
    early = [dot for dot in finite if dot.share < 1]
    means: dict[float, list[float]] = {}
    for dot in whole:
        if dot.point == Point(dot.max_speed):  # variations of it in further settings are another matter
            means.setdefault(dot.max_speed, []).append(dot.value)
    speeds = sorted(means)
    axes.plot(speeds, [sum(means[speed]) / len(means[speed]) for speed in speeds], color="#0b6bcb", linewidth=1.6)
    axes.plot([dot.max_speed for dot in early], [dot.value for dot in early], "o", markersize=5, color="#9aa3b0",
              markerfacecolor="none", label="stopped early")  # fmt: skip
    axes.plot([dot.max_speed for dot in whole], [dot.value for dot in whole], "o", markersize=5, color="#0b6bcb",
              alpha=0.75, label="whole run, one seed")  # fmt: skip
    axes.axvline(chosen, color="#d1490c", linestyle="--", linewidth=1.2, label=f"chosen: {chosen:g}")
    axes.set_xscale("log")
    axes.set_xlabel("max_speed")
    axes.set_ylabel("score")
    axes.set_title(plain_label(title), loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#eceef1")
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=8)
    written: list[Path] = []
    for suffix in ("png", "svg"):
        path = stem.with_suffix(f".{suffix}")
        try:
            figure.savefig(path, dpi=160, metadata={"Date": None} if suffix == "svg" else {})
        except OSError as error:
            raise FileFault(f"{path}: cannot be written: {error.strerror or error}") from error
        written.append(path)
    return written
