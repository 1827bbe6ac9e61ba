"""What a policy costs: a memory against hidden layers of as many parameters, and a torch module against EvoTorch's.

    python benchmarks/policy_speed.py [--rival-python PYTHON] [--seconds S] [--repeats N]

The first part measures, by turns in one run, whole generations of training on compiled tasks with ``gru:32``, with an
``mlp:64,N`` of about as many parameters, and with ``mlp:64`` for comparison; and the policies alone, without a
simulator. The second part trains the same ``torch.nn.Module`` with clipup (one thread) and with EvoTorch in one
process: `GymNE`, which runs one candidate after the other, and `VecGymNE`, which runs all of them in lockstep. PYTHON
is an interpreter that has evotorch 0.6.1 and gymnasium; without it the rival is left out. Ratios are taken within each
repeat; their median, least and largest are reported.
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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

RESULT = Path(__file__).parent / "results" / "policy_speed.json"
MEMORY, PLAIN = "gru:32", "mlp:64"
LAYERS = {"CartPole-v1": "mlp:64,49", "Walker2d-v5": "mlp:64,54"}
"""For each task hidden layers of about as many parameters as `MEMORY` has there."""
LIMITS = {"memory over layers, time per step": 1.5, "ours over evotorch": 1.0}
MODULE_ENV, HIDDEN, POPULATION, MAX_SPEED = "CartPole-v1", 32, 40, 0.15
RIVALS = ("GymNE", "VecGymNE")


def module(observation_size: int, action_size: int) -> Any:
    """Return the module that both sides train."""
    from torch import nn

    return nn.Sequential(nn.Linear(observation_size, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, action_size))


# -- the rival ---------------------------------------------------------------------------------------------------------


def serve_rival(kind: str) -> None:
    """In the rival's interpreter: generations for as many seconds as each line says, their steps and time printed."""
    import torch
    from evotorch import neuroevolution
    from evotorch.algorithms import PGPE

    torch.set_num_threads(1)
    problem = getattr(neuroevolution, kind)(MODULE_ENV, module(4, 2), observation_normalization=True)

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
    """EvoTorch in its own interpreter, with its problem class `kind`."""

    def __init__(self, python: str, kind: str) -> None:
        self._process = subprocess.Popen(
            [python, "-W", "ignore", __file__, "--serve-rival", kind],
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


def spread(ratios: Sequence[float]) -> dict[str, float]:
    """Return the median, the least and the largest of the ratios of all repeats."""
    found = {"median": statistics.median(ratios), "least": min(ratios), "largest": max(ratios)}
    return {name: round(float(value), 3) for name, value in found.items()}


class Alone:
    """A policy in machine code, without a simulator."""

    def __init__(self, text: str, sizes: tuple[int, int]) -> None:
        from clipup.policies import parse_policy
        from clipup.policies.act import Actions, Actor

        network = parse_policy(text, *sizes)
        self._actor = Actor(network, None, Actions.discrete(sizes[1]), compiled=True)
        rows = np.random.default_rng(0).normal(size=(512, network.parameter_count)).astype(np.float32)
        self._arranged, self._state = self._actor.arrange(rows), self._actor.initial_state(512)
        self._observations = np.random.default_rng(1).normal(size=(512, sizes[0]))
        self.nanoseconds()

    def nanoseconds(self) -> float:
        """Return the nanoseconds of one step."""
        begin = time.perf_counter()
        for _ in range(20):
            self._actor.act(self._arranged, self._observations, self._state)
        return 1e9 * (time.perf_counter() - begin) / 20 / 512


def memory_against_layers(env: str, seconds: float, repeats: int) -> dict[str, object]:
    """Measure whole generations, and steps without a simulator, of all policies by turns."""
    from clipup.engines import Task
    from clipup.training.bench import Contest

    policies = (MEMORY, LAYERS[env], PLAIN)
    # Short episodes: what is compared is the time of a step, not how long an episode lasts.
    task = Task(env, engine="compiled", max_episode_steps=100)
    contests = {text: Contest(task, network=text, threads=1) for text in policies}
    engine = contests[MEMORY].engine
    alone = {text: Alone(text, (engine.observation_size, engine.actions.size)) for text in policies}
    for contest in contests.values():
        contest.ours(min(1.0, seconds))
    times: dict[str, list[float]] = {text: [] for text in policies}
    bare: dict[str, list[float]] = {text: [] for text in policies}
    for _ in range(repeats):
        for text in policies:
            times[text].append(1e9 / contests[text].ours(seconds))
        for text in policies:
            bare[text].append(statistics.median(alone[text].nanoseconds() for _ in range(5)))
    for contest in contests.values():
        contest.close()
    return {
        "parameters": {text: contest.network.parameter_count for text, contest in contests.items()},
        "steps of an episode": {text: round(contest.steps_of_an_episode, 1) for text, contest in contests.items()},
        "nanoseconds per step": {text: round(statistics.median(found)) for text, found in times.items()},
        "policy alone, nanoseconds per step": {text: round(statistics.median(found)) for text, found in bare.items()},
        "memory over layers, time per step": spread(np.divide(times[MEMORY], times[LAYERS[env]])),
        "memory over mlp:64, time per step": spread(np.divide(times[MEMORY], times[PLAIN])),
        "memory over layers, policies alone": spread(np.divide(bare[MEMORY], bare[LAYERS[env]])),
    }


def module_against_rival(python: str | None, seconds: float, repeats: int) -> dict[str, object]:
    """Measure whole generations with the same torch module on our engines and in EvoTorch, by turns."""
    import torch

    from clipup.engines import Task
    from clipup.training.bench import Contest

    torch.set_num_threads(1)
    contests = {
        engine: Contest(Task(MODULE_ENV, engine=engine), network=module(4, 2), population_size=POPULATION, threads=1)
        for engine in ("envpool", "gymnasium", "compiled")
    }
    rivals = {kind: Rival(python, kind) for kind in RIVALS} if python else {}
    sides: dict[str, Callable[[float], float]] = {engine: contest.ours for engine, contest in contests.items()}
    sides |= {kind: rival.speed for kind, rival in rivals.items()}
    for speed in sides.values():
        speed(min(1.0, seconds))
    speeds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, speed in sides.items():
            speeds[name].append(speed(seconds))
    for one in (*contests.values(), *rivals.values()):
        one.close()
    return {
        "environment": MODULE_ENV,
        "module": f"Linear(4, {HIDDEN}), Tanh, Linear({HIDDEN}, 2)",
        "population": POPULATION,
        "steps per second": {name: round(statistics.median(found)) for name, found in speeds.items()},
        "ours over evotorch": {
            engine: {kind: spread(np.divide(speeds[engine], speeds[kind])) for kind in rivals} for engine in contests
        },
    }


def main() -> None:
    """Measure, print and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rival-python", metavar="PYTHON")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULT)
    parser.add_argument("--serve-rival", choices=RIVALS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve_rival:
        serve_rival(given.serve_rival)
        return
    found = {env: memory_against_layers(env, given.seconds, given.repeats) for env in LAYERS}
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
