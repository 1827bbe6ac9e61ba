"""What one ask and tell cost, beside drawing the numbers at all, and beside EvoTorch.

    python benchmarks/search_speed.py --rival-python PYTHON

PYTHON is an interpreter that has evotorch; without it the rival is left out. At dimension 6409 and population 3200 (the
paper's Humanoid, its population at the bound) this measures, interleaved in one run:

- numpy alone drawing the 1600 × 6409 float32 normals in bulk;
- clipup's `ask` and `tell`, and `batch` and `tell`, where the population is never in memory;
- the `ask` and `tell` of clipup's OpenAI-ES and SNES, which must be no slower than those of PGPE;
- EvoTorch's functional `pgpe_ask` and `pgpe_tell`;

once with all cores and once on one; then the peak memory of `batch` and `tell`, and the time to import clipup over
numpy. Ratios are taken within each repeat, and their medians reported; those of processor time, system time included,
hold on a busy machine too, where the clock on the wall measures the neighbours.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import clipup

DIMENSION, POPULATION, MAX_SPEED = 6409, 3200, 0.015
DIRECTIONS_BYTES = POPULATION // 2 * DIMENSION * 4
RESULT = Path(__file__).parent / "results" / "search_speed.json"
LIMITS = {
    "clipup over numpy": 2.0,
    "OpenAI-ES over PGPE": 1.0,
    "SNES over PGPE": 1.0,
    "memory over directions": 1.3,
    "import over numpy, seconds": 0.3,
}


Seconds = tuple[float, float]  # on the wall, of the processors
CLOCKS = ("wall", "processor")


def timed(call: Callable[[], object]) -> Seconds:
    """Return the seconds that the call took, its result's disposal included."""
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - processor


def serve_rival() -> None:
    """In the rival's interpreter: one ask and tell for each line read, its seconds printed."""
    import evotorch
    import torch
    from evotorch.algorithms.functional import pgpe, pgpe_ask, pgpe_tell

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    state = pgpe(
        center_init=torch.zeros(DIMENSION),
        center_learning_rate=MAX_SPEED / 2,
        stdev_learning_rate=0.1,
        objective_sense="max",
        optimizer="clipup",
        optimizer_config={"max_speed": MAX_SPEED},
        radius_init=15 * MAX_SPEED,
    )
    fitnesses = torch.arange(float(POPULATION))

    def generation() -> None:
        nonlocal state
        state = pgpe_tell(state, pgpe_ask(state, popsize=POPULATION), fitnesses)

    print(json.dumps({"evotorch": evotorch.__version__, "torch": torch.__version__}), flush=True)
    for _ in sys.stdin:
        print(*timed(generation), flush=True)


