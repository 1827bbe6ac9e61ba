"""The README's table is the committed result."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

from clipup.reproduction.targets import published_mean

ROOT = Path(__file__).parents[3]
ROWS = {"ranks": "ranks", "raw": "raw rewards", "times-1000": "rewards × 1000", "over-1000": "rewards / 1000"}


def test_the_readme_shows_the_means_of_the_committed_result() -> None:
    groups = {group["name"]: group for group in json.loads((ROOT / "results/fitness-scale.json").read_text())["groups"]}
    readme = (ROOT / "README.md").read_text().splitlines()
    for scale, words in ROWS.items():
        cells = [words]
        for name in (f"clipup-{scale}", f"adam-0.175-{scale}"):
            scores = [run["score"] for run in groups[name]["runs"] if run["complete"]]
            assert len(scores) == 10
            cells += [f"{published_mean('fitness-scale', name):.2f}"]
            cells += [f"{statistics.fmean(scores):.2f} ± {statistics.stdev(scores):.2f}"]
        assert f"| {' | '.join(cells)} |" in readme
