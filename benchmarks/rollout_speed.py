"""Whole training generations: ours, EvoTorch's `GymNE` with 2 Ray actors, and two yardsticks, by turns in one run.

    python benchmarks/rollout_speed.py --rival-python PYTHON [--only ENV] [--seconds S] [--repeats N]

PYTHON is an interpreter that has evotorch 0.6.1 and ray; without it the rival is left out. What counts as ours and as
the rival's is everything between two updates: sampling, making and resetting environments, stepping, observation
statistics, ranking, updating. Bullet's Humanoid runs in one process on both sides.

The yardsticks: *the simulator alone* is `clipup.training.bench`, where every lane steps at every round (one that ends
is reset and goes on), actions from fixed policies, no search. *The same calls* is what our generations asked of
EnvPool, written down and asked again: the same resets and steps with the same actions, nothing else. What lies between
the two is the shape of the work (the last long episodes of a generation leave lanes idle; candidates that live long
cost more physics); what lies between the second and ours is our own overhead.

*First* generations start from a center of zeros, with the paper's settings. *Late* ones start from a good policy (from
`benchmarks/policies/ENV.safetensors`, written by `clipup train`; left out where there is none) with its observation
statistics, as if of 100,000 observations, and with a small standard deviation.
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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
RESULT = HERE / "results" / "rollout_speed.json"
TARGETS = {  # times EvoTorch, share of the simulator alone
    "LunarLanderContinuous-v3": (12.0, 0.85),
    "Walker2d-v4": (3.0, 0.93),
    "Humanoid-v4": (1.9, 0.93),
    "pybullet_envs_gymnasium:HumanoidBulletEnv-v0": (1.0, None),
}

RATIOS = ("ours over evotorch", "ours over simulator", "ours over same calls")


@dataclass(frozen=True)
class Case:
    """The paper's settings for one task."""

    env: str
    network: str
    population_size: int
    max_speed: float
    normalize: bool
    alive_bonus: float = 0.0
    max_episode_steps: int | None = None
    actors: int = 2

    @property
    def rival_network(self) -> str:
        """The same network in EvoTorch's words."""
        if self.network.startswith("mlp:"):
            size = self.network.removeprefix("mlp:")
            return f"Linear(obs_length, {size}) >> Tanh() >> Linear({size}, act_length)"
        return f"Linear(obs_length, act_length, bias={self.network == 'linear-bias'})"


CASES = [
    Case("LunarLanderContinuous-v3", "linear", 200, 0.3, False),
    Case("Walker2d-v4", "linear-bias", 100, 0.015, True, alive_bonus=1.0),
    Case("Humanoid-v4", "linear-bias", 200, 0.15, True, alive_bonus=5.0),
    Case("pybullet_envs_gymnasium:HumanoidBulletEnv-v0", "mlp:64", 40, 0.15, True, max_episode_steps=200, actors=1),
]


@dataclass(frozen=True)
class Start:
    """A good policy: its parameters, and the observations' mean and standard deviation where it normalizes them."""

    center: list[float]
    mean: list[float] | None = None
    stdev: list[float] | None = None


def good_policy(case: Case) -> Start | None:
    """Return where late generations start, or None."""
    from clipup.export.policy import load_policy

    path = HERE / "policies" / f"{case.env.rpartition(':')[2]}.safetensors"
    if not path.exists():
        return None
    policy = load_policy(path)
    if policy.statistics is None:
        return Start(policy.parameters.tolist())
    return Start(policy.parameters.tolist(), policy.statistics.mean.tolist(), policy.statistics.stdev.tolist())


def small_stdev(center: np.ndarray) -> np.ndarray:
    """Return a standard deviation that leaves a good policy good."""
    return (0.01 * np.abs(center) + 1e-4).astype(np.float32)


# -- the rival ---------------------------------------------------------------------------------------------------------


