"""The README's table is the committed result."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

from clipup.reproduction.targets import published_mean

ROOT = Path(__file__).parents[3]
ROWS = {
    "clipup-ranks": "ranks",
    "clipup-raw": "raw rewards",
    "clipup-times-1000": "rewards × 1000",
    "clipup-over-1000": "rewards / 1000",
}


def test_the_readme_shows_the_means_of_the_committed_result() -> None:
    groups = {group["name"]: group for group in json.loads((ROOT / "results/fitness-scale.json").read_text())["groups"]}
    readme = (ROOT / "README.md").read_text()
    for name, row in ROWS.items():
        scores = [run["score"] for run in groups[name]["runs"] if run["complete"]]
        paper = published_mean("fitness-scale", name)
        shown = f"| {paper:.2f} | {statistics.fmean(scores):.2f} ± {statistics.stdev(scores):.2f} |"
        line = next(line for line in readme.splitlines() if line.startswith(f"| {row} |"))
        assert shown in line
        assert len(scores) == 10
