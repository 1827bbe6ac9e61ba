"""A real Chromium, driven over its DevTools protocol, and runs to show in it."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from clipup.runs.config import RunConfig
from clipup.runs.records import ClockRecord, Record, encode_line
from clipup.runs.toml import format_config

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0"),
)


class Page:
    """One tab. Console messages, exceptions and requests are kept as they come."""

    def __init__(self, socket) -> None:
        self.socket = socket
        self.number = 0
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def call(self, method: str, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv(timeout=30))
            if message.get("id") == self.number:
                assert "error" not in message, message
                return message["result"]
            self.note(message)

    def note(self, message) -> None:
        kind, content = message.get("method"), message.get("params", {})
        if kind == "Runtime.exceptionThrown":
            self.complaints.append(str(content["exceptionDetails"]))
        elif kind == "Runtime.consoleAPICalled" and content["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(content["args"]))
        elif kind == "Log.entryAdded" and content["entry"]["level"] in ("error", "warning"):
            self.complaints.append(content["entry"]["text"])
        elif kind == "Network.requestWillBeSent":
            self.requests.append(content["request"]["url"])

    def open(self, address: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        self.call("Page.navigate", url=address)
        self.wait("document.documentElement?.dataset.ready")

    def run(self, script: str):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, condition: str, seconds: float = 30.0) -> None:
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, f"still not so after {seconds} s: {condition}"
            time.sleep(0.05)

    def mouse(self, kind: str, x: float, y: float, **more) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def key(self, key: str, modifiers: int = 0) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=modifiers)

    def screenshot(self, path: Path) -> None:
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        image = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(image["data"]))


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no chromium on this machine: install Debian's chromium to run the browser tests")
    pytest.importorskip("websockets", reason="driving chromium needs the websockets library (in the dev extra)")
    folder = tmp_path_factory.mktemp("chromium")
    log = folder / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"], stderr=stream
        )
    try:
        end = time.monotonic() + 60
        while not (found := re.search(r"DevTools listening on ws://(\S+?)/", log.read_text(errors="replace"))):
            assert time.monotonic() < end and process.poll() is None, log.read_text(errors="replace")
            time.sleep(0.05)
        yield found[1]
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture
def page(chromium: str) -> Iterator[Page]:
    import urllib.request

    from websockets.sync.client import connect

    request = urllib.request.Request(f"http://{chromium}/json/new?about:blank", method="PUT")
    with urllib.request.urlopen(request, timeout=20) as answer:
        target = json.load(answer)
    with connect(target["webSocketDebuggerUrl"], max_size=None) as socket:
        yield Page(socket)
        socket.send(json.dumps({"id": 10**9, "method": "Page.close"}))


def write_run(
    path: Path, *, generations: int = 30, seed: int = 0, max_speed: float = 0.15, start: int = 1, **settings
) -> Path:
    """A finished run's files with made-up numbers that differ from run to run."""
    path.mkdir(parents=True, exist_ok=True)
    config = RunConfig(env="Walker2d-v4", seed=seed, max_speed=max_speed, generations=generations, **settings)
    (path / "config.toml").write_text(format_config(config), encoding="utf-8")
    append_generations(path, 1, generations, seed=seed, max_speed=max_speed)
    (path / "status.json").write_text(json.dumps({"state": "finished", "reason": f"{generations} generations"}))
    return path


def append_generations(path: Path, first: int, last: int, *, seed: int = 0, max_speed: float = 0.15) -> None:
    generator = np.random.default_rng([seed, int(max_speed * 1e6)])
    noise = generator.standard_normal((last + 1, 6))
    records, clock = b"", b""
    for generation in range(first, last + 1):
        level = 1000 * generation / (generation + 20) * (1 + seed / 10) + 10 * noise[generation, 0]
        scored = generation % 5 == 0
        records += encode_line(
            Record(
                generation=generation,
                population=100 + 10 * (generation % 3),
                interactions=5000,
                total_interactions=5000 * generation + 100 * seed * generation,
                fitness_mean=level,
                fitness_best=1.3 * level,
                best=1.3 * level,
                score=1.1 * level + noise[generation, 1] if scored else None,
                score_standard_error=3 + 0.1 * abs(noise[generation, 2]) if scored else None,
                speed=min(max_speed, max_speed / 2 * generation),
                max_speed=max_speed,
                clipped=generation > 2,
                stdev_norm=15 * max_speed * 0.99**generation,
                gradient_norm=abs(0.3 + 0.05 * noise[generation, 3]),
                gradient_agreement=0.4 + 0.1 * noise[generation, 4],
                nonfinite=0,
                tied=0.0,
                population_bound=False,
            )
        )
        clock += encode_line(
            ClockRecord(generation, round(0.5 * generation + 0.01 * seed, 3), 10000.0 + noise[generation, 5])
        )
    mode = "ab" if first > 1 else "wb"
    with (path / "clock.jsonl").open(mode) as file:
        file.write(clock)
    with (path / "records.jsonl").open(mode) as file:
        file.write(records)


@pytest.fixture(scope="session")
def make_run():
    return write_run


@pytest.fixture(scope="session")
def add_generations():
    return append_generations