def serve_rival(case: Case, late: Start | None) -> None:
    """In the rival's interpreter: generations for as many seconds as each line says, their steps and time printed."""
    import torch
    from evotorch.algorithms import PGPE
    from evotorch.neuroevolution import GymNE

    torch.set_num_threads(1)
    env_config = {}
    problem = GymNE(
        case.env,
        case.rival_network,
        env_config=env_config,
        observation_normalization=case.normalize,
        decrease_rewards_by=case.alive_bonus or None,
        episode_length=case.max_episode_steps,
        num_actors=case.actors if case.actors > 1 else None,
    )
    start = torch.zeros(problem.solution_length) if late is None else torch.tensor(late.center)
    spread: dict[str, Any] = {"radius_init": 15 * case.max_speed}
    if late is not None:
        spread = {"stdev_init": torch.tensor(small_stdev(np.array(late.center, np.float32)))}

    def make() -> PGPE:
        if late is not None and late.mean is not None:
            problem.set_observation_stats(rival_statistics(late))
        return PGPE(
            problem,
            popsize=case.population_size,
            center_learning_rate=case.max_speed / 2,
            stdev_learning_rate=0.1 if late is None else 0.0,
            optimizer="clipup",
            optimizer_config={"max_speed": case.max_speed if late is None else 1e-9, "momentum": 0.9},
            center_init=start,
            **spread,
        )

    make().step()  # starts the actors
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        seconds = float(line)
        searcher = make()
        before = problem.status["total_interaction_count"]
        begin, generations = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            searcher.step()
            generations += 1
        elapsed = time.perf_counter() - begin
        steps = int(problem.status["total_interaction_count"] - before)
        length = steps / (generations * case.population_size)
        print(json.dumps({"steps": steps, "seconds": elapsed, "steps of an episode": length}), flush=True)
    problem.kill_actors()


def rival_statistics(late: Start) -> Any:
    """Return observation statistics as EvoTorch keeps them."""
    import torch
    from evotorch.neuroevolution.net.runningnorm import RunningNorm
    from evotorch.neuroevolution.net.runningstat import RunningStat

    mean, stdev = torch.tensor(late.mean), torch.tensor(late.stdev)
    norm = RunningNorm(shape=len(mean), dtype="float32")
    norm._count = 10_000_000  # as clipup.training.bench
    norm._sum, norm._sum_of_squares = norm._count * mean, norm._count * (stdev**2 + mean**2)
    statistics = RunningStat()
    statistics._rn = norm
    return statistics


