"""Workers on different processors: the same bits, or a refusal; never other bits in silence.

Half of the workers run as if their processor were another one: OpenBLAS takes kernels for an old one, numpy uses none
of the instructions that it finds, and Numba compiles for a generic one.
"""

from __future__ import annotations

import ast
import itertools
import json
import os
import platform
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import clipup
from clipup.engines.compiled.entry import CompiledEntry
from clipup.engines.envpool.entry import EnvPoolEntry
from clipup.errors import EnvironmentFault, FileFault
from clipup.executors import processes
from clipup.executors.ray import _Cluster

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the names are of x86 processors")

_UMATH: Any = np._core._multiarray_umath  # type: ignore[attr-defined]
FOUND = [name for name in _UMATH.__cpu_dispatch__ if _UMATH.__cpu_features__.get(name)]
OLD = {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": " ".join(FOUND), "NUMBA_CPU_NAME": "generic"}

SHORT = {
    "policy": "mlp:8", "population": 12, "population_max": 24, "interactions": 300, "max_episode_steps": 30,
    "generations": 3, "evaluate_every": 2, "evaluation_episodes": 3, "seed": 5, "checkpoint_seconds": 0.0,
    "preset": "none",
}  # fmt: skip
ENGINES = {"compiled": "Hopper-v5", "gymnasium": "Hopper-v5", "envpool": "Hopper-v4"}


@contextmanager
def environment(change: dict[str, str]) -> Generator[None]:
    with mock.patch.dict("os.environ", change):
        yield


@pytest.fixture
def half_of_the_workers_are_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every second worker, process or actor, start with another processor; and use workers for all engines."""
    count = itertools.count()
    ordinary = processes._worker_environment

    @contextmanager
    def alternating() -> Generator[None]:
        with ordinary(), environment(OLD if next(count) % 2 else {}):
            yield

    def actor(cluster: Any) -> Any:
        options = {"runtime_env": {"env_vars": OLD}} if next(count) % 2 else {}
        return cluster._make.options(**options).remote()

    monkeypatch.setattr(processes, "_worker_environment", alternating)
    monkeypatch.setattr(_Cluster, "actor", actor)
    for entry in (CompiledEntry, EnvPoolEntry):
        monkeypatch.setattr(entry, "own_threads", False)


def results(run: Path) -> dict[str, bytes]:
    names = ["records.jsonl", "policy.safetensors", "best-policy.safetensors"]
    newest = sorted((run / "checkpoints").iterdir())[-1]
    return {name: (run / name).read_bytes() for name in [*names, f"checkpoints/{newest.name}"]}


slow = pytest.mark.slow


@pytest.mark.parametrize(
    ("engine", "cluster"),
    [
        *[pytest.param(engine, None, id=f"{engine}-processes") for engine in ENGINES],
        pytest.param("compiled", "ray", id="compiled-ray"),
        pytest.param("gymnasium", "ray", id="gymnasium-ray"),
        pytest.param("envpool", "ray", id="envpool-ray", marks=slow),
    ],
)
def test_half_of_the_workers_on_another_processor_give_the_same_bits(
    engine: str,
    cluster: str | None,
    tmp_path: Path,
    half_of_the_workers_are_old: None,
    request: pytest.FixtureRequest,
) -> None:
    if cluster:
        request.getfixturevalue("ray_session")
    task = {"env": ENGINES[engine], "engine": engine, **SHORT}
    clipup.train(run=tmp_path / "one", workers=1, **task)  # type: ignore[arg-type]
    clipup.train(run=tmp_path / "mixed", workers=2, cluster=cluster, **task)  # type: ignore[arg-type]
    assert results(tmp_path / "mixed") == results(tmp_path / "one")


SEARCHES_UPDATE = """
import hashlib, numpy as np
from clipup.policies import Moments, Normalizer
from clipup.runs.config import RunConfig
from clipup.searches import SEARCHES, SHAPINGS
from clipup.training.setup import make_search
cases = [{"search": name} for name in SEARCHES] + [{"fitness_shaping": shaping} for shaping in SHAPINGS]
for case in cases + [{"optimizer": name} for name in ("adam", "noclip", "ascent")]:
    search = make_search(RunConfig(env="any", population=202, max_speed=0.1, seed=1, **case), 23)
    digest = hashlib.sha256()
    for _ in range(5):
        candidates = search.batch().candidates().astype(np.float64)
        search.tell(-np.square(candidates - 1.0).sum(axis=1))
        for value in search.state_dict().values():
            digest.update(np.asarray(value).tobytes() if not isinstance(value, str) else value.encode())
    print(case, digest.hexdigest())
normalizer = Normalizer(7)
normalizer.merge(Moments.of(np.random.Generator(np.random.Philox(1)).standard_normal((99, 7))))
print(hashlib.sha256(normalizer.statistics().scale.tobytes()).hexdigest())
"""


def test_every_search_updates_to_the_same_bits_on_another_processor() -> None:
    words = [sys.executable, "-c", SEARCHES_UPDATE]
    shown = [
        subprocess.run(words, env={**os.environ, **change}, capture_output=True, text=True, check=True).stdout
        for change in ({}, OLD)
    ]
    assert shown[0] == shown[1] and len(shown[0].splitlines()) > 10


DIFFERENT = {
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arctan2"),
    *("power", "float_power", "dot", "vdot", "inner", "matmul", "tensordot", "einsum", "linalg"),
}
"""What numpy computes to other bits on other processors."""


@pytest.mark.parametrize("folder", ["searches", "optimizers", "policies"])
def test_what_computes_a_run_uses_nothing_whose_bits_depend_on_the_processor(folder: str) -> None:
    for path in sorted((Path(clipup.__file__).parent / folder).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            where = f"{path.name}, line {getattr(node, 'lineno', 0)}"
            assert not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.MatMult), where
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np":
                assert node.attr not in DIFFERENT, where


@pytest.mark.parametrize(
    ("cluster", "how"),
    [
        pytest.param(None, "blas", id="processes-blas"),
        pytest.param("ray", "numpy", id="ray-numpy"),
        pytest.param(None, "numpy", id="processes-numpy", marks=slow),
        pytest.param("ray", "blas", id="ray-blas", marks=slow),
    ],
)
def test_workers_whose_simulators_round_differently_are_refused_or_accepted_and_recorded(
    how: str,
    cluster: str | None,
    tmp_path: Path,
    half_of_the_workers_are_old: None,
    misbehaving: str,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if cluster:
        request.getfixturevalue("ray_session")
    # It goes on until the second worker is there, however long that takes.
    task = {**SHORT, "env": "by_processor:ByProcessor-v0", "env_options": {"how": how}, "workers": 2}
    task |= {"generations": 100_000, "evaluate_every": 0}
    with pytest.raises(
        EnvironmentFault, match=r"round differently.* bits in the simulator .*mixed-arithmetic"
    ) as found:
        clipup.train(run=tmp_path / "refused", cluster=cluster, **task)  # type: ignore[arg-type]
    assert "\n" not in str(found.value)
    run = tmp_path / "accepted"
    stop = [lambda progress: "round differently" in caplog.text]
    clipup.train(run=run, cluster=cluster, callbacks=stop, mixed_arithmetic=True, **task)  # type: ignore[arg-type]
    assert "round differently" in json.loads((run / "status.json").read_text())["warning"]
    assert "mixed_arithmetic = true" in (run / "config.toml").read_text()


@pytest.mark.parametrize("cluster", [None, pytest.param("ray", marks=slow)], ids=["processes", "ray"])
def test_workers_where_a_policy_of_ones_own_rounds_differently_are_refused(
    cluster: str | None, half_of_the_workers_are_old: None, misbehaving: str, request: pytest.FixtureRequest
) -> None:
    if cluster:
        request.getfixturevalue("ray_session")
    task = {**SHORT, "policy": "by_processor:Products", "env": "Pendulum-v1", "engine": "gymnasium", "workers": 2}
    task |= {"generations": 100_000, "evaluate_every": 0}
    with pytest.raises(EnvironmentFault, match=r"round differently.* bits in the policy .*mixed-arithmetic"):
        clipup.train(cluster=cluster, **task)  # type: ignore[arg-type]


def test_a_run_that_goes_on_where_the_simulator_rounds_differently_is_refused_or_accepted_and_recorded(
    tmp_path: Path, misbehaving: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clipup.executors.selection.FEWEST_PROCESSES", 1)  # a process of its own, which can be another
    run, task = tmp_path / "run", {**SHORT, "env": "by_processor:ByProcessor-v0", "workers": 1}
    clipup.train(run=run, **task)  # type: ignore[arg-type]
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with environment(OLD):
        with pytest.raises(FileFault, match=r"rounds differently .* accept that with --mixed-arithmetic"):
            clipup.resume(run, generations=5, imports=["by_processor"])
        changed = {path for path in run.rglob("*") if path.is_file() and path.read_bytes() != before.get(path)}
        assert {path.name for path in changed} <= {"lock"}
        clipup.resume(run, generations=5, imports=["by_processor"], mixed_arithmetic=True)
    assert json.loads((run / "status.json").read_text())["arithmetic_changed_at"] == 3