class Rival:
    """EvoTorch in its own interpreter, waiting for its turn."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, __file__, "--serve-rival"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.versions: dict[str, str] = json.loads(self._answer())

    def _answer(self) -> str:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise SystemExit("the rival's interpreter died; does it have evotorch?")
        return line

    def generation(self) -> Seconds:
        """Return the seconds of one ask and tell."""
        if self._process.stdin:
            self._process.stdin.write("go\n")
            self._process.stdin.flush()
        wall, processor = map(float, self._answer().split())
        return wall, processor

    def close(self) -> None:
        """End the interpreter."""
        self._process.communicate(timeout=60)


def measure_speed(rival_python: str | None, repeats: int) -> tuple[dict[str, object], dict[str, str]]:
    """Return seconds and ratios of every contestant, and the rival's versions."""
    import numpy as np

    import clipup

    search = clipup.PGPE(dimension=DIMENSION, population_size=POPULATION, max_speed=MAX_SPEED, seed=1)
    generator = np.random.default_rng(1)
    fitnesses = np.arange(float(POPULATION))
    rival = Rival(rival_python) if rival_python else None
    others = other_searches()

    def ask_and_tell(one: clipup.Search = search) -> None:
        one.ask()
        one.tell(fitnesses)

    def batch_and_tell() -> None:
        search.batch()
        search.tell(fitnesses)

    contestants: dict[str, Callable[[], Seconds]] = {
        "numpy bulk draw": lambda: timed(
            lambda: generator.standard_normal((POPULATION // 2, DIMENSION), dtype=np.float32)
        ),
        "clipup ask + tell": lambda: timed(ask_and_tell),
        "clipup batch + tell": lambda: timed(batch_and_tell),
        **{f"{name} ask + tell": partial(timed, partial(ask_and_tell, one)) for name, one in others.items()},
    }
    if rival is not None:
        contestants["evotorch pgpe_ask + pgpe_tell"] = rival.generation
    seconds: dict[str, list[Seconds]] = {name: [] for name in contestants}
    for repeat in range(repeats + 1):
        for name, run in contestants.items():
            taken = run()
            if repeat:  # the first warms up caches and allocators
                seconds[name].append(taken)
    if rival is not None:
        rival.close()

    def ratio(over: str, under: str) -> dict[str, dict[str, float]]:
        return ratio_by_clock(seconds[over], seconds[under])

    report: dict[str, object] = {
        "cores": len(os.sched_getaffinity(0)),
        "seconds": {name: by_clock(values) for name, values in seconds.items()},
        "clipup over numpy": ratio("clipup ask + tell", "numpy bulk draw"),
        "clipup, not materialized, over numpy": ratio("clipup batch + tell", "numpy bulk draw"),
    }
    for name in others:
        report[f"{name} over PGPE"] = ratio(f"{name} ask + tell", "clipup ask + tell")
    if rival is not None:
        report["evotorch over clipup"] = ratio("evotorch pgpe_ask + pgpe_tell", "clipup ask + tell")
    return report, rival.versions if rival is not None else {}


def other_searches() -> dict[str, clipup.Search]:
    """Return the searches whose ask and tell are compared with those of PGPE."""
    import clipup

    radius = 15 * MAX_SPEED
    return {
        "OpenAI-ES": clipup.OpenAIES(dimension=DIMENSION, population_size=POPULATION, max_speed=MAX_SPEED, seed=1),
        "SNES": clipup.SNES(dimension=DIMENSION, population_size=POPULATION, radius=radius, seed=1),
    }


def by_clock(values: list[Seconds]) -> dict[str, dict[str, float]]:
    """Return the spread of the seconds, or of their ratios, by each clock."""
    return {clock: spread([pair[number] for pair in values]) for number, clock in enumerate(CLOCKS)}


def ratio_by_clock(over: list[Seconds], under: list[Seconds]) -> dict[str, dict[str, float]]:
    """Return the spread of the ratios, each taken within one repeat."""
    return by_clock([(one[0] / other[0], one[1] / other[1]) for one, other in zip(over, under, strict=True)])


def spread(values: list[float]) -> dict[str, float]:
    """Return the median and how far the values spread."""
    return {
        "median": round(statistics.median(values), 4),
        "least": round(min(values), 4),
        "most": round(max(values), 4),
    }


def measure_memory() -> dict[str, float]:
    """In a fresh interpreter: the peak of a generation whose population is never made."""
    import numpy as np

    import clipup

    search = clipup.PGPE(dimension=DIMENSION, population_size=POPULATION, max_speed=MAX_SPEED, seed=1)
    fitnesses = np.arange(float(POPULATION))
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    search.batch()
    search.tell(fitnesses)
    resident = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident) * 1024
    tracemalloc.start()
    search.batch()
    search.tell(fitnesses)
    allocated = tracemalloc.get_traced_memory()[1]
    return {
        "directions, bytes": DIRECTIONS_BYTES,
        "peak allocated, bytes": allocated,
        "growth of the resident set, bytes": resident,
        "memory over directions": round(max(allocated, resident) / DIRECTIONS_BYTES, 4),
    }


def measure_import(repeats: int) -> dict[str, float]:
    """Return the seconds that importing clipup takes in fresh interpreters, numpy being there already."""
    code = "import time, numpy; t = time.perf_counter(); import clipup; print(time.perf_counter() - t)"
    run = [sys.executable, "-c", code]
    subprocess.run(run, check=True, capture_output=True)  # writes the byte code
    return spread([float(subprocess.run(run, check=True, capture_output=True).stdout) for _ in range(repeats)])


def where() -> dict[str, object]:
    """Return what the numbers belong to."""
    import numpy as np

    import clipup

    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    )
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "commit": commit.stdout.strip(),
        "versions": {"clipup": clipup.__version__, "numpy": np.__version__, "python": platform.python_version()},
        "hardware": {"cpu": models[0].partition(": ")[2] if models else "", "cores": os.cpu_count()},
        "load before": round(os.getloadavg()[0], 2),
    }


def main() -> None:
    """Measure, print, and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rival-python", metavar="PYTHON", help="an interpreter that has evotorch")
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--output", type=Path, default=RESULT)
    parser.add_argument("--serve-rival", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve_rival:
        serve_rival()
        return
    if arguments.memory:
        print(json.dumps(measure_memory()))
        return

    result: dict[str, object] = where()
    result["sizes"] = {"dimension": DIMENSION, "population": POPULATION, "repeats": arguments.repeats}
    child = subprocess.run([sys.executable, __file__, "--memory"], check=True, capture_output=True)
    result["memory, not materialized"] = json.loads(child.stdout)
    result["import over numpy, seconds"] = measure_import(arguments.repeats)
    all_cores = os.sched_getaffinity(0)
    result["all cores"], versions = measure_speed(arguments.rival_python, arguments.repeats)
    os.sched_setaffinity(0, {max(all_cores)})
    result["one core"], _ = measure_speed(arguments.rival_python, arguments.repeats)
    result["rival versions"], result["limits"] = versions, LIMITS
    arguments.output.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