class Rival:
    """EvoTorch in its own interpreter."""

    def __init__(self, python: str, case: Case, late: Start | None) -> None:
        config = {"case": asdict(case), "late": None if late is None else asdict(late)}
        environment = {**os.environ, "RAY_DEDUP_LOGS": "0", "OMP_NUM_THREADS": "1"}
        environment.pop("PYTHONPATH", None)
        self._process = subprocess.Popen(
            [python, "-W", "ignore", __file__, "--serve-rival"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self._write(json.dumps(config))
        self._read()

    def _write(self, line: str) -> None:
        if self._process.stdin is not None:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def _read(self) -> dict[str, float]:
        for line in self._process.stdout or ():
            if line.startswith("{"):
                return json.loads(line)
        raise RuntimeError(f"the rival ended with exit code {self._process.wait()}")

    def speed(self, seconds: float) -> float:
        """Return steps per second over at least `seconds`."""
        self._write(str(seconds))
        answer = self._read()
        self.steps_of_an_episode = answer["steps of an episode"]
        return answer["steps"] / answer["seconds"]

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()


# -- the same calls ----------------------------------------------------------------------------------------------------


class Tape:
    """Every call that generations of training make to EnvPool, to be made again with nothing in between."""

    def __init__(self, contest: Any, seconds: float) -> None:
        from clipup.engines.envpool import engine, lanes
        from clipup.engines.envpool.pool import Pool

        self._calls: list[tuple[Any, ...]] = []
        self._pools: list[Any] = []  # with the arguments that they were made from
        self._recording = True
        tape = self

        class Recorded(Pool):
            def __init__(self, *arguments: Any) -> None:
                self._number = len(tape._pools)
                tape._pools.append(arguments)
                tape._note(tape._make, self._number)
                super().__init__(*arguments)

            def reset(self, slots: Any) -> None:
                tape._note(Pool.reset, self._number, slots.copy())
                super().reset(slots)

            def send(self, slots: Any, actions: Any) -> None:
                tape._note(Pool.send, self._number, slots.copy(), actions.copy())
                super().send(slots, actions)

            def receive(self) -> Any:
                tape._note(Pool.receive, self._number)
                return super().receive()

            def close(self) -> None:
                tape._note(Pool.close, self._number)
                super().close()

        engine.Pool = lanes.Pool = Recorded
        try:
            before = contest.interactions
            contest.ours(seconds)
            self._steps = contest.interactions - before
        finally:
            engine.Pool = lanes.Pool = Pool
            self._recording = False  # pools made meanwhile live on in the engine
        self._closed = {number for call, number, *_ in self._calls if call == Pool.close}

    def _note(self, *call: Any) -> None:
        if self._recording:
            self._calls.append(call)

    def _make(self, number: int) -> None:
        from clipup.engines.envpool.pool import Pool

        self._made[number] = Pool(*self._pools[number])

    def speed(self) -> float:
        """Return steps per second of the calls alone; pools that last for many generations are made beforehand."""
        self._made: dict[int, Any] = {}
        for number in set(range(len(self._pools))) - self._closed:
            self._make(number)
        start = time.perf_counter()
        for call, number, *arguments in self._calls:
            if call != self._make:
                call(self._made[number], *arguments)
            elif number in self._closed:
                self._make(number)
        elapsed = time.perf_counter() - start
        for pool in self._made.values():
            pool.close()
        return self._steps / elapsed


# -- ours --------------------------------------------------------------------------------------------------------------


def measure(case: Case, late: Start | None, python: str | None, seconds: float, repeats: int) -> dict[str, Any]:
    """Return the speeds of all, by turns."""
    from clipup import PGPE
    from clipup.engines import Task
    from clipup.policies import Statistics
    from clipup.training.bench import Contest

    task = Task(case.env, reward_offset=-case.alive_bonus, max_episode_steps=case.max_episode_steps)

    def search(dimension: int) -> PGPE:
        if late is None:
            return PGPE(dimension=dimension, population_size=case.population_size, max_speed=case.max_speed, seed=1)
        center = np.array(late.center, np.float32)
        still = {"max_speed": 1e-9, "stdev": small_stdev(center), "stdev_learning_rate": 0.0}
        return PGPE(center=center, population_size=case.population_size, seed=1, **still)

    known = None
    if late is not None and late.mean is not None:
        known = Statistics(np.array(late.mean), np.array(late.stdev))
    contest = Contest(
        task,
        network=case.network,
        population_size=case.population_size,
        search=search,
        normalize=case.normalize,
        statistics=known,
    )
    rival, tape = None, None
    rounds: list[dict[str, float]] = []
    try:
        rival = Rival(python, case, late) if python else None
        tape = Tape(contest, seconds) if contest.engine.name == "envpool" else None
        for repeat in range(repeats + 1):
            turn = {"simulator": contest.simulator(seconds), "ours": contest.ours(seconds)}
            if tape is not None:
                turn["same calls"] = tape.speed()
            if rival is not None:
                turn["evotorch"] = rival.speed(seconds)
            if repeat:  # the first warms up
                rounds.append(turn)
            print(f"  {case.env}", *(f"{name} {value:.0f}" for name, value in turn.items()), flush=True)
    finally:
        contest.close()
        if rival is not None:
            rival.close()
    found: dict[str, Any] = {name: statistics.median(turn[name] for turn in rounds) for name in rounds[0]}
    for name in rounds[0].keys() - {"ours"}:
        ratios = sorted(turn["ours"] / turn[name] for turn in rounds)
        found[f"ours over {name}"] = statistics.median(ratios)
        found[f"ours over {name}, spread"] = [ratios[0], ratios[-1]]
    return {**found, "rounds": rounds, "engine": contest.engine.name, "lanes": contest.lanes}


def versions(python: str | None) -> dict[str, str]:
    """Return the versions of all that was measured."""
    found = {name: importlib.metadata.version(name) for name in ("numpy", "envpool", "gymnasium", "mujoco")}
    if python:
        code = "import importlib.metadata as m; print(*(m.version(n) for n in ('evotorch', 'torch', 'ray')))"
        numbers = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        found.update(zip(("evotorch", "torch", "ray"), numbers, strict=True))
    return {"python": platform.python_version(), **found}


def processor() -> str:
    """Return the processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def main() -> None:
    """Measure what was asked for, and write the result beside the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rival-python")
    parser.add_argument("--only", help="part of an environment's name; results of the others are kept")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULT)
    parser.add_argument("--serve-rival", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve_rival:
        config = json.loads(sys.stdin.readline())
        serve_rival(Case(**config["case"]), Start(**config["late"]) if config["late"] else None)
        return
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True, cwd=HERE
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
        for phase, start in (("first", None), ("late", good_policy(case))):
            if phase == "late" and start is None:
                results["tasks"].setdefault(case.env, {})["late"] = None
                continue
            load = os.getloadavg()[0]
            found = measure(case, start, arguments.rival_python, arguments.seconds, arguments.repeats)
            results["tasks"].setdefault(case.env, {})[phase] = {**found, "load before": load, **conditions}
            ratios = {name: value for name, value in found.items() if name in RATIOS}
            print(f"{case.env}, {phase}:", *(f"{name} {value:.3f}" for name, value in ratios.items()), flush=True)
    arguments.output.parent.mkdir(exist_ok=True)
    arguments.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
