"""Every task of EnvPool: its observations in parts stand where EnvPool's own dictionaries have them."""

import math
from typing import Any

import pytest

envpool = pytest.importorskip("envpool")

from clipup.engines import Task  # noqa: E402
from clipup.engines.envpool.pool import IMAGE_FAMILY, pool_layout, registered  # noqa: E402
from clipup.errors import InvalidArgument  # noqa: E402


def test_each_part_of_each_task_is_found_in_its_space_with_its_size() -> None:
    trainable = in_parts = 0
    for name, (family, *_) in registered().items():
        if family == IMAGE_FAMILY:  # slow to specify, and refused
            continue
        try:
            layout = pool_layout(Task(name))
        except InvalidArgument as error:
            assert "\n" not in str(error)
            continue
        trainable += 1
        if layout.observations is None:
            continue
        in_parts += 1
        space: Any = envpool.make_spec(name).gymnasium_observation_space
        paths = [part.path for part in layout.observations.parts]
        assert paths == sorted(paths)
        for part in layout.observations.parts:
            inner = space
            for key in part.path:
                inner = inner[key]
            assert part.choices == (inner.n,) if part.choices else part.size == math.prod(inner.shape), (name, part)
        assert layout.observation_size == layout.observations.size
    assert trainable > 1300 and in_parts > 400
