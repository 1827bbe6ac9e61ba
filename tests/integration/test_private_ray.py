"""A Ray that clipup starts: reached from this machine alone, joined with its token alone, ended with its trainer."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from clipup.errors import InvalidArgument
from clipup.executors.private_ray import check_version, descendants

pytest.importorskip("ray")

LISTENING = "0A"
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
JOIN = """
import logging, sys, warnings
warnings.simplefilter("ignore")
import ray
try:
    ray.init(address=sys.argv[1], logging_level=logging.CRITICAL, log_to_driver=False)
except BaseException as error:
    print("refused", type(error).__name__, str(error).splitlines()[0] if str(error) else "")
else:
    print("joined", ray.get(ray.remote(lambda: 1).remote()))
"""


def listening(processes: set[int]) -> dict[tuple[str, int], int]:
    """Address (as the kernel writes it) and port of every listening socket of these processes, and whose it is."""
    owners = {}
    for process in processes:
        for link in Path(f"/proc/{process}/fd").glob("*"):
            try:
                target = str(link.readlink())
            except OSError:
                continue
            if target.startswith("socket:["):
                owners[target[8:-1]] = process
    found = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENING and words[9] in owners:
                address, port = words[1].split(":")
                found[address, int(port, 16)] = owners[words[9]]
    return found


def outer_addresses() -> list[str]:
    return [
        entry.address
        for entries in psutil.net_if_addrs().values()
        for entry in entries
        if entry.family == socket.AF_INET and not entry.address.startswith("127.")
    ]


def wait_until(condition, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.2)
    return bool(condition())


def test_a_private_ray_listens_to_this_machine_alone_refuses_strangers_and_does_not_outlive_its_trainer(
    start_clipup, tmp_path
):
    words = ["train", "Pendulum-v1", "--engine", "gymnasium", "--cluster", "ray", "--workers", 2, "--run", "run"]
    process = start_clipup(*words, "--generations", 100000, "--population", 16, "--max-episode-steps", 20, "--quiet")
    assert wait_until((tmp_path / "run" / "policy.safetensors").exists, 150), process.poll()
    started = descendants(process.pid)
    sockets = listening({process.pid, *started})
    assert len(sockets) >= 4, "Ray's servers were not found"
    assert {address for address, _ in sockets} <= LOOPBACK
    for address in outer_addresses():
        for _, port in sockets:
            with socket.socket() as client:
                client.settimeout(5)
                assert client.connect_ex((address, port)) != 0, f"{address}:{port} answers"
    ports = [port for (_, port), owner in sockets.items() if "gcs_server" in psutil.Process(owner).cmdline()[0]]
    stranger = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    for token in ({}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "f" * 64}):
        environment = {**stranger, "HOME": str(tmp_path), **token}
        join = [sys.executable, "-c", JOIN, f"127.0.0.1:{ports[0]}"]
        try:
            done = subprocess.run(join, env=environment, capture_output=True, text=True, timeout=40, check=False)
        except subprocess.TimeoutExpired:
            continue  # it still asks, and was let in nowhere
        assert "joined" not in done.stdout, done.stdout
    alive = {number: psutil.Process(number).create_time() for number in descendants(process.pid)}
    process.send_signal(signal.SIGKILL)
    process.wait()

    def all_gone() -> bool:
        return not [number for number, made in alive.items() if is_alive(number, made)]

    assert wait_until(all_gone, 15), [psutil.Process(number).cmdline() for number in alive if psutil.pid_exists(number)]


def is_alive(number: int, made: float) -> bool:
    try:
        process = psutil.Process(number)
        return process.create_time() == made and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("version", ["2.49.2", "2.40.0", "2.51.9", "1.13.0", "2.9.3"])
def test_a_ray_that_cannot_be_made_safe_is_refused_in_one_line(version: str) -> None:
    with pytest.raises(InvalidArgument, match=r"expected 2\.52 or newer") as caught:
        check_version(version)
    assert "\n" not in str(caught.value)
    for newer in ("2.52.0", "2.60.0", "3.0.0.dev0"):
        check_version(newer)
