"""Where a run was computed, and whether it moved in between, cannot be seen in it."""

from __future__ import annotations

from pathlib import Path

import pytest

import clipup
from clipup.engines.envpool.entry import EnvPoolEntry
from clipup.searches import SEARCHES

RUNS = {
    "gymnasium": {
        "env": "Pendulum-v1", "engine": "gymnasium", "policy": "mlp:8", "max_episode_steps": 25, "normalize": True,
        "population": 12, "population_max": 30, "interactions": 700,
    },
    "envpool": {
        "env": "CartPole-v1", "engine": "envpool", "policy": "linear", "lanes": 16, "normalize": True,
        "population": 20, "population_max": 70, "interactions": 900,
    },
    "replayed lanes": {
        "env": "Hopper-v4", "engine": "envpool", "policy": "linear-bias", "lanes": 8, "max_episode_steps": 40,
        "population": 12, "population_max": 36, "interactions": 600, "episodes": 2,
    },
}  # fmt: skip
EVERY = {"max_speed": 0.1, "seed": 4, "evaluate_every": 2, "evaluation_episodes": 3, "checkpoint_seconds": 0.0}
PLACES: dict[str, dict[str, object]] = {
    "one process": {"workers": 1},
    "two processes": {"workers": 2},
    "three processes": {"workers": 3},
    "one actor": {"workers": 1, "cluster": "ray"},
    "three actors": {"workers": 3, "cluster": "ray"},
}


def train(run: Path, name: str, place: dict[str, object], generations: int = 5) -> None:
    clipup.train(run=run, preset="none", generations=generations, **EVERY, **RUNS[name], **place)  # type: ignore[arg-type]


def results(run: Path) -> dict[str, bytes]:
    names = ["records.jsonl", "policy.safetensors", "best-policy.safetensors"]
    newest = sorted((run / "checkpoints").iterdir())[-1]
    return {name: (run / name).read_bytes() for name in names} | {newest.name: newest.read_bytes()}


@pytest.fixture(scope="module", params=RUNS)
def expected(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, bytes]]:
    """A run in this process, whose population grew in some generation."""
    run = tmp_path_factory.mktemp("inline") / "run"
    train(run, request.param, {"workers": 1})
    records = clipup.runs.records.read_records(run / "records.jsonl")
    assert max(record.population for record in records) > RUNS[request.param]["population"]
    return request.param, results(run)


@pytest.fixture
def always_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in processes even EnvPool, which has threads of its own, and even a single worker."""
    monkeypatch.setattr(EnvPoolEntry, "own_threads", False)
    monkeypatch.setattr("clipup.executors.selection.FEWEST_PROCESSES", 1)


@pytest.mark.parametrize("place", PLACES)
def test_a_run_has_the_same_bytes_wherever_it_is_computed(
    expected: tuple[str, dict[str, bytes]],
    place: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    always_processes: None,
) -> None:
    if "cluster" in PLACES[place]:
        request.getfixturevalue("ray_session")
    name, bytes_of = expected
    train(tmp_path / "run", name, PLACES[place])
    assert results(tmp_path / "run") == bytes_of


@pytest.mark.parametrize("search", SEARCHES[1:])
def test_every_search_leaves_the_same_bytes_wherever_it_is_computed(
    search: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    always_processes: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Otherwise workers share only sums of a size that no small run reaches.
    monkeypatch.setattr("clipup.executors.distributed.SUMMED_BY_WORKERS", 1)
    places = ["two processes"]
    if search in {"ars", "cma-es"}:  # one whose updates are sums that workers share, and one with a matrix
        request.getfixturevalue("ray_session")
        places.append("three actors")
    for place in ("one process", *places):
        settings = {**EVERY, **RUNS["gymnasium"], **PLACES[place], "search": search}
        clipup.train(run=tmp_path / place, preset="none", generations=3, **settings)  # type: ignore[arg-type]
    for place in places:
        assert results(tmp_path / place) == results(tmp_path / "one process")


def test_a_run_that_moves_from_place_to_place_has_the_same_bytes(
    expected: tuple[str, dict[str, bytes]], tmp_path: Path, ray_session: None, always_processes: None
) -> None:
    name, bytes_of = expected
    if name != "gymnasium":
        pytest.skip("one run is enough")
    train(tmp_path / "run", name, PLACES["two processes"], generations=1)
    clipup.resume(tmp_path / "run", generations=2, workers=2, cluster="ray")
    clipup.resume(tmp_path / "run", generations=4, workers=1, cluster=None)
    clipup.resume(tmp_path / "run", generations=5, workers=3)
    assert results(tmp_path / "run") == bytes_of
