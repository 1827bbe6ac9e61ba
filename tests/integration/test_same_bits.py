"""A dozen small runs, each held to the digest of its policy and records.

``python tests/integration/test_same_bits.py`` writes the digests anew; do so only where bits are meant to change, and
say why in the commit. Simulators and linear algebra round differently on other processors. So a
fingerprint of the arithmetic is kept with the digests, and they are compared only where it is the same.
"""

import hashlib
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from clipup.cli import main

DIGESTS = Path(__file__).with_name("same_bits.json")
SHORT = ["--generations", "3", "--evaluate-every", "2", "--evaluation-episodes", "3", "--quiet", "--seed", "7"]
CASES: dict[str, list[str]] = {
    "envpool, linear": ["LunarLanderContinuous-v3", "--population", "12"],
    "envpool, more candidates than lanes": ["Walker2d-v4", "--population", "12", "--lanes", "8", "--episodes", "2"],
    "envpool, adaptive population": [
        *("Hopper-v4", "--population", "8", "--population-max", "32", "--interactions", "400"),
        *("--reward-offset", "-1", "--episode-seeds", "pair"),
    ],
    "envpool, discrete, mlp": ["CartPole-v1", "--population", "10", "--policy", "mlp:8,4", "--max-speed", "0.1"],
    "envpool, raw": ["Pendulum-v1", "--population", "10", "--fitness-shaping", "raw", "--fitness-scale", "1000"],
    "envpool, reward-normalized, one process each": [
        *("Pendulum-v1", "--population", "10", "--fitness-shaping", "reward-normalized", "--policy", "linear"),
    ],
    "envpool, adam": ["LunarLanderContinuous-v3", "--population", "12", "--optimizer", "adam"],
    "envpool, noclip, rescaled": [
        *("HalfCheetah-v4", "--population", "6", "--optimizer", "noclip", "--rescale-actions"),
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
    """Return a digest of a small fixed computation: equal where this machine rounds as the one before did."""
    random = np.random.Generator(np.random.Philox(1))
    values = random.standard_normal((8, 17, 40), dtype=np.float32)
    vectors = random.standard_normal((8, 40, 1), dtype=np.float32)
    return hashlib.sha256(np.tanh(np.matmul(values, vectors)).tobytes()).hexdigest()[:16]


def digest(words: list[str]) -> str:
    """Train with these flags; return the digest of what the run leaves."""
    with tempfile.TemporaryDirectory() as parent:
        path = Path(parent) / "run"
        code = main(["train", *words, *SHORT, "--run", str(path)])
        if code:
            raise RuntimeError(f"clipup train {' '.join(words)} ended with {code}")
        parts = [
            (path / name).read_bytes() for name in ("policy.safetensors", "best-policy.safetensors", "records.jsonl")
        ]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


@pytest.mark.parametrize("name", CASES)
def test_a_small_run_leaves_the_bytes_that_it_always_left(name: str) -> None:
    kept = json.loads(DIGESTS.read_text())
    if fingerprint() != kept["fingerprint"]:
        pytest.skip("this machine's arithmetic differs from that of the digests")
    assert digest(CASES[name]) == kept["digests"][name]


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(CASES)
    digests = {name: digest(CASES[name]) for name in chosen}
    DIGESTS.write_text(json.dumps({"fingerprint": fingerprint(), "digests": digests}, indent=1) + "\n")
