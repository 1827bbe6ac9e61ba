"""Adapters to the engines of before the redesign. Temporary: the merge deletes this module.

Each name says which name of the new seams replaces it.
"""

from __future__ import annotations

from dataclasses import dataclass

from clipup.engines import Engine, Task
from clipup.engines.registry import envpool_refusal
from clipup.policies import Actions


@dataclass(frozen=True)
class EngineDescription:  # clipup.engines.protocol.EngineDescription
    """What an engine says of itself."""

    name: str
    version: str
    reason: str
    observation_size: int
    actions: Actions


def describe(engine: Engine) -> EngineDescription:  # engine.description
    """Return what an engine says of itself."""
    return EngineDescription(engine.name, "", engine.reason, engine.observation_size, engine.actions)


def preferred_candidates(engine: str) -> int:  # registry.entry(engine).preferred_candidates
    """Return how many candidates an engine likes at once."""
    return 32 if engine == "envpool" else 2


def own_threads(engine: str) -> bool:  # registry.entry(engine).own_threads
    """Return whether an engine is parallel inside one process."""
    return engine == "envpool"


def choose(task: Task) -> str:  # registry.choose(task)[0].name
    """Return the name of the engine that runs a task."""
    return "envpool" if task.engine != "gymnasium" and envpool_refusal(task) is None else "gymnasium"
