"""A `MujocoTask` as the episode loop sees it, in machine code or on MuJoCo's own Python objects."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

from clipup.compilation.functions import attribute_names
from clipup.engines.compiled import fields, words
from clipup.engines.compiled.episode import FRAME_SKIP, World
from clipup.engines.compiled.task import MujocoTask
from clipup.errors import ClipUpError, InvalidArgument, MissingDependency, one_line

RESET, FORWARD, STEP, POST = range(4)
CALLS = ("mj_resetData", "mj_forward", "mj_step", "mj_rnePostConstraint")
"""MuJoCo's functions of a model and its data, in the order of `Job.calls`."""

POST_FIELDS = {"cfrc_ext", "cfrc_int", "cacc"}
"""Fields that only ``mj_rnePostConstraint`` fills."""

FATAL_WARNINGS = ("mjWARN_CONTACTFULL", "mjWARN_CNSTRFULL", "mjWARN_BADQPOS", "mjWARN_BADQVEL", "mjWARN_BADQACC", "mjWARN_BADCTRL")
"""After these the simulation is not the model's any more: MuJoCo dropped contacts, reset the state or ignored controls."""


class Physics(NamedTuple):
    """What the task's functions are given, and MuJoCo's functions: of ``(calls, model, data)``."""

    see_model: Callable[..., Any]
    see_data: Callable[..., Any]
    reset: Callable[..., None]
    forward: Callable[..., None]
    step: Callable[..., None]
    post: Callable[..., None]
    is_sound: Callable[..., bool]
    options: Callable[..., Any]


def load_model(task: MujocoTask) -> Any:
    """Return the task's ``mujoco.MjModel``; every way to fail is one line."""
    try:
        import mujoco
    except ImportError as error:
        raise MissingDependency.of("mujoco", extra="train") from error
    try:
        source = task.model
        if isinstance(source, str) and source.lstrip().startswith("<"):
            return mujoco.MjModel.from_xml_string(source)
        if isinstance(source, str | Path):
            if not Path(source).is_file():
                raise InvalidArgument(f"{task.name}: there is no model file {str(source)!r}")
            return mujoco.MjModel.from_xml_path(str(source))
        made = cast(Any, source())
        model = made.compile() if isinstance(made, mujoco.MjSpec) else made
    except ClipUpError:
        raise
    except Exception as error:
        raise InvalidArgument(f"the model of {task.name} does not load: {one_line(error)}") from error
    if not isinstance(model, mujoco.MjModel):
        raise InvalidArgument(f"model of {task.name} must give a mujoco.MjModel, got {type(made).__name__}")
    return model


def library() -> Any:
    """Return MuJoCo's C library, the one that its Python package uses."""
    import mujoco

    place = Path(mujoco.__file__).parent
    for pattern in ("libmujoco.so*", "libmujoco*.dylib", "mujoco.dll"):
        for path in sorted(place.glob(pattern)):
            return ctypes.CDLL(str(path))
    raise InvalidArgument(f"MuJoCo's library is not in {place}")


def user_functions(task: MujocoTask) -> list[object]:
    """Return the task's functions that are compiled."""
    functions = (task.observe, task.reward, task.terminated, task.control, task.before, task.randomize)
    return [function for function in functions if function is not None]


def needs_post_constraint(task: MujocoTask) -> bool:
    """Return whether ``mj_rnePostConstraint`` is to be called after each step."""
    if task.post_constraint is not None:
        return task.post_constraint
    return bool(POST_FIELDS & attribute_names(user_functions(task)))


