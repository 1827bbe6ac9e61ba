"""The picture of score against max_speed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clipup.tuning import picture
from clipup.tuning.picture import Dot, write_picture
from clipup.tuning.plan import Point

pytest.importorskip("matplotlib", reason="pictures need matplotlib (in the plot extra)")


def test_the_line_goes_through_values_of_max_speed_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    made: list[Any] = []

    def remember(**options: Any) -> Figure:
        made.append(Figure(**options))
        return made[-1]

    monkeypatch.setattr(picture, "load_matplotlib", lambda: remember)
    points = [(Point(0.1), 1.0), (Point(1.0), 2.0), (Point(1.0, radius_factor=12.0), 50.0)]
    dots = [Dot(point, 0, 1.0, value) for point, value in points]
    write_picture(dots, 1.0, "b$x_{$", tmp_path / "picture")
    line, _, whole = made[0].axes[0].lines[:3]
    assert line.get_ydata().tolist() == [1.0, 2.0]
    assert whole.get_ydata().tolist() == [1.0, 2.0, 50.0]
