"""What an engine is, and what it tells the rest of clipup about itself.

To add an engine, write one `EngineEntry` in a module of its own and name it in `clipup.engines.registry.ENTRIES`. Every
engine goes through tests/contract/test_engines.py, which also holds a toy engine of a few lines to copy.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from clipup.engines.inspection import Inspection
from clipup.engines.outcomes import Outcomes
from clipup.engines.rendering import Episode
from clipup.engines.rollout import Rollout
from clipup.engines.task import Task
from clipup.errors import ClipUpError, InvalidArgument
from clipup.policies import Actions, Observations, Policy
from clipup.policies.act import Actor

DEFAULT_LANES = 256
"""How many simulators an engine that runs candidates in lanes holds at most, unless another number is given."""


@dataclass(frozen=True)
class EngineDescription:
    """What an engine says about itself; small, so that a worker can send it whole.

    Attributes
    ----------
    name, version
        The engine's name in the registry, and the version of the simulator library behind it.
    reason
        Why this engine was chosen.
    observation_size, actions
        What the task gives, and how outputs become what it takes.
    own_limit
        Whether the environment itself limits the length of its episodes.
    solved_score
        The score from which on its registration calls the environment solved; None where it does not say.
    observations
        The parts of an observation and their order in the vector; None where it is a vector by itself.
    """

    name: str
    version: str
    reason: str
    observation_size: int
    actions: Actions
    own_limit: bool = True
    solved_score: float | None = None
    observations: Observations | None = None


class Engine(Protocol):
    """Runs candidates in a simulator.

    The result of candidate ``first + j`` depends only on row j of the parameters, the statistics, the task and
    (seed, generation, candidate, stream). It does not depend on the other rows, the number of threads, what was
    evaluated before, or how often. An engine with lanes may also depend on their number, so that number is part of the
    task's definition and never follows the machine.
    """

    description: EngineDescription

    @property
    def name(self) -> str:
        """The engine's name."""
        return self.description.name

    @property
    def reason(self) -> str:
        """Why this engine was chosen."""
        return self.description.reason

    @property
    def observation_size(self) -> int:
        """Length of an observation."""
        return self.description.observation_size

    @property
    def actions(self) -> Actions:
        """How outputs become actions."""
        return self.description.actions

    def evaluate(self, rollout: Rollout) -> Outcomes:
        """Evaluate the candidates of `rollout` and return their outcomes in order."""
        ...

    def inspect(self) -> Inspection:
        """Look at the task before training: what is odd about it, and what its first steps compute.

        Raise `InvalidArgument` where its episodes never end.
        """
        return Inspection()

    def close(self) -> None:
        """Free the simulators. The engine can be used again and then makes new ones."""
        ...


class BareSimulator(Protocol):
    """A simulator with nothing around it: the yardstick of ``clipup bench``."""

    def steps_per_second(self, actor: Actor, parameters: NDArray[np.float32], seconds: float) -> float:
        """Step for about `seconds`, with actions from fixed policies (one per row), and return the speed."""
        ...

    def close(self) -> None:
        """Free the simulator."""
        ...


class EngineEntry(Protocol):
    """One engine in the registry: what it can run, and how it is made. Importing an entry must not import a simulator.

    Attributes
    ----------
    name, title
        The value of the setting ``engine`` that asks for it, and its name in sentences.
    summary
        One line for help texts: what it is good for.
    preferred_candidates
        How many candidates it likes at once: fewer waste its speed.
    own_threads
        True if it runs candidates in parallel inside one process. False if parallel work needs more processes.
    distributions
        The packages whose versions are recorded with results.
    """

    name: str
    title: str
    summary: str = ""
    preferred_candidates: int = 2
    own_threads: bool = False
    distributions: tuple[str, ...] = ()

    @property
    def parallelism(self) -> str:
        """What the engine's parallel workers are."""
        return "threads" if self.own_threads else "processes"

    def refusal(self, task: Task) -> ClipUpError | None:
        """Return None if the engine can run `task` with every option, else an error that says why not in one line."""
        ...

    def ids(self) -> Collection[str]:
        """Return the ids of the environments that it knows; none where its library is missing."""
        ...

    def has(self, env: str) -> bool:
        """Return whether it knows the environment of that id."""
        return env in self.ids()

    def make(self, task: Task, *, lanes: int, threads: int | None, reason: str) -> Engine:
        """Return an engine for `task`, which `refusal` did not refuse; see `make_engine` for the arguments."""
        ...

    def describe(self, task: Task, *, reason: str) -> EngineDescription:
        """Return what an engine for `task`, which `refusal` did not refuse, would say of itself."""
        engine = self.make(task, lanes=2, threads=1, reason=reason)
        engine.close()
        return engine.description

    def version(self, env: str) -> str:
        """Return the version of the simulator that would run the environment here; nothing where it is not known."""
        return ""

    def libraries(self, task: Task) -> Mapping[str, str] | None:
        """Return the modules that running `task` imports, each with the extra that installs it.

        None says that the engine never runs such a task, whatever is installed.
        """
        return {}

    def bare_simulator(self, task: Task, *, count: int, threads: int) -> BareSimulator:
        """Return the simulator alone, for `count` policies and seeds that never change."""
        raise InvalidArgument(f"{self.title} cannot be measured without a policy search around it")

    def prepare_rendering(self) -> None:
        """Do what must be done before the simulator is first imported, so that it can render."""

    def rendering_refusal(self, task: Task) -> ClipUpError | None:
        """Return None if the engine can render `task` on this machine, else an error that says why not in one line."""
        return InvalidArgument(f"{self.title} cannot render")

    def play(self, policy: Policy, task: Task, *, seed: int, episode: int) -> Episode:
        """Render an episode of `policy`: the one that an evaluation with this seed gives this number."""
        raise InvalidArgument(f"{self.title} cannot render")


def registered_score(env: str) -> float | None:
    """Return the score from which on Gymnasium's registration calls an environment solved, if it says so."""
    if not is_installed("gymnasium"):
        return None
    import gymnasium

    score = getattr(cast(Any, gymnasium).registry.get(env), "reward_threshold", None)
    return None if score is None else float(score)


@cache
def library_version(distribution: str) -> str:
    """Return the version of an installed package."""
    from importlib.metadata import version  # slow to import, and needed only when an engine is made

    return version(distribution)


def is_installed(module: str) -> bool:
    """Return whether a top-level module can be imported, without importing it."""
    return importlib.util.find_spec(module) is not None
