"""Machine code for different processors gives the same bits."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

SEARCH = """
import hashlib, numpy as np
from clipup.engines.rollout import Rollout
from clipup.engines.compiled.engine import CompiledEngine
from clipup.engines.task import Task
from clipup.policies.compiled import Forward
from clipup.policies.feedforward import Network
from clipup.policies.normalizer import Statistics
from tests.environments.compiled_slider import random_walk, slider
from clipup.engines.compiled import tasks
digest = hashlib.sha256()
generator = np.random.default_rng(0)
for task in (slider(), random_walk(), tasks.task("Hopper-v5", {})):
    engine = CompiledEngine(Task("own"), task, threads=2, reason="")
    for hidden, activation in (((), "tanh"), ((9, 5), "tanh"), ((12,), "relu")):
        size = engine.observation_size
        network = Network(size, engine.actions.size, hidden, activation=activation)
        parameters = (generator.normal(size=(8, network.parameter_count)) * 0.3).astype(np.float32)
        statistics = Statistics(generator.normal(size=size), generator.uniform(0.5, 2.0, size))
        rollout = Rollout(network, parameters, 1, 0, statistics=statistics, collect_moments=True)
        outcomes = engine.evaluate(rollout)
        for array in (outcomes.fitness, outcomes.interactions, outcomes.moments.mean, outcomes.moments.m2):
            digest.update(array.tobytes())
        observations = generator.normal(size=(8, size)) * 3
        digest.update(Forward(network, statistics)(parameters, observations).tobytes())
print(digest.hexdigest())
"""

PROCESSORS = {
    "host": {},
    "generic": {"NUMBA_CPU_NAME": "generic"},
    "haswell": {"NUMBA_CPU_NAME": "haswell"},
    "znver2": {"NUMBA_CPU_NAME": "znver2"},
    "skylake-avx512": {"NUMBA_CPU_NAME": "skylake-avx512"},
    "without vectors": {
        "NUMBA_CPU_NAME": "x86-64",
        "NUMBA_CPU_FEATURES": "-avx,-avx2,-fma",
        "NUMBA_LOOP_VECTORIZE": "0",
    },
}


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the names are of x86 processors")
def test_the_bits_are_equal_for_all_processors() -> None:
    digests = {
        name: subprocess.run(
            [sys.executable, "-c", SEARCH],
            env=os.environ | settings | {"PYTHONPATH": str(Path.cwd())},
            capture_output=True, text=True, check=True,
        ).stdout
        for name, settings in PROCESSORS.items()
    }  # fmt: skip
    assert len(set(digests.values())) == 1, digests
