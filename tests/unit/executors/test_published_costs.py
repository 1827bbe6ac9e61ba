"""What docs/clusters.md and docs/engines.md say that things cost is what the committed measurements say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
CLUSTERS = (ROOT / "docs/clusters.md").read_text()
COLUMNS = ("LunarLanderContinuous-v3", "HumanoidBulletEnv-v0")
ROWS = {
    "two processes over one": "two processes over one",
    "two unrelated single runs over one": "two apart over one",
    "two Ray actors over two processes": "Ray over processes",
    "two Ray actors over EvoTorch's GymNE with two": "Ray over EvoTorch",
}


def result(name: str) -> dict[str, Any]:
    return json.loads((ROOT / f"benchmarks/results/{name}.json").read_text())


def test_the_table_of_speeds_is_the_committed_measurement() -> None:
    found = result("executors_speed")["results"]
    for words, key in ROWS.items():
        cells = " | ".join(f"{found[column]['ratios, wall clock'][key]:.2f}" for column in COLUMNS)
        assert f"| {words} | {cells} |" in CLUSTERS


def test_the_table_of_processors_is_what_the_model_makes_of_the_measurements() -> None:
    model = result("executors_model")
    for processors, shown in ((2, "2"), (64, "64"), (1000, "1,000")):
        cells = [
            f"{100 * model['efficiency'][f'{population} candidates'][f'{processors} processors']:.0f} %"
            for population in (10_000, 80_000)
        ]
        assert f"| {shown} | {' | '.join(cells)} |" in CLUSTERS
    of_a_range = model["measured"]["trainer's seconds of a range"]
    assert f"one trainer needs {1e3 * of_a_range:.1f} ms" in CLUSTERS


def test_a_candidate_costs_the_bytes_and_the_search_the_share_that_were_measured() -> None:
    found = result("executors_overhead")
    paper = found["bytes of a candidate, the paper's Bullet setting at 100 steps an episode"]
    processes, actors = (
        [round(paper[f"{where}, {workers} workers"]) for workers in (2, 64)] for where in ("processes", "ray")
    )
    words = "{} with 2 processes, {} with 64; {} with 2 Ray actors, {} with 64"
    assert words.format(*processes, *actors) in CLUSTERS
    assert max(paper.values()) < found["limits"]["bytes of a candidate"]
    shares = [100 * found["search over generation"][f"{steps} steps an episode"] for steps in (100, 20)]
    said = "{:.2f} % of a generation whose episodes last 100 steps, and {:.1f} % of one whose episodes last 20."
    assert said.format(*shares) in " ".join(CLUSTERS.split())


def test_bullet_is_as_much_faster_as_was_measured() -> None:
    ratio = result("bullet_client")["plain over quickened"]
    assert f"{ratio:.2f} times as fast" in " ".join((ROOT / "docs/engines.md").read_text().split())
