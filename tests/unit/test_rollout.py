"""The names of version 0.1 still work, and say what they are called now."""

import importlib

import numpy as np
import pytest

import clipup.engines
from clipup.engines import Rollout, Task, make_engine
from clipup.policies import Network


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *((name, name) for name in ("Task", "make_engine", "check_environment", "Engine", "Failure", "Outcomes")),
        ("Report", "SeedCheck"),
    ],
)
def test_an_old_name_gives_the_new_thing_and_a_warning_that_names_it(old: str, new: str) -> None:
    module = importlib.import_module("clipup.rollout")
    with pytest.deprecated_call(match=rf"clipup\.rollout\.{old} is now clipup\.engines\.{new}"):
        assert getattr(module, old) is getattr(clipup.engines, new)


def test_the_report_of_a_check_is_a_seed_check_now() -> None:
    with pytest.deprecated_call(match=r"clipup\.engines\.SeedCheck"):
        assert clipup.engines.Report is clipup.engines.SeedCheck


@pytest.mark.parametrize("module", ["clipup.rollout", "clipup.engines"])
def test_a_name_that_never_was_is_an_attribute_error(module: str) -> None:
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = importlib.import_module(module).Nonsense


@pytest.mark.parametrize("name", ["envpool", "gymnasium"])
def test_an_engine_still_takes_the_arguments_of_version_0_1(name: str) -> None:
    engine = make_engine(Task("CartPole-v1", engine=name, max_episode_steps=10), lanes=2)
    network = Network(4, 2)
    parameters = np.ones((2, network.parameter_count), np.float32)
    new = engine.evaluate(rollout=Rollout(network, parameters, seed=3, generation=1, collect_moments=True))
    with pytest.deprecated_call(match="Rollout"):
        old = engine.evaluate(network, parameters, seed=3, generation=1, collect_moments=True)  # type: ignore[call-arg,arg-type]
    engine.close()
    assert old.fitness.tobytes() == new.fitness.tobytes()
    assert old.moments is not None
