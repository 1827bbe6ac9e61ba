"""How long does a report over 30 runs of 1000 generations take to make, and how large is it?

The promise: under 5 s and under 1 MB. The records are made up, with noise in every column, which is the worst case for
compression.

    python benchmarks/report_size.py

Writes benchmarks/results/report_size.json.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from clipup.report import make_report
from clipup.runs.config import RunConfig
from clipup.runs.records import ClockRecord, Record, encode_line
from clipup.runs.toml import format_config

RUNS, GENERATIONS = 30, 1000


def write_run(path: Path, number: int) -> None:
    """A run's files with made-up numbers."""
    path.mkdir()
    speed, seed = (0.005, 0.015, 0.05)[number % 3], number // 3
    config = RunConfig(env="Walker2d-v4", max_speed=speed, seed=seed, generations=GENERATIONS)
    (path / "config.toml").write_text(format_config(config), encoding="utf-8")
    noise = np.random.default_rng(number).standard_normal((GENERATIONS + 1, 8))
    total, seconds = 0, 0.0
    with (path / "records.jsonl").open("wb") as records, (path / "clock.jsonl").open("wb") as clock:
        for k in range(1, GENERATIONS + 1):
            level = 4000 * k / (k + 200) + 80 * noise[k, 0]
            interactions = 75000 + int(500 * abs(noise[k, 1]))
            total, rate = total + interactions, 9000 + 400 * noise[k, 2]
            seconds += interactions / rate
            records.write(
                encode_line(
                    Record(
                        generation=k,
                        population=100 * (1 + k % 8),
                        interactions=interactions,
                        total_interactions=total,
                        fitness_mean=level,
                        fitness_best=1.4 * level + 10 * noise[k, 3],
                        best=1.4 * level,
                        score=level + 100 * noise[k, 4] if k % 5 == 0 else None,
                        score_standard_error=40 + noise[k, 5] if k % 5 == 0 else None,
                        speed=speed,
                        max_speed=speed,
                        clipped=True,
                        stdev_norm=15 * speed * (0.9995**k) * (1 + 0.01 * noise[k, 6]),
                        gradient_norm=abs(0.3 + 0.05 * noise[k, 6]),
                        gradient_agreement=0.2 + 0.1 * noise[k, 7],
                        nonfinite=0,
                        tied=0.0,
                        population_bound=False,
                    )
                )
            )
            clock.write(encode_line(ClockRecord(k, round(seconds, 3), round(rate, 1))))


def main() -> int:
    """Measure, print and store."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(RUNS):
            write_run(Path(folder) / f"run-{number}", number)
        wall, processor = time.perf_counter(), time.process_time()
        page = make_report([Path(folder)])
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    result = {
        "question": f"a report over {RUNS} runs of {GENERATIONS} generations: how long, how large?",
        "seconds": round(wall, 2),
        "processor_seconds": round(processor, 2),
        "bytes": len(page.encode("utf-8")),
        "load_average": os.getloadavg()[0],
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "commit": commit,
        "passes": processor < 5 and len(page) < 1_000_000,
    }
    path = Path(__file__).parent / "results" / "report_size.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))
    return 0 if result["passes"] else 1


if __name__ == "__main__":
    sys.exit(main())
