"""The measurement itself runs, on both engines."""

from collections.abc import Callable

import pytest

from clipup.engines import Task
from clipup.errors import EnvironmentFault, InvalidArgument
from clipup.training.bench import Contest, measure


@pytest.mark.parametrize("engine", ["envpool", "gymnasium"])
@pytest.mark.parametrize("normalize", [True, False])
def test_both_sides_are_measured(engine: str, normalize: bool) -> None:
    contest = Contest(Task("CartPole-v1", engine=engine), network="linear", population_size=4, normalize=normalize)
    found = measure(contest, seconds=0.02, repeats=1)
    assert found.engine == engine
    assert found.parameters == 8
    assert found.simulator_steps_per_second > 0
    assert found.our_steps_per_second > 0
    assert found.ratio == found.our_steps_per_second / found.simulator_steps_per_second


@pytest.mark.parametrize("behaviour", ["raises at once", "old reset", "four values"])
def test_an_environment_that_fails_is_one_line(line: Callable[..., object], behaviour: str) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        measure(Contest(Task(line, {"behaviour": behaviour}), population_size=4), seconds=0.02, repeats=1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_a_length_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidArgument, match="seconds"):
        measure(Contest(Task("CartPole-v1")), seconds=seconds)
