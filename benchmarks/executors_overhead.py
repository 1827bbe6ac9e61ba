"""What a generation costs besides simulation: bytes over the wire, and the search's own time.

    python benchmarks/executors_overhead.py

**Bytes.** Populations of two sizes are evaluated for policies of very different sizes; the difference gives the bytes
of one more candidate, what remains those of a generation. Processes: every message, counted where it is sent and
received, its length prefix included. Ray: all traffic of the loopback device (calls, replies, Ray's own bookkeeping)
less what flows while nothing is done; another program that uses the device meanwhile would be counted too, unless this
runs in a network of its own (``unshare -n sh -c 'ip link set lo up; python …'``). No moments are collected; they add 8
bytes and 16 for each observed number, by design.

**Search.** The paper's Bullet setting, 10,000 candidates of 3985 parameters and 44 observations: seconds of the
processor to make the candidates, pack and unpack results, rank, sum the gradient, update, and merge moments; beside
what the simulation of that generation takes, from the cost of a step measured here on HumanoidBulletEnv-v0. Processor
time is what matters: all but the ranking, the update and the merge is spread over the workers.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

RESULT = Path(__file__).parent / "results" / "executors_overhead.json"
LIMITS = {"bytes of a candidate": 100, "search over generation": 0.05}
POLICIES = ("linear", "mlp:64", "mlp:8000")
SMALL, LARGE = 400, 2000
POPULATION, DIMENSION, OBSERVATIONS = 10_000, 3985, 44


# -- bytes -------------------------------------------------------------------------------------------------------------


def ranges_of_a_generation(where: str, workers: int, seconds: float) -> int:
    """Return into how many ranges the paper's population is cut where a candidate takes so long."""
    from clipup.executors.processes import ProcessTransport
    from clipup.executors.ray import RayTransport
    from clipup.executors.work_queue import RangeSizer

    transport = ProcessTransport if where == "processes" else RayTransport
    sizer, waiting, ranges = RangeSizer(transport.rule), POPULATION, 0
    sizer.learn(1, seconds)
    while waiting > 0:
        waiting -= sizer.size(waiting, workers)
        ranges += 1
    return ranges


def loopback() -> int:
    """Bytes that went through the loopback device so far."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            return int(numbers.split()[8])
    return 0


class CountedPipe:
    """A connection that counts."""

    total = 0

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)

    def send_bytes(self, data: bytes) -> None:
        """Count, and send."""
        CountedPipe.total += len(data) + 4
        self._connection.send_bytes(data)

    def recv_bytes(self) -> bytes:
        """Receive, and count."""
        data: bytes = self._connection.recv_bytes()
        CountedPipe.total += len(data) + 4
        return data


def measure_bytes(where: str, policy: str) -> dict[str, float]:
    """Evaluate populations of two sizes, and tell the bytes of a candidate and of a generation apart."""
    from clipup import PGPE
    from clipup.engines import Task
    from clipup.executors.distributed import DistributedExecutor
    from clipup.executors.jobs import Setup
    from clipup.executors.processes import ProcessTransport
    from clipup.executors.ray import RayTransport

    task = Task("Pendulum-v1", engine="gymnasium", max_episode_steps=5)
    setup = Setup(task, policy, collect_moments=False)
    transport = ProcessTransport(setup, 2) if where == "processes" else RayTransport(setup, workers=2)
    executor = DistributedExecutor(transport, task)
    if isinstance(transport, ProcessTransport):
        time.sleep(5.0)
        for worker in transport._workers.values():
            worker.connection = CountedPipe(worker.connection)  # type: ignore[assignment]
    calls = 0
    assign = transport.assign

    def counted(worker: int, assignment: Any) -> None:
        nonlocal calls
        calls += 1
        assign(worker, assignment)

    transport.assign = counted  # type: ignore[method-assign]
    counter = loopback if where == "ray" else lambda: CountedPipe.total
    parameters = executor.description.network.parameter_count
    found: dict[int, list[float]] = {SMALL: [], LARGE: []}
    executor.evaluate(PGPE(dimension=parameters, population_size=SMALL, max_speed=0.1, seed=0).batch(), None)
    messages: list[float] = []
    trainer: list[float] = []
    for seed in range(9):
        for population, results in found.items():
            calls, began, own, before = 0, time.perf_counter(), time.process_time(), counter()
            executor.evaluate(
                PGPE(dimension=parameters, population_size=population, max_speed=0.1, seed=seed).batch(), None
            )
            spent, used = time.perf_counter() - began, counter() - before
            trainer.append((time.process_time() - own) / calls)
            idle = counter()
            time.sleep(min(spent, 2.0))
            results.append(used - (counter() - idle) / min(spent, 2.0) * spent)
            job = 2 * (len(transport._job) + 4) if isinstance(transport, ProcessTransport) else 0
            messages.append((results[-1] - job - 24 * population) / calls)
    executor.close()
    small, large = (float(np.median(found[population])) for population in (SMALL, LARGE))
    each = (large - small) / (LARGE - SMALL)
    return {
        "parameters": parameters,
        "a candidate, here": round(each, 1),
        "a generation": round(small - SMALL * each),
        "a range, beside 24 a candidate": round(float(np.median(messages))),
        "trainer's processor seconds of a range": round(float(np.median(trainer)), 6),
    }


# -- the search --------------------------------------------------------------------------------------------------------


def processor_seconds(call: Any, *arguments: Any) -> tuple[float, Any]:
    """Return the processor's seconds of a call (the least of three), and its result."""
    seconds, result = [], None
    for _ in range(3):
        began = time.process_time()
        result = call(*arguments)
        seconds.append(time.process_time() - began)
    return min(seconds), result


