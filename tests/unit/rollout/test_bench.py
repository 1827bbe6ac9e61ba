"""The measurement itself runs, on both engines."""

import pytest

from clipup.rollout import Task
from clipup.rollout.bench import measure


@pytest.mark.parametrize("engine", ["envpool", "gymnasium"])
@pytest.mark.parametrize("normalize", [True, False])
def test_both_sides_are_measured(engine: str, normalize: bool) -> None:
    found = measure(
        Task("CartPole-v1", engine=engine),  # type: ignore[arg-type]
        network="linear",
        population_size=4,
        normalize=normalize,
        seconds=0.02,
        repeats=1,
    )
    assert found.engine == engine
    assert found.parameters == 8
    assert found.simulator_steps_per_second > 0
    assert found.our_steps_per_second > 0
    assert found.ratio == found.our_steps_per_second / found.simulator_steps_per_second
