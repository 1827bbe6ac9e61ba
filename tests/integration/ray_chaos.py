"""A run on a small Ray cluster whose actors are shot and whose machines come and go; called as a script.

``python ray_chaos.py RUN SEED SHOTS MOVES SETTINGS``: prints, as JSON, how many actors were shot, how many machines
were removed, and the most and fewest processors that the cluster had.
"""

from __future__ import annotations

import json
import logging
import random
import sys
import threading
import time

import psutil
import ray
from ray.cluster_utils import Cluster

import clipup


def actors() -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if "ray::RayWorker.run" in " ".join(process.cmdline()) and _ours(process):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return found


def _ours(process: psutil.Process) -> bool:
    return any(parent.pid == psutil.Process().pid for parent in process.parents())


class Siege:
    """Shoots at actors that are at work, and removes and adds machines."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster = cluster
        self.dice = random.Random(seed)
        self.machines = [cluster.add_node(num_cpus=2, object_store_memory=80 * 2**20)]
        self.shots = self.moves = 0
        self.processors: list[int] = []

    def act(self) -> None:
        self.processors.append(int(ray.cluster_resources().get("CPU", 0)))
        targets = actors()
        if targets and self.dice.random() < 0.7:
            try:
                self.dice.choice(targets).kill()
            except psutil.NoSuchProcess:
                return
            self.shots += 1
        elif len(self.machines) > 1 and self.dice.random() < 0.6:
            self.cluster.remove_node(self.machines.pop(0), allow_graceful=False)
            self.moves += 1
        elif len(self.machines) < 3:
            self.machines.append(self.cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20))


class Run(threading.Thread):
    """Trains until it is told that it has seen enough; machines are as slow as they are."""

    def __init__(self, run: str, settings: dict[str, object]) -> None:
        super().__init__(daemon=True)
        self.path, self.settings = run, settings
        self.generations = 20
        self.enough = False
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            clipup.train(run=self.path, cluster="ray", generations=self.generations, **self.settings)  # type: ignore[arg-type]
            while not self.enough:
                self.generations += 10
                clipup.resume(self.path, generations=self.generations)
        except BaseException as error:
            self.error = error


def main() -> None:
    path, seed, shots, moves, settings = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 80 * 2**20})
    try:
        ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
        siege, run = Siege(cluster, seed), Run(path, json.loads(settings))
        run.start()
        while run.is_alive():
            time.sleep(siege.dice.uniform(0.5, 2.0))
            run.enough = siege.shots >= shots and siege.moves >= moves
            if not run.enough:
                siege.act()  # here, since nodes can be added by the main thread only
        if run.error is not None:
            raise run.error
        found = {
            "generations": run.generations, "shots": siege.shots, "moves": siege.moves,
            "most": max(siege.processors), "fewest": min(siege.processors),
        }  # fmt: skip
    finally:
        ray.shutdown()
        cluster.shutdown()
    time.sleep(1.0)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
