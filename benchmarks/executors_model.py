"""What to expect of many processors: the scheduler itself, driven by numbers measured here instead of a simulator.

    python benchmarks/executors_model.py

Plays one generation of the paper's Bullet setting (10,000 candidates) through the same rules that hand out ranges in a
run, with workers that take as long as `executors_overhead.py` measured: the step, the trainer's time for each range
(one range after the other), and for each generation (ranking, merging, update). Episodes are of 20 to 200 steps. What
it leaves out: slow networks, unequal processors, lost workers.
"""

from __future__ import annotations

import heapq
import json
import random
from pathlib import Path

from clipup.executors.ray import RayTransport
from clipup.executors.work_queue import RangeSizer, WorkQueue

HERE = Path(__file__).parent / "results"
POPULATIONS = (10_000, 80_000)
PROCESSORS = (2, 64, 1000)


def efficiency(workers: int, population: int, step: float, of_a_range: float, serial: float, seed: int = 0) -> float:
    """Return the share of all processors' time that is simulation."""
    dice = random.Random(seed)
    queue: WorkQueue[None] = WorkQueue(0, population)
    sizer = RangeSizer(RayTransport.rule)
    sizer.learn(1, 110 * step)
    idle = [(0.0, worker, (0, 0, 0.0)) for worker in range(workers)]  # when it is done, who, and with what
    heapq.heapify(idle)
    trainer = simulated = end = 0.0
    while idle:
        moment, worker, (start, stop, seconds) = heapq.heappop(idle)
        trainer = max(trainer, moment)
        if stop:
            trainer += of_a_range / 2  # taking the result in; the other half is for handing the range out
            queue.finish(start, None)
            sizer.learn(stop - start, seconds)
            end = trainer
        span = queue.take(sizer.size(queue.waiting, workers))
        if span is not None:
            trainer += of_a_range / 2
            seconds = sum(dice.uniform(20, 200) for _ in range(len(span))) * step
            simulated += seconds
            heapq.heappush(idle, (trainer + seconds, worker, (span.start, span.stop, seconds)))
    return simulated / (workers * (end + serial))


def main() -> None:
    """Read the measurements, play, print, store."""
    measured = json.loads((HERE / "executors_overhead.json").read_text())
    step = measured["a step of HumanoidBulletEnv-v0, processor seconds"]
    of_a_range = measured["bytes"]["ray"]["mlp:64"]["trainer's processor seconds of a range"]
    serial = sum(value for key, value in measured["search, processor seconds"].items() if "(trainer)" in key)
    found = {
        f"{population} candidates": {
            f"{workers} processors": round(
                efficiency(workers, population, step, of_a_range, serial * population / 10_000), 3
            )
            for workers in PROCESSORS
        }
        for population in POPULATIONS
    }
    report = {
        "command": "python benchmarks/executors_model.py",
        "measured": {"step": step, "trainer's seconds of a range": of_a_range, "trainer's seconds of 10,000": serial},
        "efficiency": found,
        "commit of the measurements": measured["commit"],
    }
    (HERE / "executors_model.json").write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
