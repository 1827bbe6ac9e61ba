"""Whole training generations on the compiled engine, beside four others, by turns in one run.

    python benchmarks/compiled_speed.py --rival-python PYTHON [--only ENV] [--seconds S] [--repeats N]

PYTHON is an interpreter that has evotorch 0.6.1 and ray; without it the rival is left out. Measured are:

- *compiled*: generations of training on the compiled engine (sampling, starts, episodes, moments, ranking, updating);
- *bare physics*: the compiled engine's simulators alone, over recorded actions of such episodes, on as many threads;
- *envpool*: generations of training on our EnvPool engine;
- *envpool alone*: EnvPool with fixed policies, every lane stepping at every round;
- *evotorch*: generations of EvoTorch's `GymNE` with two Ray actors;
- *one thread*: generations of training on the compiled engine with one thread;
- *two runs*: two such processes with one thread each at the same time, their speeds added. It is what this machine's
  second processor is worth.

*First* generations start from a center of zeros. *Late* ones start from a good policy (`benchmarks/policies`) with its
observation statistics and a small standard deviation. EnvPool's Humanoid-v4 has zeros in its last 84 observations,
where Gymnasium's has contact forces. The good policy comes from EnvPool, so its weights for observations that never
varied are set to zero: it then acts alike in all simulators.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from rollout_speed import Case, Rival, Start, good_policy, processor, small_stdev, versions

RESULT = Path(__file__).parent / "results" / "compiled_speed.json"
TARGETS = {  # over our EnvPool engine, over EvoTorch, of bare physics
    "Humanoid-v4": (1.35, 2.3, 0.95),
    "Walker2d-v4": (1.45, 3.0, 0.93),
    "HalfCheetah-v5": (1.3, None, 0.93),
    "Hopper-v5": (1.3, None, 0.93),
    "Ant-v5": (1.3, None, 0.93),
    "CartPole-v1": (10.0, 100.0, None),
    "Pendulum-v1": (10.0, 100.0, None),
}
CASES = [
    Case("Humanoid-v4", "linear-bias", 200, 0.15, True, alive_bonus=5.0),
    Case("Walker2d-v4", "linear-bias", 100, 0.015, True, alive_bonus=1.0),
    Case("HalfCheetah-v5", "linear-bias", 100, 0.05, True),
    Case("Hopper-v5", "linear-bias", 100, 0.05, True, alive_bonus=1.0),
    Case("Ant-v5", "linear-bias", 100, 0.05, True, alive_bonus=1.0),
    Case("CartPole-v1", "linear", 200, 0.05, False),
    Case("Pendulum-v1", "linear", 200, 0.05, False),
]
UNSEEN_STDEV = 1e6
LATE_POPULATIONS = {"Humanoid-v4": 40, "Walker2d-v4": 100}  # an episode then has a thousand steps
SIMULATED = ("CartPole-v1", "Pendulum-v1")  # no physics engine, so no bare physics either


def without_dead_inputs(start: Start, outputs: int) -> Start:
    """Return the linear policy with zero weights where an observation never varied.

    Their statistics get a large standard deviation: the search disturbs these weights too.
    """
    if start.mean is None or start.stdev is None:
        return start
    center = np.array(start.center, np.float32)
    inputs = len(start.mean)
    weights = center[: inputs * outputs].reshape(outputs, inputs)
    dead = (np.array(start.mean) == 0.0) & (np.array(start.stdev) <= 0.1)
    weights[:, dead] = 0.0
    stdev = np.where(dead, UNSEEN_STDEV, start.stdev)
    return dataclasses.replace(start, center=center.tolist(), stdev=stdev.tolist())


def contest(case: Case, late: Start | None, engine: str, threads: int | None = None) -> Any:
    """Return generations of training on one engine, ready to be measured."""
    from clipup import PGPE
    from clipup.engines import Task
    from clipup.policies import Statistics
    from clipup.training.bench import Contest

    def search(dimension: int) -> PGPE:
        if late is None:
            return PGPE(dimension=dimension, population_size=case.population_size, max_speed=case.max_speed, seed=1)
        center = np.array(late.center, np.float32)
        still = {"max_speed": 1e-9, "stdev": small_stdev(center), "stdev_learning_rate": 0.0}
        return PGPE(center=center, population_size=case.population_size, seed=1, **still)

    known = None
    if late is not None and late.mean is not None and late.stdev is not None:
        known = Statistics(np.array(late.mean), np.array(late.stdev))
    return Contest(
        Task(case.env, reward_offset=-case.alive_bonus, engine=engine),
        network=case.network,
        population_size=case.population_size,
        threads=threads,
        search=search,
        normalize=case.normalize,
        statistics=known,
    )


def serve_one_thread(case: Case, late: Start | None) -> None:
    """Train with one thread for as many seconds as each line says; print the speed."""
    ours = contest(case, late, "compiled", threads=1)
    ours.ours(0.5)
    print("{}", flush=True)
    for line in sys.stdin:
        print(json.dumps({"speed": ours.ours(float(line))}), flush=True)
    ours.close()


class OneThread:
    """A process that trains with one thread when it is told to."""

    def __init__(self, case: Case, late: Start | None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve-one-thread"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.begin(json.dumps({"case": dataclasses.asdict(case), "late": late and dataclasses.asdict(late)}))
        self.end()

    def begin(self, line: str) -> None:
        """Send a line."""
        if self._process.stdin is not None:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def end(self) -> float:
        """Wait for the answer."""
        for line in self._process.stdout or ():
            if line.startswith("{"):
                return json.loads(line).get("speed", 0.0)
        raise RuntimeError(f"a process with one thread ended with exit code {self._process.wait()}")

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(60)


def measure(case: Case, late: Start | None, python: str | None, seconds: float, repeats: int) -> dict[str, Any]:
    """Return the speeds of all, by turns."""
    compiled, envpool = contest(case, late, "compiled"), contest(case, late, "envpool")
    compiled.ours(0.2), envpool.ours(0.2)
    rival = Rival(python, case, late) if python and TARGETS[case.env][1] else None
    single = [OneThread(case, late), OneThread(case, late)]
    rounds: list[dict[str, float]] = []
    try:
        for repeat in range(repeats + 1):
            turn = {"compiled": compiled.ours(seconds)}
            turn["steps of an episode"] = compiled.steps_of_an_episode
            if case.env not in SIMULATED:
                turn["bare physics"] = compiled.simulator(seconds)
            turn["envpool"] = envpool.ours(seconds)
            turn["envpool alone"] = envpool.simulator(seconds)
            single[0].begin(str(seconds))
            turn["one thread"] = single[0].end()
            for process in single:
                process.begin(str(seconds))
            turn["two runs"] = sum(process.end() for process in single)
            if rival is not None:
                turn["evotorch"] = rival.speed(seconds)
                turn["steps of an episode, evotorch"] = rival.steps_of_an_episode
            if repeat:  # the first warms up
                rounds.append(turn)
            print(f"  {case.env}", *(f"{name} {value:.0f}" for name, value in turn.items()), flush=True)
    finally:
        for part in (compiled, envpool, rival, *single):
            if part is not None:
                part.close()
    found: dict[str, Any] = {name: statistics.median(turn[name] for turn in rounds) for name in rounds[0]}
    for name in [name for name in rounds[0] if name != "compiled" and not name.startswith("steps")]:
        ratios = sorted(turn["compiled"] / turn[name] for turn in rounds)
        found[f"over {name}"] = statistics.median(ratios)
        found[f"over {name}, spread"] = [ratios[0], ratios[-1]]
    found["two runs over one"] = statistics.median(turn["two runs"] / turn["one thread"] for turn in rounds)
    return {**found, "rounds": rounds}


def table(results: dict[str, Any]) -> list[str]:
    """Return the lines of the table in docs/engines.md."""
    lines = [
        "| | over our EnvPool engine | over EvoTorch | of bare physics | two threads over one (two runs) |",
        "|---|---|---|---|---|",
    ]
    for env, phases in results["tasks"].items():
        for phase, found in phases.items():
            columns = ("over envpool", "over evotorch", "over bare physics")
            cells = [
                f"{found[name]:.{2 if found[name] < 10 else 0}f} ({target:g})" if name in found and target else ""
                for name, target in zip(columns, results["targets"][env], strict=True)
            ]
            cells.append(f"{found['over one thread']:.2f} ({found['two runs over one']:.2f})")
            words = "first generations" if phase == "first" else "with a good policy"
            lines.append(f"| {env}, {words} | {' | '.join(cells)} |".replace("|  |", "| |"))
    return lines


def main() -> None:
    """Measure what was asked for, and write the result beside the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rival-python")
    parser.add_argument("--only", help="part of an environment's name; results of the others are kept")
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULT)
    parser.add_argument("--table", action="store_true", help="print the committed result as a table, measure nothing")
    parser.add_argument("--serve-one-thread", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve_one_thread:
        config = json.loads(sys.stdin.readline())
        serve_one_thread(Case(**config["case"]), Start(**config["late"]) if config["late"] else None)
        return
    if arguments.table:
        print("\n".join(table(json.loads(arguments.output.read_text()))))
        return
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    ).stdout.strip()
    conditions = {
        "versions": versions(arguments.rival_python),
        "hardware": {"processor": processor(), "processors": len(os.sched_getaffinity(0))},
        "commit": commit,
        "seconds": arguments.seconds,
        "repeats": arguments.repeats,
    }
    kept = json.loads(arguments.output.read_text()) if arguments.only and arguments.output.exists() else {}
    results: dict[str, Any] = {"targets": TARGETS, "tasks": kept.get("tasks", {})}
    for case in CASES:
        if arguments.only and arguments.only not in case.env:
            continue
        policy = good_policy(case)
        outputs = {"Humanoid-v4": 17, "Walker2d-v4": 6}
        starts = {"first": None}
        if policy is not None and case.env in outputs:
            starts["late"] = without_dead_inputs(policy, outputs[case.env])
        for phase, start in starts.items():
            load = os.getloadavg()[0]
            size = case.population_size if start is None else LATE_POPULATIONS[case.env]
            measured = dataclasses.replace(case, population_size=size)
            found = measure(measured, start, arguments.rival_python, arguments.seconds, arguments.repeats)
            results["tasks"].setdefault(case.env, {})[phase] = {**found, "load before": load, **conditions}
            ratios = {name: value for name, value in found.items() if name.startswith("over") and "spread" not in name}
            print(f"{case.env}, {phase}:", *(f"{name} {value:.2f}" for name, value in ratios.items()), flush=True)
            arguments.output.parent.mkdir(exist_ok=True)
            arguments.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
