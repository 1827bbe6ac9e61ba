"""What Gymnasium can run, and how its engine is made."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, cast

from clipup.engines.gymnasium import NAME, rendering
from clipup.engines.gymnasium.engine import GymnasiumEngine
from clipup.engines.gymnasium.environment import BareEnvironment
from clipup.engines.physics import WITHOUT_PHYSICS
from clipup.engines.protocol import EngineEntry, is_installed, library_version
from clipup.engines.rendering import Episode
from clipup.engines.task import OwnTask, Task
from clipup.errors import ClipUpError, InvalidArgument, MissingDependency, UnknownEnvironment
from clipup.policies import Policy

SIMULATORS = {
    "gymnasium.envs.box2d": {"Box2D": "train"},
    "gymnasium.envs.mujoco": {"mujoco": "train"},
    "pybullet_envs_gymnasium": {"pybullet": "bullet", "pybullet_envs_gymnasium": "bullet"},
}
"""The modules that environments need besides Gymnasium, by where the environment is defined."""

_VERSIONED = re.compile(r"[^:]+-v\d+")  # Gymnasium itself finds the version where an id has none


class GymnasiumEntry(EngineEntry):
    """Gymnasium: every environment with its interface, callables and ``module:EnvId`` included."""

    name = NAME
    title = "Gymnasium"
    summary = "runs any Gymnasium environment, one candidate at a time in each process"
    distributions = ("gymnasium", "mujoco", "pybullet", "pybullet-envs-gymnasium")

    def ids(self) -> Collection[str]:
        """Return the ids that Gymnasium knows now."""
        if not is_installed("gymnasium"):
            return ()
        import gymnasium

        return gymnasium.registry.keys()

    def has(self, env: str) -> bool:
        """Return whether Gymnasium knows that id, or would import a module for it."""
        return ":" in env or env in self.ids()

    def refusal(self, task: Task) -> ClipUpError | None:
        """Return an error if Gymnasium is missing, or for what it does not have: all else shows when one is made."""
        if isinstance(task.env, OwnTask):
            return InvalidArgument(f"Gymnasium runs environments, and {task.label} is a task of the compiled engine")
        if not is_installed("gymnasium"):
            return MissingDependency.of("gymnasium", extra="train")
        if task.physics is not None:
            return InvalidArgument(f"Gymnasium cannot train on other physics than its own; {WITHOUT_PHYSICS}")
        if isinstance(task.env, str) and _VERSIONED.fullmatch(task.env) and task.env not in self.ids():
            return UnknownEnvironment(f"Gymnasium has no {task.env!r}")  # told before processes are started
        return None

    def make(self, task: Task, *, lanes: int, threads: int | None, reason: str) -> GymnasiumEngine:
        """Return the engine, which has neither lanes nor threads."""
        return GymnasiumEngine(task, reason=reason)

    def version(self, env: str) -> str:
        """Return Gymnasium's version."""
        return library_version("gymnasium") if is_installed("gymnasium") else ""

    def libraries(self, task: Task) -> Mapping[str, str]:
        """Return Gymnasium and the simulator of the environment, where that is known."""
        found = {"gymnasium": "train"}
        origin = ""
        if isinstance(task.env, str) and ":" in task.env:
            origin = task.env.partition(":")[0]
        elif isinstance(task.env, str) and task.env in self.ids():
            import gymnasium

            origin = str(cast(Any, gymnasium.registry[task.env]).entry_point)
        for place, modules in SIMULATORS.items():
            if origin.startswith(place):
                found |= modules
        return found

    def bare_simulator(self, task: Task, *, count: int, threads: int) -> BareEnvironment:
        """Return one environment, stepped without pause."""
        return BareEnvironment(task, count=count)

    def rendering_refusal(self, task: Task) -> None:
        """Return None: whether an environment can render shows when it is made."""

    def play(self, policy: Policy, task: Task, *, seed: int, episode: int) -> Episode:
        """Render an episode in an environment made for it."""
        return rendering.play(policy, task, seed=seed, episode=episode)
