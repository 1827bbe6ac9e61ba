"""Some small runs, each held to the digest of its policy and records.

``python tests/integration/test_same_bits.py`` writes the digests anew; do so only where bits are meant to change, and
say why in the commit. What clipup computes itself is the same on any processor, so runs of compiled tasks without
MuJoCo are always compared. Simulators use the C library's sines, which differ between processors and versions. So a
fingerprint of them is kept with the digests, and the other runs are compared only where it is the same.
"""

import contextlib
import hashlib
import importlib.metadata
import json
import math
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from clipup.cli import main
from clipup.export.safetensors import decode

DIGESTS = Path(__file__).with_name("same_bits.json")
SHORT = ["--generations", "3", "--evaluate-every", "2", "--evaluation-episodes", "3", "--quiet", "--seed", "7"]
CASES: dict[str, list[str]] = {
    "own, discrete": ["CartPole-v1", "--population", "10", "--policy", "mlp:8,4", "--max-speed", "0.1"],
    "own, two episodes, threads": ["Pendulum-v1", "--population", "10", "--episodes", "2", "--workers", "2"],
    "own, adaptive, adam": [
        *("Acrobot-v1", "--population", "8", "--population-max", "24", "--interactions", "9000"),
        *("--optimizer", "adam", "--workers", "1", "--episode-seeds", "pair"),
    ],
    "own, relu, raw": [
        *("MountainCarContinuous-v0", "--population", "6", "--policy", "mlp:6:relu", "--fitness-shaping", "raw"),
        "--rescale-actions",
    ],
    "compiled, adaptive population": [
        *("Hopper-v5", "--population", "8", "--population-max", "32", "--interactions", "400"),
        *("--reward-offset", "-1", "--episode-seeds", "pair"),
    ],
    "compiled, contact forces": [
        *("Humanoid-v4", "--preset", "humanoid-small", "--population", "6", "--interactions", "none"),
        *("--policy", "mlp:5"),
    ],
    "compiled, ray": [
        *("Swimmer-v5", "--population", "4", "--workers", "2", "--cluster", "ray", "--max-episode-steps", "40"),
    ],
    "envpool, linear": ["LunarLanderContinuous-v3", "--population", "12"],
    "envpool, more candidates than lanes": [
        *("Walker2d-v4", "--engine", "envpool", "--population", "12", "--lanes", "8", "--episodes", "2"),
    ],
    "envpool, adaptive population": [
        *("Hopper-v4", "--engine", "envpool", "--population", "8", "--population-max", "32", "--interactions", "400"),
        *("--reward-offset", "-1", "--episode-seeds", "pair"),
    ],
    "envpool, discrete, mlp": [
        *("CartPole-v1", "--engine", "envpool", "--population", "10", "--policy", "mlp:8,4", "--max-speed", "0.1"),
    ],
    "envpool, raw": [
        *("Pendulum-v1", "--engine", "envpool", "--population", "10", "--fitness-shaping", "raw"),
        *("--fitness-scale", "1000"),
    ],
    "envpool, reward-normalized, one process each": [
        *("Pendulum-v1", "--engine", "envpool", "--population", "10", "--fitness-shaping", "reward-normalized"),
        *("--policy", "linear"),
    ],
    "envpool, adam": ["LunarLanderContinuous-v3", "--population", "12", "--optimizer", "adam"],
    "envpool, noclip, rescaled": [
        *("HalfCheetah-v4", "--engine", "envpool", "--population", "6", "--optimizer", "noclip", "--rescale-actions"),
        *("--max-episode-steps", "50"),
    ],
    "gymnasium, inline": [
        *("Pendulum-v1", "--engine", "gymnasium", "--population", "8", "--workers", "1", "--episodes", "2"),
    ],
    "gymnasium, processes": [
        *("Pendulum-v1", "--engine", "gymnasium", "--population", "8", "--workers", "2", "--policy", "mlp:6:relu"),
    ],
    "gymnasium, discrete, adaptive, processes": [
        *("CartPole-v1", "--engine", "gymnasium", "--population", "8", "--population-max", "24"),
        *("--interactions", "300", "--workers", "2", "--no-normalize"),
    ],
    "gymnasium, ray": [
        *("Pendulum-v1", "--engine", "gymnasium", "--population", "8", "--workers", "2", "--cluster", "ray"),
        *("--episode-seeds", "shared"),
    ],
    "bullet, reward terms": [
        *("pybullet_envs_gymnasium:HopperBulletEnv-v0", "--population", "6", "--reward-terms", "1,2,3,4"),
        *("--max-episode-steps", "40", "--policy", "mlp:8"),
    ],
}  # fmt: skip


def fingerprint() -> str:
    """Return a digest of sines and exponentials of this machine, and of the versions of the simulators."""
    values = np.random.Generator(np.random.Philox(1)).standard_normal(4000) * 3
    found = hashlib.sha256(np.sin(values).tobytes() + np.exp(values).tobytes())
    for name in ("envpool", "gymnasium", "mujoco", "pybullet", "pybullet-envs-gymnasium"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.update(f"{name} {importlib.metadata.version(name)}".encode())
    found.update(np.array([[math.sin(value), math.cos(value), math.exp(value)] for value in values]).tobytes())
    return found.hexdigest()[:16]


def digest(words: list[str]) -> str:
    """Train with these flags; return the digest of what the run leaves."""
    with tempfile.TemporaryDirectory() as parent:
        path = Path(parent) / "run"
        code = main(["train", *words, *SHORT, "--run", str(path)])
        if code:
            raise RuntimeError(f"clipup train {' '.join(words)} ended with {code}")
        parts = [(path / "records.jsonl").read_bytes()]
        for name in ("policy.safetensors", "best-policy.safetensors"):
            file = decode((path / name).read_bytes(), source=name)
            task = json.loads(file.metadata["task"])
            del task["simulator_version"]  # which may be that of clipup itself
            parts += [file.metadata["network"].encode(), file.metadata["actions"].encode(), json.dumps(task).encode()]
            parts += [part for key, array in sorted(file.tensors.items()) for part in (key.encode(), array.tobytes())]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


@pytest.mark.parametrize("name", CASES)
def test_a_small_run_leaves_the_bytes_that_it_always_left(name: str) -> None:
    kept = json.loads(DIGESTS.read_text())
    if not name.startswith("own,") and fingerprint() != kept["fingerprint"]:
        pytest.skip("this machine's sines or simulators differ from those of the digests")
    assert digest(CASES[name]) == kept["digests"][name]


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(CASES)
    digests = {name: digest(CASES[name]) for name in chosen}
    DIGESTS.write_text(json.dumps({"fingerprint": fingerprint(), "digests": digests}, indent=1) + "\n")
