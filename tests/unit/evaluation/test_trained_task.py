"""A policy goes back to the simulator that it was trained on, or a line says why not."""

import importlib.util

import pytest

from clipup.engines import registry
from clipup.evaluation.trained_task import task_of
from clipup.export.policy import PolicyTask

HERE = registry.entry("compiled").version("Humanoid-v4")


@pytest.mark.parametrize(
    ("described", "changes", "engine", "words"),
    [
        (PolicyTask("Humanoid-v4", trained_engine="envpool"), {}, "envpool", None),
        (PolicyTask("Humanoid-v4", trained_engine="compiled", simulator_version=HERE), {}, "compiled", None),
        (PolicyTask("Humanoid-v4", trained_engine="compiled", simulator_version="3.0"), {}, "compiled", "version 3.0"),
        (PolicyTask("Humanoid-v4", trained_engine="envpool"), {"engine": "compiled"}, "compiled", "always zero on Env"),
        (PolicyTask("Walker2d-v5", trained_engine="envpool"), {"engine": "gymnasium"}, "gymnasium", "on envpool"),
        (PolicyTask("Walker2d-v5", trained_engine="envpool"), {"engine": "envpool"}, "envpool", None),
        # Files of version 0.1 say "auto", which meant EnvPool where it has the task.
        (PolicyTask("Humanoid-v4"), {}, "envpool", None),
        (PolicyTask("Humanoid-v4", engine="gymnasium"), {}, "gymnasium", None),
        (PolicyTask("pybullet_envs_gymnasium:HopperBulletEnv-v0"), {}, "gymnasium", None),
        (PolicyTask("Walker2d-v5", trained_engine="envpool"), {"env_options": {"nothing": 1}}, "auto", "no option"),
        (PolicyTask("Toy-v0", trained_engine="an engine of tomorrow"), {}, "auto", "an engine of tomorrow"),
    ],
)  # fmt: skip
def test_the_engine_of_training_is_used_or_a_line_says_why_not(
    described: PolicyTask, changes: dict[str, object], engine: str, words: str | None
) -> None:
    task, note = task_of(described, **changes)  # type: ignore[arg-type]
    assert task.engine == engine
    assert (note is None) if words is None else (note is not None and words in note and "\n" not in note)


def test_where_the_engine_is_missing_another_one_runs_the_policy_and_a_line_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "envpool" else find(name))
    task, note = task_of(PolicyTask("Walker2d-v4", trained_engine="envpool"))
    assert task.engine == "auto" and note is not None and "trained on envpool, which cannot run this here" in note
