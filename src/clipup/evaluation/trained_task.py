"""The task that a policy file describes, on the engine that the policy was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from clipup.engines import Task, registry
from clipup.engines.wrappers import parse_wrappers
from clipup.errors import BrokenTask
from clipup.export.policy import PolicyTask


def task_of(
    described: PolicyTask,
    *,
    env: str | None = None,
    env_options: Mapping[str, object] | None = None,
    engine: str | None = None,
    rendering: bool = False,
) -> tuple[Task, str | None]:
    """Return the task to run a policy on, and a line to show if that is not the simulator that it was trained on.

    Parameters
    ----------
    described
        What the policy's file says.
    env, env_options, engine
        What to change: another environment, further options, another engine.
    rendering
        Whether it is to be drawn (`clipup.evaluation.video.prepare_rendering` must have been called).
    """
    options = {**described.env_options, **(env_options or {})}
    task = Task(
        env or described.env,
        options,
        engine=engine or "auto",
        rescale_actions=described.rescale_actions,
        max_episode_steps=described.max_episode_steps,
        wrappers=parse_wrappers(described.wrapper),
    )
    trained = _trained_engine(described)
    if engine is None and trained in registry.names():
        task = replace(task, engine=trained)
        if trained == registry.AUTO:
            return task, None
        entry = registry.entry(trained)
        refusal = entry.refusal(task) or (entry.rendering_refusal(task) if rendering else None)
        if isinstance(refusal, BrokenTask):
            raise refusal
        if refusal is None:
            return task, _other_version(described, trained)
        return replace(task, engine=registry.AUTO), f"note: trained on {trained}, which cannot run this here: {refusal}"
    if trained in ("", registry.AUTO, engine):
        return task, None
    hint = registry.difference(task.label)
    return task, f"note: trained on {trained}, not on {engine or 'what is chosen here'}" + (f"; {hint}" if hint else "")


def _trained_engine(described: PolicyTask) -> str:
    """The engine's name; for a file of version 0.1 that says "auto", what that meant then."""
    if described.trained_engine or described.engine != registry.AUTO:
        return described.trained_engine or described.engine
    return registry.engine_before(Task(described.env, described.env_options)) if described.env else registry.AUTO


def _other_version(described: PolicyTask, engine: str) -> str | None:
    here, before = registry.entry(engine).version(described.env), described.simulator_version
    if not here or not before or here == before:
        return None
    return f"note: trained on {engine} with version {before} of its simulator, and {here} is installed"
