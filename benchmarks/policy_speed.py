"""What a policy costs: a memory against hidden layers of as many parameters, and a torch module against EvoTorch's.

    python benchmarks/policy_speed.py [--rival-python PYTHON] [--seconds S] [--repeats N]

The first part measures, by turns in one run, whole generations of training on compiled tasks with ``gru:32`` and with
an ``mlp`` of about as many parameters; and the policies alone, without a simulator. The second part trains the same
``torch.nn.Module`` with clipup (on EnvPool and on Gymnasium, one thread or process) and with EvoTorch's `GymNE` in one
process. PYTHON is an interpreter that has evotorch 0.6.1 and gymnasium; without it the rival is left out. Ratios are
taken within each repeat, and their medians reported.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

RESULT = Path(__file__).parent / "results" / "policy_speed.json"
PAIRS = {"CartPole-v1": ("gru:32", "mlp:64,48"), "Walker2d-v5": ("gru:32", "mlp:64,48")}
"""For each task a policy with a memory, and hidden layers of about as many parameters."""
LIMITS = {"memory over layers, time per step": 1.5, "ours over evotorch": 1.0}
MODULE_ENV, HIDDEN, POPULATION, MAX_SPEED = "CartPole-v1", 32, 40, 0.15


def module(observation_size: int, action_size: int) -> Any:
    """Return the module that both sides train."""
    from torch import nn

    return nn.Sequential(nn.Linear(observation_size, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, action_size))


# -- the rival ---------------------------------------------------------------------------------------------------------


def serve_rival() -> None:
    """In the rival's interpreter: generations for as many seconds as each line says, their steps and time printed."""
    import torch
    from evotorch.algorithms import PGPE
    from evotorch.neuroevolution import GymNE

    torch.set_num_threads(1)
    problem = GymNE(MODULE_ENV, module(4, 2), observation_normalization=True)

    def make() -> Any:
        return PGPE(
            problem,
            popsize=POPULATION,
            center_learning_rate=MAX_SPEED / 2,
            stdev_learning_rate=0.1,
            optimizer="clipup",
            optimizer_config={"max_speed": MAX_SPEED, "momentum": 0.9},
            radius_init=15 * MAX_SPEED,
        )

    make().step()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        searcher, before, begin = make(), problem.status["total_interaction_count"], time.perf_counter()
        while time.perf_counter() - begin < float(line):
            searcher.step()
        elapsed = time.perf_counter() - begin
        steps = int(problem.status["total_interaction_count"] - before)
        print(json.dumps({"steps": steps, "seconds": elapsed}), flush=True)


class Rival:
    """EvoTorch in its own interpreter."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, "-W", "ignore", __file__, "--serve-rival"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self._read()

    def _read(self) -> dict[str, float]:
        for line in self._process.stdout or ():
            if line.startswith("{"):
                return json.loads(line)
        raise RuntimeError(f"the rival ended with exit code {self._process.wait()}")

    def speed(self, seconds: float) -> float:
        """Return steps per second over at least `seconds`."""
        if self._process.stdin is not None:
            self._process.stdin.write(f"{seconds}\n")
            self._process.stdin.flush()
        answer = self._read()
        return answer["steps"] / answer["seconds"]

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(60)


# -- ours --------------------------------------------------------------------------------------------------------------


def alone(text: str, sizes: tuple[int, int]) -> float:
    """Return the nanoseconds of one step of a policy in machine code, without a simulator."""
    from clipup.policies import parse_policy
    from clipup.policies.act import Actions, Actor

    network = parse_policy(text, *sizes)
    actor = Actor(network, None, Actions.discrete(sizes[1]), compiled=True)
    rows = np.random.default_rng(0).normal(size=(512, network.parameter_count)).astype(np.float32)
    arranged, state = actor.arrange(rows), actor.initial_state(512)
    observations = np.random.default_rng(1).normal(size=(512, sizes[0]))
    actor.act(arranged, observations, state)
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        for _ in range(20):
            actor.act(arranged, observations, state)
        times.append((time.perf_counter() - begin) / 20 / 512)
    return 1e9 * statistics.median(times)


def memory_against_layers(env: str, pair: tuple[str, str], seconds: float, repeats: int) -> dict[str, object]:
    """Measure whole generations with both policies by turns."""
    from clipup.engines import Task
    from clipup.training.bench import Contest

    # Episodes of one length: what is compared is the time of a step, not how long an episode lasts.
    contests = [Contest(Task(env, engine="compiled", max_episode_steps=100), network=text, threads=1) for text in pair]
    speeds: list[list[float]] = [[], []]
    for contest in contests:
        contest.ours(1.0)
    for _ in range(repeats):
        for found, contest in zip(speeds, contests, strict=True):
            found.append(contest.ours(seconds))
    ratios = [layers / memory for memory, layers in zip(*speeds, strict=True)]
    sizes = contests[0].engine.observation_size, contests[0].engine.actions.size
    result = {
        "policies": {text: contest.network.parameter_count for text, contest in zip(pair, contests, strict=True)},
        "steps per second": {text: round(statistics.median(found)) for text, found in zip(pair, speeds, strict=True)},
        "memory over layers, time per step": round(statistics.median(ratios), 3),
        "policy alone, nanoseconds per step": {text: round(alone(text, sizes)) for text in pair},
    }
    for contest in contests:
        contest.close()
    return result


def module_against_rival(python: str | None, seconds: float, repeats: int) -> dict[str, object]:
    """Measure whole generations with the same torch module on our engines and in EvoTorch, by turns."""
    import torch

    from clipup.engines import Task
    from clipup.training.bench import Contest

    torch.set_num_threads(1)
    engines = ("envpool", "gymnasium", "compiled")
    contests = {
        engine: Contest(Task(MODULE_ENV, engine=engine), network=module(4, 2), population_size=POPULATION, threads=1)
        for engine in engines
    }
    rival = Rival(python) if python else None
    speeds: dict[str, list[float]] = {name: [] for name in (*engines, *(["evotorch"] if rival else []))}
    for _ in range(repeats):
        for engine in engines:
            speeds[engine].append(contests[engine].ours(seconds))
        if rival:
            speeds["evotorch"].append(rival.speed(seconds))
    result: dict[str, object] = {
        "environment": MODULE_ENV,
        "steps per second": {name: round(statistics.median(found)) for name, found in speeds.items()},
    }
    if rival:
        rival.close()
        result["ours over evotorch"] = {
            engine: round(statistics.median(np.divide(speeds[engine], speeds["evotorch"])), 2) for engine in engines
        }
    for contest in contests.values():
        contest.close()
    return result


def main() -> None:
    """Measure, print and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rival-python", metavar="PYTHON")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULT)
    parser.add_argument("--serve-rival", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve_rival:
        serve_rival()
        return
    found = {env: memory_against_layers(env, pair, given.seconds, given.repeats) for env, pair in PAIRS.items()}
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    versions = {name: importlib.metadata.version(name) for name in ("numpy", "numba", "mujoco", "envpool", "torch")}
    result = {
        "command": "python benchmarks/policy_speed.py" + (" --rival-python PYTHON" if given.rival_python else ""),
        "commit": commit.stdout.strip(),
        "processors": os.cpu_count(),
        "machine": platform.machine(),
        "versions": versions,
        "limits": LIMITS,
        "memory": found,
        "module": module_against_rival(given.rival_python, given.seconds, given.repeats),
    }
    text = json.dumps(result, indent=2)
    print(text)
    given.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
