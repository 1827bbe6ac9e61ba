"""Machine code that one test compiled is there for the next, and for the next session."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

pytest.importorskip("numba")
pytest.importorskip("mujoco")


@pytest.fixture(autouse=True, scope="session")
def machine_code_of_the_session(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.environ.get("CLIPUP_CACHE_DIR")
    if before is None:
        os.environ["CLIPUP_CACHE_DIR"] = str(request.config.cache.mkdir("clipup-machine-code"))  # type: ignore[union-attr]
    yield
    if before is None:
        del os.environ["CLIPUP_CACHE_DIR"]