def measure_search() -> dict[str, float]:
    """Processor seconds of each part of a generation that is not simulation."""
    from clipup import PGPE
    from clipup.engines import Outcomes
    from clipup.executors import wire
    from clipup.policies import Moments, Normalizer

    def search() -> PGPE:
        made = PGPE(dimension=DIMENSION, population_size=POPULATION, max_speed=0.15, seed=1)
        made.batch()
        return made

    batch = search().batch()
    ranges = [(start, start + 16) for start in range(0, POPULATION, 16)]
    making, _ = processor_seconds(lambda: [batch.candidates(*each) is None for each in ranges])
    numbers = np.random.default_rng(0)
    part = Outcomes(
        numbers.normal(size=16), numbers.normal(size=16), np.full(16, 200),
        Moments(np.full(16, 200), numbers.normal(size=(16, OBSERVATIONS)), np.ones((16, OBSERVATIONS))),
    )  # fmt: skip
    packing, packed = processor_seconds(lambda: [wire.pack(part) for _ in ranges])
    unpacking, outcomes = processor_seconds(lambda: Outcomes.concatenate([wire.unpack(data) for data in packed]))
    merging, _ = processor_seconds(lambda: Normalizer(OBSERVATIONS).merge(outcomes.moments))
    searches = iter([search() for _ in range(6)])
    fitnesses = numbers.normal(size=POPULATION)
    whole, _ = processor_seconds(lambda: next(searches).tell(fitnesses))

    def telling() -> bool:
        from clipup.searches.gradient import Sums

        zeros = Sums.zeros(DIMENSION)
        return next(searches).tell(fitnesses, sum_blocks=lambda work: (zeros for _ in range(work.block_count)))

    update, _ = processor_seconds(telling)
    return {
        "making candidates (workers)": making,
        "packing results (workers)": packing,
        "summing the gradient (workers)": max(0.0, whole - update),
        "unpacking results (trainer)": unpacking,
        "merging moments (trainer)": merging,
        "ranking, adding blocks, update (trainer)": update,
    }


def measure_step() -> float:
    """Processor seconds of a step of Bullet's Humanoid, the policy included."""
    from clipup.engines import Rollout, Task, make_engine
    from clipup.policies import Network

    task = Task("pybullet_envs_gymnasium:HumanoidBulletEnv-v0", engine="gymnasium", max_episode_steps=200)
    engine = make_engine(task)
    network = Network.parse("mlp:64", engine.observation_size, engine.actions.size)
    rows = 0.02 * np.random.default_rng(0).normal(size=(24, network.parameter_count)).astype(np.float32)
    began = time.process_time()
    outcomes = engine.evaluate(Rollout(network, rows, seed=1, generation=0, collect_moments=True))
    seconds = time.process_time() - began
    engine.close()
    return seconds / int(outcomes.interactions.sum())


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=RESULT)
    arguments = parser.parse_args()
    parts, step = measure_search(), measure_step()
    search = sum(parts.values())
    # Humanoids that have not learned to walk fall long before 200 steps; the shortest generations are the worst case.
    generations = {f"{steps} steps an episode": POPULATION * steps * step for steps in (20, 100, 200)}
    traffic = {where: {policy: measure_bytes(where, policy) for policy in POLICIES} for where in ("processes", "ray")}
    paper: dict[str, float] = {}
    for where in traffic:
        of_a_range = traffic[where]["mlp:64"]["a range, beside 24 a candidate"]
        for workers in (2, 64):
            ranges = ranges_of_a_generation(where, workers, 100 * step)
            paper[f"{where}, {workers} workers"] = round(24 + of_a_range * ranges / POPULATION, 1)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    report = {
        "command": "python benchmarks/executors_overhead.py",
        "limits": LIMITS,
        "bytes": traffic,
        "bytes of a candidate, the paper's Bullet setting at 100 steps an episode": paper,
        "search, processor seconds": parts,
        "search, total": search,
        "a step of HumanoidBulletEnv-v0, processor seconds": step,
        "simulation, processor seconds": generations,
        "search over generation": {key: search / (search + value) for key, value in generations.items()},
        "load when it ended": os.getloadavg()[0],
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "hardware": {"machine": platform.machine(), "processors": os.cpu_count()},
        "commit": commit,
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
