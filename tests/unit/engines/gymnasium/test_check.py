"""The check finds environments whose seed does not decide an episode."""

from collections.abc import Callable

import gymnasium
import numpy as np
import pytest

from clipup.engines import Task, check_environment
from clipup.errors import EnvironmentFault, InvalidArgument, UnknownEnvironment

Maker = Callable[..., object]


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("ignores its seed", "starts differently with the same seed"),
        ("hidden noise", "randomness other than its seed"),
        ("never resets", "depends on the one before it"),
        ("carries speed", "depends on the one before it"),
    ],
)
def test_leaks_are_found_and_named(line: Maker, behaviour: str, words: str) -> None:
    report = check_environment(Task(line, {"behaviour": behaviour}))
    assert not report.ok
    assert words in str(report)


def test_a_good_environment_passes(line: Maker) -> None:
    report = check_environment(Task(line))
    assert report.ok
    assert "seed alone decides" in str(report)
    assert report.steps == 100


@pytest.mark.parametrize(
    "name", ["Pendulum-v1", "LunarLanderContinuous-v3", "pybullet_envs_gymnasium:HumanoidBulletEnv-v0"]
)
def test_known_environments_pass(name: str) -> None:
    assert check_environment(Task(name), steps=50).problems == ()


def test_an_environment_that_fails_is_a_fault(line: Maker) -> None:
    with pytest.raises(EnvironmentFault, match="while it was checked"):
        check_environment(Task(line, {"behaviour": "four values"}))
    with pytest.raises(UnknownEnvironment):
        check_environment(Task("Nonsense-v0"))
    with pytest.raises(InvalidArgument, match="three is an image"):
        check_environment(Task(_Pictures))


class _Pictures(gymnasium.Env[object, int]):
    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Dict({"three": gymnasium.spaces.Box(0, 255, (64, 64, 3), np.uint8)})
        self.action_space = gymnasium.spaces.Discrete(2)

    def reset(self, **options: object) -> tuple[object, dict[str, object]]:
        return self.observation_space.sample(), {}


def test_observations_and_actions_of_parts_are_checked() -> None:
    assert check_environment(Task("gymnasium:Blackjack-v1")).ok


def test_one_that_fails_only_later_is_a_fault_too(line: Maker) -> None:
    made = 0

    def maker() -> object:
        nonlocal made
        made += 1
        return line(behaviour="four values" if made == 2 else "good")

    with pytest.raises(EnvironmentFault, match="while it was checked"):
        check_environment(Task(maker))


def test_equal_nans_are_equal(line: Maker) -> None:
    assert check_environment(Task(line, {"behaviour": "nan reward"})).ok
