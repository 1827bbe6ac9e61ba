"""The figure of score against max_speed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from clipup.tuning.speed_search import Point
from clipup.tuning.trials import TrialProgress
from clipup.tuning.tune import write_figure

pytest.importorskip("matplotlib", reason="figures need matplotlib (in the plot extra)")


def test_the_line_goes_through_values_of_max_speed_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    made: list[Any] = []

    def remember(width: float, height: float) -> Figure:
        made.append(Figure(figsize=(width, height)))
        return made[-1]

    monkeypatch.setattr(sys.modules["clipup.tuning.tune"], "new_figure", remember)
    points = [(Point(0.1), 1.0), (Point(1.0), 2.0), (Point(1.0, radius_factor=12.0), 50.0)]
    dots = [TrialProgress(point, 0, 1.0, value, 1.0, 1.0, 0.0) for point, value in points]
    write_figure(dots, 1.0, "b$x_{$", tmp_path / "figure")
    line, _, whole = made[0].axes[0].lines[:3]
    assert line.get_ydata().tolist() == [1.0, 2.0]
    assert whole.get_ydata().tolist() == [1.0, 2.0, 50.0]
