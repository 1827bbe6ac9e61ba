"""The tracking services themselves, on this machine and without a network; skipped where they are not installed."""

from __future__ import annotations

from pathlib import Path

import pytest

import clipup

SMALL = {"generations": 2, "population": 4, "seed": 1, "evaluate_every": 0, "max_episode_steps": 10}


@pytest.mark.filterwarnings("ignore")  # MLflow's own, from the libraries below it
def test_mlflow_keeps_every_generation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    monkeypatch.chdir(tmp_path)
    result = clipup.train("CartPole-v1", run=tmp_path / "run", mlflow="tests", **SMALL)
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("tests")
    (run,) = client.search_runs([experiment.experiment_id])
    history = client.get_metric_history(run.info.run_id, "total_interactions")
    assert [point.value for point in history] == [record.total_interactions for record in result.records]


def test_weights_and_biases_keeps_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    clipup.train("CartPole-v1", run=tmp_path / "run", wandb="tests", **SMALL)
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
