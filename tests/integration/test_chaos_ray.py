"""Actors are shot and machines come and go; the run on Ray has the bytes of a quiet one in this process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import clipup
from clipup import PGPE
from clipup.engines import Task
from clipup.errors import EnvironmentFault
from clipup.executors import make_executor

SOURCE = str(Path(__file__).parents[2] / "src")


def ray_processes() -> set[int]:
    psutil = pytest.importorskip("psutil")
    names = ("raylet", "gcs_server", "ray::")
    return {process.pid for process in psutil.process_iter(["name"]) if str(process.info["name"]).startswith(names)}


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_run_on_a_cluster_under_siege_has_the_bytes_of_a_quiet_one(tmp_path: Path) -> None:
    settings = {
        "env": "Pendulum-v1", "engine": "gymnasium", "policy": "mlp:8", "normalize": True, "preset": "none",
        "population": 40, "population_max": 120, "interactions": 20_000, "checkpoint_seconds": 0.0,
        "max_speed": 0.1, "seed": 9, "evaluate_every": 5, "evaluation_episodes": 8,
    }  # fmt: skip
    before, memory = ray_processes(), set(Path("/dev/shm").iterdir())
    command = [sys.executable, str(Path(__file__).with_name("ray_chaos.py")), tmp_path / "besieged", 3, 12, 3]
    done = subprocess.run(
        [*map(str, command), json.dumps(settings)],
        env={**os.environ, "PYTHONPATH": SOURCE}, capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    print(found)
    assert found["shots"] >= 12
    assert found["moves"] >= 3
    assert found["most"] > found["fewest"]
    clipup.train(run=tmp_path / "quiet", workers=1, generations=found["generations"], **settings)  # type: ignore[arg-type]
    for name in ("records.jsonl", "policy.safetensors"):
        assert (tmp_path / "besieged" / name).read_bytes() == (tmp_path / "quiet" / name).read_bytes()
    assert ray_processes() <= before
    assert set(Path("/dev/shm").iterdir()) <= memory


@pytest.mark.parametrize(("times", "survives"), [(2, True), (10**9, False)])
def test_an_actor_that_dies_is_replaced_and_a_candidate_that_kills_them_all_is_named(
    misbehaving: str, tmp_path: Path, ray_session: None, times: int, survives: bool
) -> None:
    search = PGPE(dimension=1, population_size=12, max_speed=0.2, stdev=1.0, seed=1)
    values = search.ask()[:, 0]
    worst = int(values.argmax())
    options = {"how": "kill", "above": float(values[worst]) - 1e-4, "marks": str(tmp_path), "times": times}
    executor = make_executor(
        Task(misbehaving, env_options=options), "linear", collect_moments=False, cluster="ray", workers=2
    )
    try:
        if survives:
            executor.evaluate(search.batch(), None)
            assert len(list(tmp_path.iterdir())) == times
        else:
            with pytest.raises(EnvironmentFault, match=rf"^candidate {worst} ended 3 workers in a row"):
                executor.evaluate(search.batch(), None)
    finally:
        executor.close()
