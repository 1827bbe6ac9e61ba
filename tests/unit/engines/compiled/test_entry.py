"""Tasks are found by their id, in a module, in a file, or are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clipup.engines.compiled.entry import CompiledEntry, find_task
from clipup.engines.compiled.task import ArrayTask, MujocoTask
from clipup.engines.task import Task
from clipup.errors import InvalidArgument, MissingDependency, UnknownEnvironment
from clipup.policies.network import Network
from tests.environments.compiled_slider import random_walk, slider

ENTRY = CompiledEntry()
MODULE = "tests.environments.compiled_slider"


def annotated(limit: int = 30) -> ArrayTask:
    return random_walk(max_episode_steps=limit)


def returns_another() -> MujocoTask:
    return 3  # type: ignore[return-value]


def test_a_built_in_task_is_found_by_its_id_and_takes_options() -> None:
    assert "Walker2d-v5" in ENTRY.ids() and "CartPole-v1" in ENTRY.ids()
    assert ENTRY.refusal(Task("Walker2d-v5", env_options={"forward_reward_weight": 2.0})) is None
    assert "no option" in str(ENTRY.refusal(Task("Walker2d-v5", env_options={"colour": "red"})))
    assert isinstance(ENTRY.refusal(Task("LunarLander-v3")), UnknownEnvironment)


def test_a_task_of_ones_own_is_found_in_a_module_in_a_file_and_as_a_function(tmp_path: Path) -> None:
    path = tmp_path / "my_robot.py"
    path.write_text(f"from {MODULE} import random_walk\nCrawler = random_walk(max_episode_steps=7)\n")
    assert find_task(Task(f"{path}:Crawler")).max_episode_steps == 7
    assert find_task(Task(f"{__name__}:annotated")).max_episode_steps == 30
    assert find_task(Task(annotated, env_options={"limit": 9})).max_episode_steps == 9
    engine = ENTRY.make(Task(f"{path}:Crawler"), lanes=1, threads=2, reason="asked for")
    outcomes = engine.evaluate(Network(2, 1), np.zeros((3, 3), np.float32), seed=1, generation=0)
    assert outcomes.interactions.tolist() == [7, 7, 7]


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("no_such_module:Crawler", "no_such_module could not be imported: ModuleNotFoundError"),
        (f"{MODULE}:Nothing", "finds no 'Nothing' in"),
        ("nowhere.py:Crawler", "nowhere.py could not be imported: FileNotFoundError"),
        (lambda: None, "the environment is no compiled task"),
        (returns_another, "must return a MujocoTask or an ArrayTask, got int"),
    ],
)
def test_what_is_no_compiled_task_is_refused_in_one_line(env: Any, message: str) -> None:
    refusal = str(ENTRY.refusal(Task(env)))
    assert message in refusal and "\n" not in refusal


def test_options_for_a_task_that_takes_none_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import tests.environments.compiled_slider as module

    monkeypatch.setattr(module, "Ready", slider(), raising=False)
    assert ENTRY.refusal(Task(f"{MODULE}:Ready")) is None
    assert "takes no options" in str(ENTRY.refusal(Task(f"{MODULE}:Ready", env_options={"a": 1})))


def test_terms_of_a_reward_are_refused() -> None:
    assert isinstance(ENTRY.refusal(Task("Walker2d-v5", reward_terms=(0,))), InvalidArgument)


def test_without_numba_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from clipup.compilation import machine_code

    monkeypatch.setattr(machine_code, "is_installed", lambda: False)
    assert not ENTRY.ids()
    assert isinstance(ENTRY.refusal(Task("Walker2d-v5")), MissingDependency)
