"""A whole training run on the compiled engine leaves the bytes of one on Gymnasium: policy and records."""

import json
from pathlib import Path

import pytest

from clipup.cli import main
from clipup.engines import Task, registry
from clipup.export.safetensors import decode

pytest.importorskip("numba")
pytest.importorskip("mujoco")

TASKS: dict[str, list[str]] = {
    "Ant-v5": ["--population", "4"],
    "HalfCheetah-v5": ["--population", "4", "--rescale-actions", "--policy", "mlp:6"],
    "Hopper-v4": ["--population", "8", "--episodes", "2", "--episode-seeds", "pair", "--reward-offset", "-1"],
    "Humanoid-v4": [
        "--preset",
        "humanoid-small",
        "--population",
        "4",
        "--population-max",
        "16",
        "--interactions",
        "200",
    ],
    "Humanoid-v5": [
        *("--preset", "humanoid-small", "--population", "4", "--population-max", "4", "--interactions", "50"),
        *("--policy", "mlp:8:relu"),
    ],
    "HumanoidStandup-v4": ["--population", "4"],
    "InvertedPendulum-v5": ["--population", "6", "--no-normalize", "--policy", "linear"],
    "Swimmer-v5": ["--population", "4", "--optimizer", "adam"],
    "Walker2d-v4": ["--population", "6", "--env.healthy_reward", "0.5"],
    "Walker2d-v5": ["--population", "6", "--episode-seeds", "shared", "--max-speed", "0.2"],
}
"""Every MuJoCo task but three: numpy's sines (Reacher, InvertedDoublePendulum) and BLAS's distances (Reacher, Pusher)
take part in what Gymnasium gives there, and differ between processors."""
SHORT = [
    "--generations",
    "3",
    "--evaluate-every",
    "2",
    "--evaluation-episodes",
    "2",
    "--max-episode-steps",
    "60",
    "--preset",
    "none",
]
ENGINE = ("engine", "trained_engine", "simulator_version")
"""What a policy file says about its engine: the only difference."""


def trained(env: str, engine: str, words: list[str], path: Path) -> tuple[object, ...]:
    """Train; return all that a run leaves about what it computed."""
    command = ["train", env, "--engine", engine, "--workers", "1", "--seed", "3", *SHORT, *words, "--quiet"]
    assert main([*command, "--run", str(path)]) == 0
    found: list[object] = [(path / "records.jsonl").read_bytes()]
    for name in ("policy.safetensors", "best-policy.safetensors"):
        file = decode((path / name).read_bytes(), source=name)
        task = json.loads(file.metadata["task"])
        said = [task.pop(key) for key in ENGINE]
        assert said == [engine, engine, registry.entry(engine).version(env)]
        found.append({name: array.tobytes() for name, array in file.tensors.items()})
        found.append([file.metadata["network"], file.metadata["actions"], task])
    return tuple(found)


@pytest.mark.parametrize("env", TASKS)
def test_a_run_leaves_the_same_bytes_on_both_engines(env: str, tmp_path: Path) -> None:
    words = TASKS[env]
    assert registry.choose(Task(env))[0].name == "compiled"
    compiled = trained(env, "compiled", words, tmp_path / "compiled")
    assert compiled == trained(env, "gymnasium", words, tmp_path / "gymnasium")
