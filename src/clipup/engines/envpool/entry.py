"""What EnvPool can run, and how its engine is made."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

from clipup.engines.envpool import NAME, rendering
from clipup.engines.envpool.engine import EnvPoolEngine, describe
from clipup.engines.envpool.pool import IMAGE_FAMILY, BarePool, pool_layout, registered
from clipup.engines.physics import WITHOUT_PHYSICS
from clipup.engines.protocol import EngineDescription, EngineEntry, is_installed, library_version
from clipup.engines.rendering import Episode
from clipup.engines.task import Task
from clipup.errors import (
    ClipUpError,
    EnvironmentFault,
    InvalidArgument,
    MissingDependency,
    UnknownEnvironment,
    one_line,
)
from clipup.policies import Policy
from clipup.processors import available_threads

POOL_KEYS = frozenset({
    "num_envs", "batch_size", "num_threads", "max_num_players", "thread_affinity_offset", "base_path", "seed",
    "env_seed", "gym_reset_return_info", "max_episode_steps", "reward_threshold",
})  # fmt: skip
"""Keys of an EnvPool configuration that belong to the pool or to `Task`, not to the environment."""


class EnvPoolEntry(EngineEntry):
    """EnvPool: its own C++ environments, many at once, on its own threads."""

    name = NAME
    title = "EnvPool"
    summary = "steps many of its own environments at once in C++ threads"
    preferred_candidates = 32  # it steps candidates together, and is slow with few
    own_threads = True
    distributions = ("envpool",)

    def ids(self) -> Collection[str]:
        """Return the ids in EnvPool's registry."""
        return registered().keys()

    def refusal(self, task: Task) -> ClipUpError | None:
        """Return None if EnvPool can run `task` with every option, else the error that says why not."""
        if not isinstance(task.env, str):
            return InvalidArgument(f"EnvPool runs its own environments only, and {task.label} is an object")
        if ":" in task.env:
            return InvalidArgument(f"EnvPool runs its own environments only, and {task.env} is imported from a module")
        if not is_installed("envpool"):
            return MissingDependency.of("envpool", extra="train")
        if task.env not in self.ids():
            return UnknownEnvironment(f"EnvPool has no {task.env}")
        if registered()[task.env][0] == IMAGE_FAMILY:
            return InvalidArgument(f"EnvPool's {task.env} shows images, and clipup has no policies that see")
        if task.wrappers:
            return InvalidArgument("EnvPool cannot wrap its environments")
        if task.reward_terms is not None:
            return InvalidArgument("EnvPool does not tell the terms of a reward (reward_terms)")
        if task.physics is not None:
            return InvalidArgument(f"EnvPool cannot train on other physics than its own; {WITHOUT_PHYSICS}")
        try:
            _check_options(task.env, task.env_options)
            layout = pool_layout(task)
        except InvalidArgument as error:
            return error
        if task.episodes > 1 and task.episode_seeds != "independent" and not layout.replayable:
            return InvalidArgument(
                f"EnvPool's {task.env} starts an episode where the one before left its random numbers, so candidates "
                f"can share the start of their first episode only (episode_seeds {task.episode_seeds!r}, "
                f"{task.episodes} episodes)"
            )
        return None

    def make(self, task: Task, *, lanes: int, threads: int | None, reason: str) -> EnvPoolEngine:
        """Return the engine."""
        return EnvPoolEngine(task, lanes=lanes, threads=threads or available_threads(), reason=reason)

    def describe(self, task: Task, *, reason: str) -> EngineDescription:
        """Return the description, which EnvPool knows without making an environment."""
        return describe(pool_layout(task), reason)

    def version(self, env: str) -> str:
        """Return EnvPool's version."""
        return library_version("envpool") if is_installed("envpool") else ""

    def libraries(self, task: Task) -> Mapping[str, str] | None:
        """Return EnvPool and what its engine uses; None for what is not an id of its own."""
        if not isinstance(task.env, str) or ":" in task.env:
            return None
        return {"gymnasium": "train", "envpool": "train"}

    def bare_simulator(self, task: Task, *, count: int, threads: int) -> BarePool:
        """Return one pool in which every environment steps at every round."""
        return BarePool(task, count=count, threads=threads)

    def prepare_rendering(self) -> None:
        """Load OpenGL before EnvPool is imported."""
        rendering.load_opengl()

    def rendering_refusal(self, task: Task) -> ClipUpError | None:
        """Return an error where drawing `task` needs OpenGL and there is none that works."""
        if rendering.can_draw(task):
            return None
        return EnvironmentFault(f"EnvPool cannot render {task.label} here: no usable EGL or OpenGL library")

    def play(self, policy: Policy, task: Task, *, seed: int, episode: int) -> Episode:
        """Render an episode in a pool of one environment."""
        return rendering.play(policy, task, seed=seed, episode=episode)


def _check_options(name: str, options: Mapping[str, object]) -> None:
    """Raise `InvalidArgument` for a keyword argument that EnvPool's environment does not take."""
    if not options:
        return
    import envpool

    try:
        spec = cast(Any, envpool).make_spec(name)
    except ImportError as error:
        raise InvalidArgument(f"EnvPool cannot load {name}: {one_line(error)}") from error
    known = sorted(set(cast("list[str]", spec._config_keys)) - POOL_KEYS)
    for option in options:
        if option not in known:
            choice = f"it takes {', '.join(known)}" if known else "it takes none"
            if option in POOL_KEYS:
                choice = "it is set by the task or the engine"
            raise InvalidArgument(f"EnvPool's {name} has no option {option!r}: {choice}")
