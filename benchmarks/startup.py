"""How much longer `clipup --help` takes than `python -c pass`: processor time of each, medians over many starts.

Run: python benchmarks/startup.py
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

STARTS = 15
RESULT = Path(__file__).parent / "results" / "startup.json"


def measure(words: list[str]) -> tuple[float, float]:
    """Seconds on the wall and of the processor for one start."""
    before, begun = os.times(), time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - begun, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, used


def main() -> None:
    """Measure both by turns and store the medians."""
    commands = {"python -c pass": ["-c", "pass"], "clipup --help": ["-m", "clipup", "--help"]}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(STARTS):
        for name, words in commands.items():
            found[name].append(measure(words))
    result: dict[str, object] = {
        name: {
            "wall_seconds": round(statistics.median(wall for wall, _ in times), 4),
            "processor_seconds": round(statistics.median(used for _, used in times), 4),
        }
        for name, times in found.items()
    }
    extra = [second[1] - first[1] for first, second in zip(*found.values(), strict=True)]
    result["extra_processor_seconds"] = round(statistics.median(extra), 4)
    result["starts"] = STARTS
    result["python"], result["machine"] = platform.python_version(), f"{os.cpu_count()} processors"
    result["load_average"] = [round(value, 2) for value in os.getloadavg()]
    result["command"] = "python benchmarks/startup.py"
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
