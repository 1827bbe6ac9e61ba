"""Two workers beside one, Ray beside processes, and EvoTorch's actors beside both, on Python environments.

    python benchmarks/executors_speed.py --rival-python PYTHON

PYTHON is an interpreter that has evotorch (and pybullet-envs-gymnasium); without it the rival is left out. On Bullet's
Humanoid and on Gymnasium's LunarLanderContinuous-v3, generations of one fixed search are evaluated by turns: in this
process, by one and by two worker processes, by two Ray actors, and by EvoTorch's GymNE with two actors on the same
environment, episode limit, kind of policy and population. Beside them, two single workers at once, each with a search
of its own: what two processors of this machine give when nothing is shared.

Ratios are taken within each round and their medians reported. The wall clock needs a quiet machine. The estimate beside
it does not: the share of their time that workers were at work (both counted on the wall, so a busy machine stretches
both), times what a step costs one process over what it costs here, in processor seconds of everybody involved.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parent / "results" / "executors_speed.json"
LIMITS = {"two processes over one": 1.8, "Ray over processes": 0.9, "Ray over EvoTorch": 1.5}


@dataclass(frozen=True)
class Work:
    """An environment, and how much of it."""

    env: str
    policy: str
    rival_policy: str
    population: int
    max_episode_steps: int


WORKS = {
    "LunarLanderContinuous-v3": Work("LunarLanderContinuous-v3", "linear", "Linear(obs_length, act_length)", 200, 1000),
    "HumanoidBulletEnv-v0": Work(
        "pybullet_envs_gymnasium:HumanoidBulletEnv-v0",
        "mlp:64",
        "Linear(obs_length, 64) >> Tanh() >> Linear(64, act_length)",
        120,
        200,
    ),
}


# -- the rival, in its own interpreter ---------------------------------------------------------------------------------


def serve_rival(name: str) -> None:
    """One generation of EvoTorch for each line read; prints its interactions and seconds."""
    import logging

    import evotorch
    import gymnasium
    from evotorch.algorithms import PGPE
    from evotorch.neuroevolution import GymNE

    logging.disable(logging.INFO)
    work = WORKS[name]

    def make(**options: object) -> Any:
        return gymnasium.make(work.env, max_episode_steps=work.max_episode_steps, **options)

    problem = GymNE(make, work.rival_policy, observation_normalization=True, num_actors=2)
    search = PGPE(
        problem, popsize=work.population, center_learning_rate=0.05, stdev_learning_rate=0.1, radius_init=1.5,
        optimizer="clipup", optimizer_config={"max_speed": 0.1},
    )  # fmt: skip
    search.step()
    print(json.dumps({"evotorch": evotorch.__version__}), flush=True)
    for _ in sys.stdin:
        before, began = problem.status.get("total_interaction_count", 0), time.perf_counter()
        search.step()
        print(search.status["total_interaction_count"] - before, time.perf_counter() - began, flush=True)


class Rival:
    """EvoTorch, waiting for its turn."""

    def __init__(self, python: str, name: str) -> None:
        self._process = subprocess.Popen(
            [python, __file__, "--serve-rival", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, bufsize=1, env={**os.environ, "RAY_ADDRESS": "local"},
        )  # fmt: skip
        self.versions = json.loads(self._line("{"))

    def _line(self, start: str = "") -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() and (line.startswith(start) if start else line[0].isdigit()):
                return line
        raise SystemExit("the rival ended early")

    def measure(self) -> dict[str, float]:
        """One generation."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        steps, wall = map(float, self._line().split())
        return {"steps": steps, "wall": wall}

    def close(self) -> None:
        """Let it go."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


# -- ourselves ---------------------------------------------------------------------------------------------------------


class Place:
    """An executor, and the processor time of all who work for it."""

    def __init__(self, work: Work, workers: int, *, where: str) -> None:
        from clipup import PGPE
        from clipup.engines import Task
        from clipup.executors.distributed import DistributedExecutor
        from clipup.executors.inline import InlineExecutor
        from clipup.executors.jobs import Setup
        from clipup.executors.processes import ProcessTransport
        from clipup.executors.ray import RayTransport
        from clipup.policies import Normalizer

        task = Task(work.env, engine="gymnasium", max_episode_steps=work.max_episode_steps)
        setup = Setup(task, work.policy, collect_moments=True)
        self.workers, self.where, self.busy = workers, where, 0.0
        self.executor: Any
        if where == "inline":
            self.executor = InlineExecutor(setup, threads=1)
        else:
            transport = (
                ProcessTransport(setup, workers) if where == "processes" else RayTransport(setup, workers=workers)
            )
            self._listen(transport)
            self.executor = DistributedExecutor(transport, task)
        network = self.executor.description.network
        self.search = PGPE(dimension=network.parameter_count, population_size=work.population, max_speed=0.1, seed=1)
        self.normalizer = Normalizer(network.observation_size)

    def _listen(self, transport: Any) -> None:
        from clipup.executors.scheduler import Finished

        wait = transport.wait

        def listening(seconds: float) -> Sequence[object]:
            events = wait(seconds)
            self.busy += sum(event.seconds for event in events if isinstance(event, Finished))
            return events

        transport.wait = listening

    def measure(self) -> dict[str, float]:
        """One generation: evaluation, update, statistics."""
        busy, processor, began = self.busy, self._processor(), time.perf_counter()
        outcomes = self.executor.evaluate(self.search.batch(), self.normalizer.statistics())
        self.normalizer.merge(outcomes.moments)
        self.search.tell(outcomes.fitness, sum_blocks=self.executor.sum_blocks)
        wall = time.perf_counter() - began
        share = (self.busy - busy) / (self.workers * wall) if self.busy > busy else 1.0
        return {
            "steps": float(outcomes.interactions.sum()),
            "wall": wall,
            "share": share,
            "processor": self._processor() - processor,
        }

    def _processor(self) -> float:
        import psutil

        own = psutil.Process()
        marks = {"inline": (), "processes": ("spawn_main",), "ray": ("ray::RayWorker", "raylet", "gcs_server")}
        family = [own]
        for child in own.children(recursive=True):
            try:
                if any(mark in " ".join(child.cmdline()) for mark in marks[self.where]):
                    family.append(child)
            except psutil.NoSuchProcess:
                continue
        return sum(sum(process.cpu_times()[:2]) for process in family)


def side_by_side(places: Sequence[Place]) -> dict[str, float]:
    """One generation of each of several unrelated places, at the same time."""
    with ThreadPoolExecutor(len(places)) as pool:
        began = time.perf_counter()
        rows = list(pool.map(Place.measure, places))
        return {"steps": sum(row["steps"] for row in rows), "wall": time.perf_counter() - began}


def compare(name: str, rounds: int, rival_python: str | None) -> dict[str, object]:
    """Measure all places by turns, and return medians and ratios."""
    work = WORKS[name]
    rival = Rival(rival_python, name) if rival_python else None
    makers = {
        "this process": lambda: Place(work, 1, where="inline"),
        "one process": lambda: Place(work, 1, where="processes"),
        "two processes": lambda: Place(work, 2, where="processes"),
        "two actors": lambda: Place(work, 2, where="ray"),
    }
    places = {key: make() for key, make in makers.items()}
    apart = [Place(work, 1, where="processes") for _ in range(2)]
    for place in [*places.values(), *apart]:
        place.measure()
    found: dict[str, list[dict[str, float]]] = {
        key: [] for key in [*places, "two apart", *(["EvoTorch"] if rival else [])]
    }
    for number in range(rounds):
        for key, place in places.items():
            found[key].append(place.measure())
        found["two apart"].append(side_by_side(apart))
        if rival:
            found["EvoTorch"].append(rival.measure())
        print(
            f"{name} {number + 1}/{rounds}:", {key: round(_rate(rows[-1])) for key, rows in found.items()}, flush=True
        )
    versions = rival.versions if rival else {}
    for place in [*places.values(), *apart]:
        place.executor.close()
    if rival:
        rival.close()
    ratios = {
        "two processes over one": _ratio(found, "two processes", "one process"),
        "two processes over this process": _ratio(found, "two processes", "this process"),
        "two apart over one": _ratio(found, "two apart", "one process"),
        "Ray over processes": _ratio(found, "two actors", "two processes"),
    }
    if rival:
        ratios["Ray over EvoTorch"] = _ratio(found, "two actors", "EvoTorch")
        ratios["processes over EvoTorch"] = _ratio(found, "two processes", "EvoTorch")
    estimates = {
        "two processes over one": _estimate(found, "two processes", "one process", places),
        "Ray over processes": _estimate(found, "two actors", "two processes", places),
    }
    return {
        "steps per second": {key: statistics.median(map(_rate, rows)) for key, rows in found.items()},
        "share of time at work": {
            key: statistics.median(row["share"] for row in rows) for key, rows in found.items() if key in places
        },
        "ratios, wall clock": ratios,
        "rounds": {key: [round(_rate(row), 1) for row in rows] for key, rows in found.items()},
        "ratios, estimated": estimates,
        **versions,
    }


def _rate(row: dict[str, float]) -> float:
    return row["steps"] / row["wall"]


def _ratio(found: dict[str, list[dict[str, float]]], one: str, other: str) -> float:
    return statistics.median(_rate(a) / _rate(b) for a, b in zip(found[one], found[other], strict=True))


def _estimate(found: dict[str, list[dict[str, float]]], one: str, other: str, places: dict[str, Place]) -> float:
    def worth(key: str, row: dict[str, float]) -> float:
        return places[key].workers * row["share"] * row["steps"] / row["processor"]

    return statistics.median(worth(one, a) / worth(other, b) for a, b in zip(found[one], found[other], strict=True))


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rival-python", help="interpreter that has evotorch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=WORKS)
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--serve-rival", choices=WORKS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    # Ray lowers the priority of its workers, which on a machine that does anything else would be all that is measured.
    os.environ.setdefault("RAY_worker_niceness", "0")
    if arguments.serve_rival:
        serve_rival(arguments.serve_rival)
        return
    import gymnasium
    import numpy as np
    import ray

    names = [arguments.only] if arguments.only else list(WORKS)
    load = os.getloadavg()[0]
    results = {name: compare(name, arguments.rounds, arguments.rival_python) for name in names}
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    report = {
        "command": f"python benchmarks/executors_speed.py --rounds {arguments.rounds} --rival-python PYTHON",
        "limits": LIMITS,
        "results": results,
        "load when it began": load,
        "versions": {
            "python": platform.python_version(), "numpy": np.__version__, "gymnasium": gymnasium.__version__,
            "ray": ray.__version__,
        },
        "hardware": {"machine": platform.machine(), "processors": os.cpu_count()},
        "commit": commit,
    }  # fmt: skip
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
