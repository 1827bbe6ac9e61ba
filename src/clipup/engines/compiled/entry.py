"""What the compiled engine can run, and how it is made."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext

from clipup.compilation import machine_code
from clipup.engines.compiled import NAME
from clipup.engines.compiled.bare import BareKernel
from clipup.engines.compiled.engine import CompiledEngine
from clipup.engines.compiled.mujoco_batch import QuietLog
from clipup.engines.compiled.mujoco_world import library
from clipup.engines.compiled.tasks import BUILT_IN, classic
from clipup.engines.compiled.tasks import task as built_in
from clipup.engines.gymnasium import rendering
from clipup.engines.protocol import EngineEntry, is_installed, library_version
from clipup.engines.rendering import Episode
from clipup.engines.task import Task
from clipup.errors import ClipUpError, InvalidArgument, MissingDependency, UnknownEnvironment
from clipup.policies import Policy
from clipup.processors import available_threads

WITHOUT_MUJOCO = frozenset(entry.id for entry in classic.TASKS)
OLDEST_MUJOCO = (3, 17)
"""The first version with ``mjb_apply``, which catches MuJoCo's errors."""


class CompiledEntry(EngineEntry):
    """Machine code: whole episodes of the tasks that clipup knows itself, on threads of this process."""

    name = NAME
    title = "the compiled engine"
    summary = "runs whole episodes of MuJoCo and classic control in machine code, on threads"
    preferred_candidates = 8  # an evaluation starts threads, which costs as much as a few short episodes
    own_threads = True
    distributions = ("mujoco", "numba", "gymnasium")

    def ids(self) -> Collection[str]:
        """Return the ids of the built-in tasks that can run with what is installed."""
        return [env for env in BUILT_IN if not _missing(env)]

    def refusal(self, task: Task) -> ClipUpError | None:
        """Return None if the engine can run `task` with every option, else the error that says why not."""
        if not isinstance(task.env, str):
            return InvalidArgument("the compiled engine runs its own tasks only, and this one is a callable")
        if task.env not in BUILT_IN:
            return UnknownEnvironment(f"the compiled engine has no {task.env}")
        for module, extra in _missing(task.env).items():
            return MissingDependency.of(module, extra=extra)
        if task.env not in WITHOUT_MUJOCO and _version("mujoco") < OLDEST_MUJOCO:
            oldest = ".".join(map(str, OLDEST_MUJOCO))
            return InvalidArgument(f"the compiled engine needs MuJoCo {oldest} or newer: pip install -U mujoco")
        if task.reward_terms is not None:
            return InvalidArgument("the compiled engine does not tell the terms of a reward (reward_terms)")
        if task.env_options:
            try:
                with _quiet(task.env):
                    built_in(task.env, task.env_options)
            except ClipUpError as error:
                return error
        return None

    def make(self, task: Task, *, lanes: int, threads: int | None, reason: str) -> CompiledEngine:
        """Return the engine, which has no lanes."""
        with _quiet(str(task.env)):
            compiled = built_in(str(task.env), task.env_options)
            return CompiledEngine(task, compiled, threads=threads or available_threads(), reason=reason)

    def version(self, env: str) -> str:
        """Return MuJoCo's version, or clipup's own where no MuJoCo takes part."""
        distribution = "clipup" if env in WITHOUT_MUJOCO else "mujoco"
        return library_version(distribution) if is_installed(distribution) else ""

    def libraries(self, task: Task) -> Mapping[str, str] | None:
        """Return Numba and, for a MuJoCo task, MuJoCo and Gymnasium, which has the model; None for other tasks."""
        if not isinstance(task.env, str) or task.env not in BUILT_IN:
            return None
        return None if set(task.env_options) - set(BUILT_IN[task.env].defaults) else _needed(task.env)

    def bare_simulator(self, task: Task, *, count: int, threads: int) -> BareKernel:
        """Return a loop over recorded actions: nothing but physics, in machine code, on as many threads."""
        with _quiet(str(task.env)):
            return BareKernel(built_in(str(task.env), task.env_options), count=count, threads=threads)

    def rendering_refusal(self, task: Task) -> ClipUpError | None:
        """Return an error where Gymnasium is missing, whose environment of the same name draws the same episode."""
        return None if is_installed("gymnasium") else MissingDependency.of("gymnasium", extra="train")

    def play(self, policy: Policy, task: Task, *, seed: int, episode: int) -> Episode:
        """Render an episode in Gymnasium's environment of the same name, which gives the same episode."""
        return rendering.play(policy, task, seed=seed, episode=episode)


def _needed(env: str) -> dict[str, str]:
    found = {} if machine_code.is_disabled() else {"numba": "train"}
    if env not in WITHOUT_MUJOCO:
        found |= {"mujoco": "train", "gymnasium": "train"}
    return found


def _quiet(env: str) -> AbstractContextManager[None]:
    """Return a context in which MuJoCo does not print, and writes no file, about a model of Gymnasium's."""
    return nullcontext() if env in WITHOUT_MUJOCO else QuietLog(library())


def _version(distribution: str) -> tuple[int, ...]:
    return tuple(int(part) for part in library_version(distribution).split(".")[:2] if part.isdecimal())


def _missing(env: str) -> dict[str, str]:
    return {module: extra for module, extra in _needed(env).items() if not is_installed(module)}
