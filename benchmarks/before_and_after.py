"""An earlier version of clipup beside this one: start-up, speed and memory, by turns in one run.

    python benchmarks/before_and_after.py --before SOURCES [--only PART] [--repeats N]

SOURCES is the `src` folder of the earlier version, for instance of a `git worktree`. Both versions run in this
interpreter with the same libraries, each measurement in a process of its own:

- *help*: processor seconds of `clipup --help`; *import*: of `import clipup`;
- *ask and tell*: seconds of one generation at 6409 parameters and 3200 candidates (the paper's Humanoid);
- *steps per second* of whole trainings, and the training's *peak memory* in megabytes: on EnvPool and on Gymnasium in
  both versions, and with the engine that each version takes by default.

Ratios are this version over the earlier one, taken within each repeat. Below 1 is better for seconds and megabytes,
above 1 for steps per second.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[1] / "src"
RESULT = Path(__file__).parent / "results" / "before_and_after.json"
START = """
import json, os, subprocess, sys
before = os.times()
for _ in range(5):
    subprocess.run([sys.executable, *{words!r}], check=True, stdout=subprocess.DEVNULL)
after = os.times()
seconds = (after.children_user + after.children_system - before.children_user - before.children_system) / 5
print(json.dumps({{"seconds": seconds}}))
"""
ASK_AND_TELL = """
import json, time
import numpy as np
from clipup import PGPE
search = PGPE(dimension=6409, population_size=3200, max_speed=0.15, seed=1)
fitnesses = np.arange(3200.0)
search.tell((search.ask(), fitnesses)[1])
begun = time.perf_counter()
for _ in range(20):
    search.ask()
    search.tell(fitnesses)
print(json.dumps({"seconds": (time.perf_counter() - begun) / 20}))
"""
TRAINING = """
import json, resource, tempfile, time
from pathlib import Path
import clipup
with tempfile.TemporaryDirectory() as folder:
    run = Path(folder, "run")
    clipup.train({env!r}, engine={engine!r}, run=run, seed=1, evaluate_every=0, {settings})
    records = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    clock = [json.loads(line) for line in (run / "clock.jsonl").read_text().splitlines()]
first, last = records[len(records) // 5], [record for record in records if "total_interactions" in record][-1]
seconds = {{entry["generation"]: entry["seconds"] for entry in clock if "seconds" in entry}}
elapsed = seconds[last["generation"]] - seconds[first["generation"]]
speed = (last["total_interactions"] - first["total_interactions"]) / elapsed
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({{"steps per second": speed, "megabytes": memory}}))
"""
STILL = "max_speed=1e-9, stdev_learning_rate=0.0"
"""The last bits differ between the versions, so they learn differently. A still search has episodes of equal length."""
TRAININGS = {
    "LunarLanderContinuous-v3, envpool": ("LunarLanderContinuous-v3", "envpool", f"generations=60, {STILL}"),
    "Walker2d-v4, envpool": ("Walker2d-v4", "envpool", "generations=5"),
    "Humanoid-v4, envpool": ("Humanoid-v4", "envpool", "generations=12, population=200, interactions=None"),
    "Pendulum-v1, gymnasium": ("Pendulum-v1", "gymnasium", f"generations=60, population=50, policy='linear', {STILL}"),
    "Walker2d-v4, by default": ("Walker2d-v4", "auto", "generations=5"),
    "Humanoid-v4, by default": ("Humanoid-v4", "auto", "generations=12, population=200, interactions=None"),
}


def measurements() -> dict[str, str]:
    """The programs to run, by name."""
    programs = {
        "help": START.format(words=["-m", "clipup", "--help"]),
        "import": START.format(words=["-c", "import clipup"]),
        "ask and tell": ASK_AND_TELL,
    }
    for name, (env, engine, settings) in TRAININGS.items():
        programs[name] = TRAINING.format(env=env, engine=engine, settings=settings)
    return programs


def measured(program: str, sources: Path) -> dict[str, float]:
    """Run one program on the sources; return what it printed last."""
    environment = {**os.environ, "PYTHONPATH": str(sources)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{sources}: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Measure both versions by turns, and write the medians beside the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--only", default="", help="part of a measurement's name; results of the others are kept")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    commits = {
        name: subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=sources, capture_output=True, text=True, check=True
        ).stdout.strip()
        for name, sources in (("before", arguments.before), ("after", HERE))
    }
    found: dict[str, object] = json.loads(RESULT.read_text())["measured"] if arguments.only else {}
    for name, program in measurements().items():
        if arguments.only not in name:
            continue
        turns: list[tuple[dict[str, float], dict[str, float]]] = []
        for repeat in range(arguments.repeats):
            order = (arguments.before, HERE) if repeat % 2 == 0 else (HERE, arguments.before)
            pair = {sources: measured(program, sources) for sources in order}
            turns.append((pair[arguments.before], pair[HERE]))
        for unit in turns[0][0]:
            ratios = sorted(after[unit] / before[unit] for before, after in turns)
            found[f"{name}, {unit}"] = {
                "before": statistics.median(before[unit] for before, _ in turns),
                "after": statistics.median(after[unit] for _, after in turns),
                "ratio": statistics.median(ratios),
                "spread": [ratios[0], ratios[-1]],
            }
            print(f"{name}, {unit}:", json.dumps(found[f"{name}, {unit}"]), flush=True)
    result = {
        "command": "python benchmarks/before_and_after.py --before SOURCES",
        "commits": commits,
        "measured": found,
        "repeats": arguments.repeats,
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} processors",
        "load_average": [round(value, 2) for value in os.getloadavg()],
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
