"""Settings for every test, a Ray that all of a session share, and environments that worker processes can import."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Timings are not tests: on a busy machine a deadline, or a limit on drawing examples, fails by chance. The examples are
# drawn from fixed seeds, so that a change which passes here passes everywhere.
settings.register_profile("clipup", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("clipup")

# Collecting these for doctests would register their environments a second time, under another module name.
collect_ignore = ["environments"]

# PyBullet has no wheel for Python 3.12 and later, so the `all` extra leaves it out there.
WITH_BULLET = find_spec("pybullet_envs_gymnasium") is not None
collect_ignore_glob = [] if WITH_BULLET else ["*/test_bullet.py"]
RUN_SIMULATORS = ("tests/contract/", "tests/unit/engines/", "tests/integration/test_same_bits.py")

ENVIRONMENTS = str(Path(__file__).with_name("environments"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests that run one of Bullet's environments where PyBullet is not installed."""
    for item in items:
        if not WITH_BULLET and item.nodeid.startswith(RUN_SIMULATORS) and "bullet" in item.name.lower():
            item.add_marker(pytest.mark.skip(reason="needs clipup[bullet]"))


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    """Three processors of a Ray on this machine: starting it takes longer than most tests."""
    ray = pytest.importorskip("ray")
    from clipup.executors.private_ray import PrivateRay

    private = PrivateRay()
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [ENVIRONMENTS, before]))
    try:
        private.start(
            ray, num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR,
            object_store_memory=128 * 2**20,
        )  # fmt: skip
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
    yield
    ray.shutdown()
    private.close()


@pytest.fixture
def misbehaving(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the id of an environment that fails, hangs or dies as its options say."""
    monkeypatch.syspath_prepend(ENVIRONMENTS)
    return "misbehaving:Misbehaving-v0"
