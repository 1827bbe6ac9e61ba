"""Tasks that run in machine code: a MuJoCo model or a state vector, and a few small functions.

The functions are written in the Python that Numba compiles: numbers, tuples, loops, `math` and numpy arrays. They need
no decorator. A function that they call must be in reach as a plain name (``from my_sums import total``), and is
compiled with them. They are also run as plain Python, once when a task is first used, so a mistake is found with its
line. Actions are float32: numpy keeps ``0.1 * action[0]`` in float32 and Numba does not, so write ``float(action[0])``
where plain Python (``NUMBA_DISABLE_JIT=1``) is to give the same bits as machine code.

A robot of one's own::

    class Options(NamedTuple):
        speed_weight: float = 1.0

    def observe(model, data, options, observation):
        observation[: model.nq] = data.qpos
        observation[model.nq :] = data.qvel

    def reward(model, data, options, memory, action):
        return options.speed_weight * data.qvel[0]

    def fallen(model, data, options, observation):
        return data.qpos[2] < 0.2

    Crawler = MujocoTask(model="crawler.xml", observation_size=27, observe=observe, reward=reward, terminated=fallen,
                         options=Options(), frame_skip=5)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from clipup.engines.task import OwnTask
from clipup.errors import InvalidArgument
from clipup.policies.actions import Actions

Vector: TypeAlias = NDArray[np.float64]
# MuJoCo's structures, and options of any NamedTuple: their types are the user's, so they stay open here.
Model: TypeAlias = Any
Data: TypeAlias = Any
Options: TypeAlias = Any

Observe: TypeAlias = Callable[[Model, Data, Options, Vector], None]
Before: TypeAlias = Callable[[Model, Data, Options, Vector], None]
Control: TypeAlias = Callable[[Model, Data, Options, Any], None]
Reward: TypeAlias = Callable[[Model, Data, Options, Vector, Any], float]
Terminated: TypeAlias = Callable[[Model, Data, Options, Vector], bool]
Start: TypeAlias = Callable[[np.random.Generator, Model, Options], tuple[Vector, Vector]]
Randomize: TypeAlias = Callable[[Any, Model, Options], None]

ArrayReset: TypeAlias = Callable[[Any, Vector, Options], None]
ArrayStep: TypeAlias = Callable[[Vector, Any, Any, Options], tuple[float, bool]]
ArrayObserve: TypeAlias = Callable[[Vector, Options, Vector], None]
ArrayRender: TypeAlias = Callable[[Vector, Options], Any]

UNNAMED = "the task"


@dataclass(frozen=True, kw_only=True)
class MujocoTask(OwnTask):
    """A MuJoCo model with what is observed, what is rewarded and when an episode is over.

    `model` and `data` in the functions are objects with MuJoCo's own field names (``data.qpos``, ``model.body_mass``,
    ``model.opt.timestep``). In machine code they hold the fields that the functions name, and nothing else.

    One step of an episode: `before`, then `control`, then `frame_skip` steps of physics, then `reward`, `observe` and
    `terminated`.

    Parameters
    ----------
    model
        A path to an MJCF file (a relative one starts at the file that defines `observe`), MJCF text (it starts with
        ``<``), or a callable without arguments that returns a ``mujoco.MjModel`` or a ``mujoco.MjSpec``.
    observation_size
        Length of an observation.
    observe
        ``observe(model, data, options, observation)`` fills the float64 vector `observation`.
    reward
        ``reward(model, data, options, memory, action)`` returns the reward of the step that was just taken. `action` is
        what the policy chose: a float32 vector, or a whole number for discrete actions.
    terminated
        ``terminated(model, data, options, observation)`` returns whether the episode is over. None: never before
        `max_episode_steps`.
    options
        A NamedTuple of numbers, booleans and tuples of numbers, given to all functions. Other values need no new
        compilation.
    frame_skip
        Steps of physics for each action.
    max_episode_steps
        Where episodes are cut.
    actions
        Bounds of the actions. None: one float32 number for each control, bounded as in the model. A task may take
        discrete actions if it has a `control`.
    control
        ``control(model, data, options, action)`` writes ``data.ctrl`` from the action. None: ``data.ctrl[:] = action``.
    before
        ``before(model, data, options, memory)`` runs before the physics of each step, and remembers in `memory` what
        the reward needs (such as the position before the step).
    memory_size
        Length of the float64 vector `memory`. It is zero when an episode starts.
    start
        ``start(generator, model, options)`` returns ``(qpos, qvel)`` for the start of an episode. This one is ordinary
        Python: `generator` is numpy's, seeded for the episode, and `model` is a ``mujoco.MjModel``. None: the model's
        own pose at rest.
    randomize
        ``randomize(random, model, options)`` changes fields of the model for one episode (domain randomization).
        `random` has numpy's methods ``uniform``, ``normal`` and ``random``. The model is as it was loaded when the
        function begins, and derived constants are computed anew after it (``mj_setConst``).
    post_constraint
        Whether ``mj_rnePostConstraint`` is called after the physics of a step, as Gymnasium does. It fills
        ``cfrc_ext``, ``cfrc_int`` and ``cacc``. None: if a function names one of these.
    name
        For messages.
    """

    model: str | Path | Callable[[], object]
    observation_size: int
    observe: Observe
    reward: Reward
    terminated: Terminated | None = None
    options: Options = ()
    frame_skip: int = 1
    max_episode_steps: int = 1000
    actions: Actions | None = None
    control: Control | None = None
    before: Before | None = None
    memory_size: int = 0
    start: Start | None = None
    randomize: Randomize | None = None
    post_constraint: bool | None = None
    name: str = UNNAMED

    def __post_init__(self) -> None:
        _check_counts(self, ("observation_size", "frame_skip", "max_episode_steps"))
        _check_functions(self, required=("observe", "reward"), optional=OPTIONAL)
        _check_options(self.options)
        if self.memory_size < 0 or (self.before is not None and not self.memory_size):
            raise InvalidArgument(
                f"memory_size must be at least 1 where there is a function before, got {self.memory_size}"
            )
        if self.actions is not None and self.actions.kind == "discrete" and self.control is None:
            raise InvalidArgument("discrete actions need a function control that writes data.ctrl")
        _check_actions(self.actions)


OPTIONAL = ("terminated", "control", "before", "start", "randomize")


@dataclass(frozen=True, kw_only=True)
class ArrayTask(OwnTask):
    """A task without a physics library: a state vector and a function that steps it.

    Parameters
    ----------
    state_size, observation_size
        Lengths of the state and of an observation, both float64 vectors.
    actions
        What the policy chooses: a box of float32 numbers, or discrete.
    reset
        ``reset(random, state, options)`` fills `state` for the start of an episode. `random` has numpy's methods
        ``uniform(low, high)``, ``normal(mean, stdev)`` and ``random()``, and gives the numbers that
        ``numpy.random.default_rng(seed)`` gives.
    step
        ``step(state, action, random, options)`` changes `state` and returns ``(reward, terminated)``. `action` is a
        float32 vector, or a whole number for discrete actions.
    observe
        ``observe(state, options, observation)`` fills `observation`. None: the observation is the state.
    options
        A NamedTuple of numbers, booleans and tuples of numbers, given to all functions.
    max_episode_steps
        Where episodes are cut.
    render
        ``render(state, options)`` returns a picture of the state: an array of shape (height, width, 3) and type uint8.
        This one is ordinary Python, and only ``clipup record`` calls it. None: the task cannot be recorded.
    steps_per_second
        How fast a video goes: steps of the task in a second.
    name
        For messages.
    """

    state_size: int
    observation_size: int
    actions: Actions
    reset: ArrayReset
    step: ArrayStep
    observe: ArrayObserve | None = None
    options: Options = ()
    max_episode_steps: int = 1000
    render: ArrayRender | None = None
    steps_per_second: float = 50.0
    name: str = UNNAMED

    def __post_init__(self) -> None:
        _check_counts(self, ("state_size", "observation_size", "max_episode_steps"))
        _check_functions(self, required=("reset", "step"), optional=("observe", "render"))
        if not 0 < self.steps_per_second < float("inf"):
            raise InvalidArgument(f"steps_per_second must be a number above 0, got {self.steps_per_second!r}")
        _check_options(self.options)
        _check_actions(self.actions)
        if self.observe is None and self.state_size != self.observation_size:
            raise InvalidArgument(
                f"without a function observe the state is observed, so observation_size must be {self.state_size}, "
                f"got {self.observation_size}"
            )


CompiledTask: TypeAlias = MujocoTask | ArrayTask


def _check_counts(task: object, names: tuple[str, ...]) -> None:
    for name in names:
        value = cast(object, getattr(task, name))
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidArgument(f"{name} must be an integer of at least 1, got {value!r}")


def _check_functions(task: object, *, required: tuple[str, ...], optional: tuple[str, ...]) -> None:
    for name in required + optional:
        function = cast(object, getattr(task, name))
        if not callable(function) and not (function is None and name in optional):
            raise InvalidArgument(f"{name} must be a function, got {function!r}")


def _check_actions(actions: Actions | None) -> None:
    if actions is not None and actions.kind not in ("box", "discrete"):
        raise InvalidArgument(f"actions of a compiled task must be 'box' or 'discrete', got {actions.kind!r}")
    if actions is not None and actions.kind == "box" and actions.dtype != "float32":
        raise InvalidArgument(f"actions of a compiled task must be float32, got {actions.dtype}")


def option_kinds(options: Options) -> list[tuple[str, Literal["float", "int", "bool"], int | None]]:
    """Return each option's name, its type, and its length where it is a tuple; `InvalidArgument` for other values."""
    if options == ():
        return []
    names = cast("tuple[str, ...] | None", getattr(options, "_fields", None))
    if names is None:
        raise InvalidArgument(f"options must be a NamedTuple, got {type(options).__name__}")
    kinds: list[tuple[str, Literal["float", "int", "bool"], int | None]] = []
    for name in names:
        value: object = getattr(options, name)
        members = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
        types = {_kind(member) for member in members}
        if len(types) != 1 or None in types:
            raise InvalidArgument(
                f"option {name!r} must be a number, a boolean or a tuple of numbers of one type, got {value!r}"
            )
        kinds.append((name, cast(Any, types.pop()), len(members) if isinstance(value, tuple) else None))
    return kinds


def _kind(value: object) -> str | None:
    if isinstance(value, bool | np.bool_):
        return "bool"
    if isinstance(value, int | np.integer):
        return "int"
    return "float" if isinstance(value, float | np.floating) else None


def _check_options(options: Options) -> None:
    option_kinds(options)
