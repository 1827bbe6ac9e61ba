"""What the compiled engine can run, and how it is made."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext

from clipup.compilation import machine_code
from clipup.engines.compiled import NAME, named, rendering
from clipup.engines.compiled.bare import BareKernel
from clipup.engines.compiled.engine import CompiledEngine, describe
from clipup.engines.compiled.mujoco_batch import QuietLog
from clipup.engines.compiled.mujoco_world import library, with_physics
from clipup.engines.compiled.simulators import actions_of
from clipup.engines.compiled.task import ArrayTask, CompiledTask, MujocoTask
from clipup.engines.compiled.tasks import BUILT_IN, classic
from clipup.engines.compiled.tasks import task as built_in
from clipup.engines.gymnasium import rendering as gymnasium_rendering
from clipup.engines.protocol import EngineDescription, EngineEntry, is_installed, library_version
from clipup.engines.rendering import Episode
from clipup.engines.task import Task
from clipup.errors import BrokenTask, ClipUpError, InvalidArgument, MissingDependency, UnknownEnvironment
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
        missing = {module for module in ("numba", "mujoco", "gymnasium") if not is_installed(module)}
        return [env for env in BUILT_IN if missing.isdisjoint(_needed(env))]

    def has(self, env: str) -> bool:
        """Return whether `env` is a built-in task, or has the form of the name of a task of one's own."""
        return env in self.ids() or (":" in env and named.may_name_a_task(env))

    def refusal(self, task: Task) -> ClipUpError | None:
        """Return None if the engine can run `task` with every option, else the error that says why not."""
        own: CompiledTask | None = None
        try:
            own = _own(task)
        except (UnknownEnvironment, BrokenTask) as error:
            return error
        if own is None and not isinstance(task.env, str):
            return InvalidArgument("the compiled engine runs its own tasks only, and this one is a callable")
        if own is None and task.env not in BUILT_IN:
            return UnknownEnvironment(f"the compiled engine has no {task.env}")
        for module, extra in _missing(own or str(task.env)).items():
            return MissingDependency.of(module, extra=extra)
        if "mujoco" in _needed(own or str(task.env)) and _version("mujoco") < OLDEST_MUJOCO:
            oldest = ".".join(map(str, OLDEST_MUJOCO))
            return InvalidArgument(f"the compiled engine needs MuJoCo {oldest} or newer: pip install -U mujoco")
        if task.wrappers:
            text = "the compiled engine cannot wrap its tasks"
            return InvalidArgument(text) if own is None else BrokenTask(f"{text}, and {task.label} is one of them")
        if task.reward_terms is not None:
            return InvalidArgument("the compiled engine does not tell the terms of a reward (reward_terms)")
        if task.env_options or task.physics is not None:
            try:
                _compiled(task)
            except ClipUpError as error:
                only_here = own is not None or task.physics is not None  # no other engine can run it
                return BrokenTask(str(error)) if only_here else error
        return None

    def make(self, task: Task, *, lanes: int, threads: int | None, reason: str) -> CompiledEngine:
        """Return the engine, which has no lanes."""
        return CompiledEngine(task, _compiled(task), threads=threads or available_threads(), reason=reason)

    def describe(self, task: Task, *, reason: str) -> EngineDescription:
        """Return the description without compiling anything."""
        compiled = _compiled(task)
        with _quiet(str(task.env)):
            return describe(task, compiled, actions_of(compiled), reason)

    def version(self, env: str) -> str:
        """Return MuJoCo's version, or clipup's own where no MuJoCo takes part.

        Nothing is imported, so a task of one's own that is only named may have either: "" stands for that.
        """
        if ":" in env:
            return ""
        distribution = "clipup" if env in WITHOUT_MUJOCO else "mujoco"
        return library_version(distribution) if is_installed(distribution) else ""

    def libraries(self, task: Task) -> Mapping[str, str] | None:
        """Return Numba and, for a MuJoCo task, MuJoCo and Gymnasium, which has the model; None for other tasks.

        Nothing is imported, so the libraries of a task that is only named are not known.
        """
        if isinstance(task.env, MujocoTask | ArrayTask):
            return _needed(task.env)
        if not isinstance(task.env, str) or task.env not in BUILT_IN:
            return None
        return None if set(task.env_options) - set(BUILT_IN[task.env].defaults) else _needed(task.env)

    def bare_simulator(self, task: Task, *, count: int, threads: int) -> BareKernel:
        """Return a loop over recorded actions: nothing but physics, in machine code, on as many threads."""
        return BareKernel(_compiled(task), count=count, threads=threads)

    def rendering_refusal(self, task: Task) -> ClipUpError | None:
        """Return an error where a task of one's own has no picture, or where Gymnasium, which draws others, is missing.

        Gymnasium's environment of the same name draws the same episode.
        """
        own = _own(task)
        if isinstance(own, ArrayTask) and own.render is None:
            return BrokenTask(f"{own.name} cannot be rendered: it has no function render (see clipup.ArrayTask)")
        if own is not None or is_installed("gymnasium"):
            return None
        return MissingDependency.of("gymnasium", extra="train")

    def play(self, policy: Policy, task: Task, *, seed: int, episode: int) -> Episode:
        """Render an episode: in MuJoCo itself, by the task's own function, or in Gymnasium's environment."""
        if _own(task) is not None:
            return rendering.play(policy, _compiled(task), seed=seed, episode=episode)
        return gymnasium_rendering.play(policy, task, seed=seed, episode=episode)


def _own(task: Task) -> CompiledTask | None:
    """Return the task of one's own that `task` is or names; None if it is something else."""
    if isinstance(task.env, MujocoTask | ArrayTask):
        return named.named(task.env)
    if isinstance(task.env, str) and ":" in task.env and named.may_name_a_task(task.env):
        return named.find(task.env)
    return None


def _compiled(task: Task) -> CompiledTask:
    own = _own(task)
    if own is not None:
        compiled = named.with_options(own, task.env_options)
    else:
        with _quiet(str(task.env)):
            compiled = built_in(str(task.env), task.env_options)
    if task.physics is None:
        return compiled
    if not isinstance(compiled, MujocoTask):
        raise InvalidArgument(f"{task.label} has no physics of MuJoCo to change; train without it (--physics none)")
    return with_physics(compiled, task.physics)


def _needed(task: str | CompiledTask) -> dict[str, str]:
    found = {} if machine_code.is_disabled() else {"numba": "train"}
    if isinstance(task, str) and task not in WITHOUT_MUJOCO:
        found |= {"mujoco": "train", "gymnasium": "train"}
    return found | {"mujoco": "train"} if isinstance(task, MujocoTask) else found


def _quiet(env: str) -> AbstractContextManager[object]:
    """Return a context in which MuJoCo does not print, and writes no file, about a model of Gymnasium's."""
    return nullcontext() if env in WITHOUT_MUJOCO else QuietLog(library())


def _version(distribution: str) -> tuple[int, ...]:
    return tuple(int(part) for part in library_version(distribution).split(".")[:2] if part.isdecimal())


def _missing(task: str | CompiledTask) -> dict[str, str]:
    return {module: extra for module, extra in _needed(task).items() if not is_installed(module)}
