"""How much memory does `clipup report` take for 400 MB of records, in one run or in many?

The promise: below 200 MB, the interpreter included. A report thins records while it reads them.

    python benchmarks/report_memory.py

Writes benchmarks/results/report_memory.json.
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

from clipup.runs.config import RunConfig
from clipup.runs.line_file import encode_clock
from clipup.runs.records import ClockRecord, Record, encode_line
from clipup.runs.toml import format_config

MEGABYTES = 400
LIMIT = 200
RUNS = (1, 40, 1000)
SOME = 1000  # lines that are made; a run repeats them, with generations that go on
RESULT = Path(__file__).parent / "results" / "report_memory.json"


def line(generation: int, noise: np.ndarray) -> Record:
    """A record with noise in every column."""
    scored = generation % 5 == 0
    return Record(
        generation=generation,
        population=200,
        interactions=75_000,
        total_interactions=75_000 * generation,
        fitness_mean=1000 + 80 * noise[0],
        fitness_best=1400 + 80 * noise[1],
        best=1400 + 80 * noise[2],
        score=1000 + 100 * noise[3] if scored else None,
        score_standard_error=40 + noise[4] if scored else None,
        speed=0.05,
        max_speed=0.05,
        clipped=True,
        stdev_norm=0.75 + 0.01 * noise[5],
        gradient_norm=abs(0.3 + 0.05 * noise[6]),
        gradient_agreement=0.2 + 0.1 * noise[7],
        nonfinite=0,
        tied=0.0,
        population_bound=False,
    )


def write_runs(root: Path, runs: int) -> int:
    """Make run directories with records of `MEGABYTES` in all; return how many lines they have."""
    noise = np.random.default_rng(1).standard_normal((SOME, 8))
    # The text after the two numbers that change is made once: spelling every float would take most of the time.
    texts = [encode_line(line(10**8 + number, noise[number])).partition(b'"population"')[2] for number in range(SOME)]
    each = MEGABYTES * 10**6 // runs
    total = 0
    for number in range(runs):
        path = root / f"run-{number}"
        path.mkdir()
        config = RunConfig(env="Walker2d-v4", seed=number, generations=10**8)
        (path / "config.toml").write_text(format_config(config), encoding="utf-8")
        (path / "status.json").write_text('{"state": "finished"}')
        size = generation = 0
        digest = ""
        with (path / "records.jsonl").open("wb") as records, (path / "clock.jsonl").open("wb") as clock:
            while size < each:
                generation += 1
                text = b'{"generation": %d, "population"' % generation + texts[generation % SOME]
                records.write(text)
                size += len(text)
                told, digest = encode_clock(ClockRecord(generation, 8.0 * generation, 9000.0), digest)
                clock.write(told)
        total += generation
    return total


def measure(runs: int) -> dict[str, float]:
    """Return the peak memory and the time of a report over so many runs, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "runs"
        root.mkdir()
        lines = write_runs(root, runs)
        words = [sys.executable, "-m", "clipup", "report", str(root), "-o", str(Path(folder) / "page.html"), "--quiet"]
        began = time.perf_counter()
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"clipup report failed over {runs} runs")
        return {
            "runs": runs,
            "lines": lines,
            "megabytes_of_records": MEGABYTES,
            "peak_megabytes": round(used.ru_maxrss * 1024 / 1e6, 1),
            "seconds": round(time.perf_counter() - began, 1),
            "page_megabytes": round((Path(folder) / "page.html").stat().st_size / 1e6, 2),
        }


def main() -> int:
    """Measure, print and keep the result."""
    measured = [measure(runs) for runs in RUNS]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    result = {
        "question": f"clipup report over {MEGABYTES} MB of records: how much memory?",
        "measured": measured,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "commit": commit,
        "passes": all(one["peak_megabytes"] < LIMIT for one in measured),
    }
    print(json.dumps(result, indent=1))
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if result["passes"] else 1


if __name__ == "__main__":
    sys.exit(main())