def make_world(task: MujocoTask, physics: Physics, *, discrete: bool) -> World:
    """Return the task's two functions for the episode loop."""
    see_model, see_data, reset, forward, step, post, is_sound, options_of = physics
    observe, reward = task.observe, task.reward
    before, control = task.before or _nothing, task.control or _copy_action
    terminated = task.terminated or _never
    posts = needs_post_constraint(task)

    def begin(job: Any, slot: int, row: int, episode: int, model: Any, data: Any) -> Any:
        memory = job.memory[slot]
        for i in range(memory.size):
            memory[i] = 0.0
        reset(job.calls, model, data)
        _place(see_data(model, data), job.starts[row, episode])
        forward(job.calls, model, data)
        observe(see_model(model, data), see_data(model, data), options_of(job.options), job.observation[slot])
        return data

    def advance(
        job: Any, slot: int, model: Any, data: Any, options: Any, memory: Any, observation: Any, action: Any
    ) -> tuple[float, bool, bool]:
        model_fields, data_fields = see_model(model, data), see_data(model, data)
        before(model_fields, data_fields, options, memory)
        control(model_fields, data_fields, options, action)
        for _ in range(job.numbers[FRAME_SKIP]):
            step(job.calls, model, data)
        if posts:
            post(job.calls, model, data)
        if not is_sound(data):
            return 0.0, False, False
        # Numbers and the places of arrays that grow may have changed.
        model_fields, data_fields = see_model(model, data), see_data(model, data)
        gained = float(reward(model_fields, data_fields, options, memory, action))
        observe(model_fields, data_fields, options, observation)
        return gained, bool(terminated(model_fields, data_fields, options, observation)), True

    return World(begin, advance, options_of, discrete)


def machine_physics(task: MujocoTask) -> Physics:
    """Return MuJoCo for machine code: `model` and `data` are addresses."""
    import mujoco

    from clipup.compilation.intrinsics import call_pair, load_int32
    from clipup.compilation.structure_code import viewer

    def reset(calls: Any, model: Any, data: Any) -> None:
        call_pair(calls[RESET], model, data)

    def forward(calls: Any, model: Any, data: Any) -> None:
        call_pair(calls[FORWARD], model, data)

    def step(calls: Any, model: Any, data: Any) -> None:
        call_pair(calls[STEP], model, data)

    def post(calls: Any, model: Any, data: Any) -> None:
        call_pair(calls[POST], model, data)

    number = fields.offsets("mjWarningStat")["number"]
    first = fields.offsets("mjData")["warning"]
    counters = tuple(first + 8 * int(getattr(mujoco.mjtWarning, name)) + number for name in FATAL_WARNINGS)

    def is_sound(data: Any) -> bool:
        warnings = 0
        for place in counters:
            warnings += load_int32(data + place)
        return warnings == 0

    model_view, data_view = viewer(fields.structure("mjModel")), viewer(fields.structure("mjData"))

    def see_model(model: Any, data: Any) -> Any:
        return model_view(model, data)

    def see_data(model: Any, data: Any) -> Any:
        return data_view(data, model)

    return Physics(see_model, see_data, reset, forward, step, post, is_sound, words.option_viewer(task.options))


def plain_physics(task: MujocoTask) -> Physics:
    """Return MuJoCo's own Python functions: `model` and `data` are its objects."""
    import mujoco

    fatal = [int(getattr(mujoco.mjtWarning, name)) for name in FATAL_WARNINGS]
    return Physics(
        lambda model, data: model,
        lambda model, data: data,
        lambda calls, model, data: mujoco.mj_resetData(model, data),
        lambda calls, model, data: mujoco.mj_forward(model, data),
        lambda calls, model, data: mujoco.mj_step(model, data),
        lambda calls, model, data: mujoco.mj_rnePostConstraint(model, data),
        lambda data: not any(data.warning[number].number for number in fatal),
        lambda words: task.options,
    )


def _nothing(model: Any, data: Any, options: Any, memory: Any) -> None:
    pass


def _never(model: Any, data: Any, options: Any, observation: Any) -> bool:
    return False


def _copy_action(model: Any, data: Any, options: Any, action: Any) -> None:
    for i in range(action.size):
        data.ctrl[i] = action[i]


def _place(data: Any, start: Any) -> None:
    """Write positions and velocities that stand one after the other in a vector."""
    positions = data.qpos.size
    for i in range(positions):
        data.qpos[i] = start[i]
    for i in range(data.qvel.size):
        data.qvel[i] = start[positions + i]
