"""Run directories with made-up numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from clipup.runs.config import RunConfig
from clipup.runs.records import ClockRecord, Record, encode_line
from clipup.runs.toml import format_config


def record(generation: int, **changes: object) -> Record:
    values: dict[str, object] = dict(
        generation=generation, population=10, interactions=100, total_interactions=100 * generation,
        fitness_mean=1.5 * generation, fitness_best=2.0 * generation, best=2.0 * generation,
        score=None if generation % 5 else 3.0 * generation, score_standard_error=None if generation % 5 else 0.5,
        speed=0.1, max_speed=0.1, clipped=True, stdev_norm=1.5, gradient_norm=0.3, gradient_agreement=0.2, nonfinite=0,
        tied=0.0, population_bound=False,
    )  # fmt: skip
    return Record(**(values | changes))  # type: ignore[arg-type]


def write(path: Path, generations: int = 20, state: str = "finished", **settings: object) -> Path:
    path.mkdir(parents=True)
    config = RunConfig(**({"env": "CartPole-v1", "generations": generations} | settings))  # type: ignore[arg-type]
    (path / "config.toml").write_text(format_config(config), encoding="utf-8")
    (path / "records.jsonl").write_bytes(b"".join(encode_line(record(n + 1)) for n in range(generations)))
    clock = [ClockRecord(n + 1, 0.25 * (n + 1), 400.0) for n in range(generations)]
    (path / "clock.jsonl").write_bytes(b"".join(map(encode_line, clock)))
    (path / "status.json").write_text(json.dumps({"state": state, "score": 61.5, "score_standard_error": 0.25}))
    return path


@pytest.fixture
def write_run() -> Callable[..., Path]:
    return write
