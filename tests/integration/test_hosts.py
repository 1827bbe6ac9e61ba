"""Ray over several hosts: network namespaces on this machine, each with an address, a Ray and a cable of its own."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("ip") is None, reason="making network namespaces takes root and iproute2"
    ),
]

HOSTS = 3
TASK = ("LunarLanderContinuous-v3", "--engine", "gymnasium", "--population", "100", "--seed", "6", "--quiet")
ENVIRONMENT = {
    **os.environ,
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_USAGE_STATS_ENABLED": "0",
}


def ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


class Hosts:
    """Hosts 1 to 3 with the addresses 192.0.2.1 to 3, plugged into one switch; Ray runs on the first two."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = f"clipup-{os.getpid()}"
        self._rays: list[subprocess.Popen[bytes]] = []

    def host(self, number: int) -> str:
        return f"{self._name}-{number}"

    def build(self) -> None:
        switch = f"{self._name}-switch"
        ip("netns", "add", switch)
        ip("-n", switch, "link", "add", "name", "hub", "type", "bridge")
        ip("-n", switch, "link", "set", "dev", "hub", "up")
        for number in range(1, HOSTS + 1):
            host, port = self.host(number), f"port{number}"
            ip("netns", "add", host)
            ip("-n", switch, "link", "add", "name", port, "type", "veth", "peer", "name", "cable", "netns", host)
            ip("-n", switch, "link", "set", "dev", port, "master", "hub", "up")
            ip("-n", host, "addr", "add", f"192.0.2.{number}/24", "dev", "cable")
            ip("-n", host, "link", "set", "dev", "lo", "up")
            self.plug(number, "up")

    def plug(self, number: int, state: str) -> None:
        """Plug a host's cable in (``up``) or pull it out (``down``)."""
        ip("-n", self.host(number), "link", "set", "dev", "cable", state)

    def command(self, number: int, *words: str) -> list[str]:
        return ["ip", "netns", "exec", self.host(number), *words]

    def start_ray(self, number: int, processors: int, *options: str) -> None:
        ray = str(Path(sys.executable).parent / "ray")
        words = self.command(
            number, ray, "start", "--block", f"--node-ip-address=192.0.2.{number}", f"--num-cpus={processors}",
            "--object-store-memory=100000000", "--log-style=record", *options,
        )  # fmt: skip
        with (self._folder / f"ray-{number}.log").open("wb") as log:
            self._rays.append(subprocess.Popen(words, env=ENVIRONMENT, stdout=log, stderr=log, start_new_session=True))

    def train(self, number: int, run: Path, cluster: str, generations: int) -> subprocess.Popen[str]:
        words = self.command(
            number, sys.executable, "-m", "clipup", "train", *TASK, f"--generations={generations}", f"--run={run}",
            f"--cluster={cluster}",
        )  # fmt: skip
        return subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def processors(self) -> int:
        """How many processors the cluster has, as the first host sees it."""
        script = "import ray; ray.init('auto', log_to_driver=False); print(int(ray.cluster_resources().get('CPU', 0)))"
        words = self.command(1, sys.executable, "-c", script)
        done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        return int(done.stdout.split()[-1]) if done.returncode == 0 else 0

    def tear_down(self) -> None:
        names = [name for name in ip("netns", "list").split() if name.startswith(self._name)]
        for name in names:
            for process in map(int, ip("netns", "pids", name).split()):
                with contextlib.suppress(psutil.NoSuchProcess):
                    psutil.Process(process).kill()
        for ray in self._rays:
            ray.wait(30)
        for name in names:
            ip("netns", "del", name)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    folder = tmp_path_factory.mktemp("hosts")
    made = Hosts(folder)
    try:
        made.build()
        made.start_ray(1, 1, "--head", "--port=6379", "--ray-client-server-port=10001", "--include-dashboard=false")
        made.start_ray(2, 2, "--address=192.0.2.1:6379")
        end = time.monotonic() + 120
        while made.processors() != 3:
            assert time.monotonic() < end, (folder / "ray-1.log").read_text() + (folder / "ray-2.log").read_text()
            time.sleep(1)
        yield made
    finally:
        made.tear_down()


def trained_here(run: Path, generations: int) -> bytes:
    words = [sys.executable, "-m", "clipup", "train", *TASK, f"--generations={generations}", f"--run={run}"]
    subprocess.run(words, check=True, capture_output=True)
    return (run / "records.jsonl").read_bytes()


@pytest.mark.parametrize(("number", "cluster"), [(1, "auto"), (2, "192.0.2.1:6379"), (3, "ray://192.0.2.1:10001")])
def test_a_cluster_of_two_hosts_gives_the_bits_of_one_process(
    hosts: Hosts, tmp_path: Path, number: int, cluster: str
) -> None:
    training = hosts.train(number, tmp_path / "far", cluster, 4)
    said, _ = training.communicate(timeout=300)
    assert training.returncode == 0, said
    assert (tmp_path / "far" / "records.jsonl").read_bytes() == trained_here(tmp_path / "here", 4)


def test_a_host_that_is_unplugged_during_a_run_costs_time_alone(hosts: Hosts, tmp_path: Path) -> None:
    run = tmp_path / "far"
    training = hosts.train(1, run, "auto", 40)
    try:
        end = time.monotonic() + 120
        while not (run / "records.jsonl").exists() or (run / "records.jsonl").read_bytes().count(b"\n") < 5:
            assert time.monotonic() < end and training.poll() is None
            time.sleep(0.1)
        hosts.plug(2, "down")
        said, _ = training.communicate(timeout=400)
    finally:
        training.kill()
        hosts.plug(2, "up")
    assert training.returncode == 0, said
    assert "it is replaced, and they run again" in said
    assert json.loads((run / "status.json").read_text())["generation"] == 40
    assert (run / "records.jsonl").read_bytes() == trained_here(tmp_path / "here", 40)
