"""All engines, in the order in which ``engine = "auto"`` tries them, and the choice of one for a task."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from clipup.engines.compiled.entry import CompiledEntry
from clipup.engines.envpool.entry import EnvPoolEntry
from clipup.engines.gymnasium.entry import GymnasiumEntry
from clipup.engines.protocol import DEFAULT_LANES, Engine, EngineDescription, EngineEntry, is_installed
from clipup.engines.task import Task, check_count
from clipup.errors import BrokenTask, ClipUpError, InvalidArgument, MissingDependency, UnknownEnvironment
from clipup.suggestions import did_you_mean, nearest

T = TypeVar("T")

AUTO = "auto"
ENTRIES: tuple[EngineEntry, ...] = (CompiledEntry(), EnvPoolEntry(), GymnasiumEntry())
"""Read it as ``registry.ENTRIES``: tests put their own engines into it."""
ASKED = "asked for"
"""The reason where the task names its engine."""
_NO_FORCES = "the last 84 inputs of {} are contact forces, and always zero on EnvPool (without post_constraint)"
_DIFFERENCES = {env: _NO_FORCES.format(env) for env in ("Humanoid-v4", "HumanoidStandup-v4")}
HONOURED = "honours every option"
"""How the reason ends where the first engine that knows the task was taken."""
_BEFORE = ("envpool", "gymnasium")
"""What ``"auto"`` tried in version 0.1, whose files do not name the engine that it chose."""


def names() -> tuple[str, ...]:
    """Return the choices of the setting ``engine``."""
    return (AUTO, *(entry.name for entry in ENTRIES))


def entry(name: str) -> EngineEntry:
    """Return the entry of that name; `InvalidArgument` if there is none."""
    for candidate in ENTRIES:
        if candidate.name == name:
            return candidate
    raise InvalidArgument(f"engine must be one of {', '.join(names())}, got {name!r}{did_you_mean(name, names())}")


def allowed(task: Task) -> tuple[EngineEntry, ...]:
    """Return the engines that `task` lets one choose from: all, or the one that it names."""
    return ENTRIES if task.engine == AUTO else (entry(task.engine),)


def choose(task: Task, *, rendering: bool = False) -> tuple[EngineEntry, str]:
    """Return the first engine that can run `task` with every option (and render it), and why it was chosen.

    Where no engine can, raise the refusal of the last one tried. A `BrokenTask` is raised at once.
    """
    refusals: list[ClipUpError] = []
    for candidate in allowed(task):
        refusal = candidate.refusal(task)
        if refusal is None and rendering:
            refusal = candidate.rendering_refusal(task)
        if refusal is None:
            return candidate, _reason(task, candidate, refusals)
        if isinstance(refusal, BrokenTask):
            raise refusal
        refusals.append(refusal)
    raise explained(task, refusals[-1])


def _reason(task: Task, chosen: EngineEntry, refusals: list[ClipUpError]) -> str:
    if task.engine != AUTO:
        return ASKED
    # An engine that does not have the task explains nothing, unless no engine of that kind has it.
    telling = [error for error in refusals if not isinstance(error, UnknownEnvironment)]
    if not telling and chosen is ENTRIES[-1]:
        telling = refusals[-1:]
    return "; ".join(map(str, telling)) or f"{chosen.title} has {task.label} and {HONOURED}"


def difference(env: str) -> str | None:
    """Return in one line how the environment differs from engine to engine, where policies notice it."""
    return _DIFFERENCES.get(env)


def engine_before(task: Task) -> str:
    """Return the engine that version 0.1 would have taken for a task with ``"auto"``; ``"auto"`` if it had none."""
    names = [name for name in _BEFORE if entry(name).refusal(task) is None]
    return names[0] if names else AUTO


def make_engine(task: Task, *, lanes: int = DEFAULT_LANES, threads: int | None = None) -> Engine:
    """Return the engine for `task`.

    Parameters
    ----------
    task
        What is run; its `engine` says which engine, or ``"auto"``.
    lanes
        How many simulators EnvPool holds at most (twice as many while a population is larger). It is part of what is
        computed (a candidate beyond the lanes continues the random numbers of the one before it on its lane), so it
        must not follow the machine. Even, for ``episode_seeds="pair"``. Best equal to the population size, where memory
        allows.
    threads
        Threads of an engine that has its own; None takes all processors. Results do not depend on it.
    """
    check_count("lanes", lanes)
    if threads is not None:
        check_count("threads", threads)
    return _with_choice(task, lambda chosen, reason: chosen.make(task, lanes=lanes, threads=threads, reason=reason))


def describe(task: Task) -> EngineDescription:
    """Return what the engine for `task` would say of itself; no environment is made where that is not needed."""
    return _with_choice(task, lambda chosen, reason: chosen.describe(task, reason=reason))


def _with_choice(task: Task, use: Callable[[EngineEntry, str], T]) -> T:
    """Return what `use` makes of the engine that is chosen, and why it was; explain its refusal."""
    chosen, reason = choose(task)
    try:
        return use(chosen, reason)
    except MissingDependency:
        raise
    except InvalidArgument as error:
        others = [other for other in allowed(task) if other is not chosen and other.has(str(task.env))]
        refusal = next(filter(None, (other.refusal(task) for other in others)), None)
        if refusal is not None:
            raise type(refusal)(f"{refusal}; nor can {chosen.title} run it: {error}") from error
        raise explained(task, error) from error


def explained(task: Task, error: ClipUpError) -> ClipUpError:
    """Return `error`, or a better one if it says that an environment is unknown: which engine or id may be meant."""
    if not isinstance(error, UnknownEnvironment) or not isinstance(task.env, str) or ":" in task.env:
        return error
    others = [candidate for candidate in ENTRIES if candidate.has(task.env)]
    if others:
        where = ", ".join(candidate.title for candidate in others)
        choices = " or ".join(repr(name) for name in (*(candidate.name for candidate in others), AUTO))
        return UnknownEnvironment(f"{error}; {where} does (engine {choices})")
    near = nearest(task.env, sorted({env for candidate in ENTRIES for env in candidate.ids()}), count=4)
    hint = f"did you mean {', '.join(near)}?" if near else "an environment of your own is named 'module:EnvId'"
    if not near and not re.search(r"-v\d+\Z", task.env):  # perhaps the name of a function or class, not an id
        name = task.env.rpartition(".")[2]
        hint += (
            f", a function or class that makes one 'module:{name}'; a run that was trained on one takes it again: "
            f"--env module:{name}, or from Python clipup.resume(run, env={name}) and clipup.evaluate(run, {name})"
        )
    where = " or ".join(candidate.title for candidate in ENTRIES)
    return UnknownEnvironment(f"no environment {task.env!r} in {where}; {hint}")


def libraries(task: Task) -> dict[str, str]:
    """Return the modules that a run of `task` imports, each with the extra that installs it.

    They are those of the first engine whose libraries are all installed; where there is none, of the first engine that
    could run the task. Options of an environment belong to that engine alone.
    """
    needed = [dict(found) for found in (candidate.libraries(task) for candidate in allowed(task)) if found is not None]
    complete = [found for found in needed if all(map(is_installed, found))]
    usable = needed if task.env_options else complete + needed
    return usable[0] if usable else {}


def distributions() -> tuple[str, ...]:
    """Return the packages of all engines whose versions belong with results."""
    return tuple(dict.fromkeys(name for candidate in ENTRIES for name in candidate.distributions))
