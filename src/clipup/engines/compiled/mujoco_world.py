"""A `MujocoTask` as the episode loop sees it, in machine code or on MuJoCo's own Python objects."""

from __future__ import annotations

import copy
import ctypes
import importlib
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from clipup.compilation.functions import attribute_names, plain
from clipup.compilation.primitives import call_pair, load_int32
from clipup.compilation.random import seeded_random
from clipup.compilation.structures import viewer
from clipup.engines.compiled import fields, words
from clipup.engines.compiled.episode import FRAME_SKIP, World
from clipup.engines.compiled.mujoco_batch import QuietLog
from clipup.engines.compiled.task import MujocoTask, Vector
from clipup.engines.physics import TrainingPhysics
from clipup.errors import ClipUpError, InvalidArgument, MissingDependency, one_line

_log = logging.getLogger("clipup")

RESET, FORWARD, STEP, POST, CONSTANTS, COPY, ORIGINAL = range(7)
CALLS = ("mj_resetData", "mj_forward", "mj_step", "mj_rnePostConstraint", "mj_setConst", "mj_copyModel")
"""MuJoCo's functions of two pointers, in the order of `KernelJob.calls`, whose last member is the loaded model."""

RANDOMIZE_SALT = 0x2545F491
"""Keeps the random numbers that change a model apart from those of the start."""

POST_FIELDS = {"cfrc_ext", "cfrc_int", "cacc"}
"""Fields that only ``mj_rnePostConstraint`` fills."""

FATAL_WARNINGS = ("CONTACTFULL", "CNSTRFULL", "BADQPOS", "BADQVEL", "BADQACC", "BADCTRL")
"""After these warnings MuJoCo has dropped contacts, reset the state or ignored controls, so it is another task."""


class Physics(NamedTuple):
    """What the task's functions are given, and MuJoCo's functions: of ``(calls, model, data)``.

    `restore` makes the model as it was loaded, `constants` computes what follows from its changed fields.
    """

    see_model: Callable[..., Any]
    see_data: Callable[..., Any]
    reset: Callable[..., None]
    forward: Callable[..., None]
    step: Callable[..., None]
    post: Callable[..., None]
    restore: Callable[..., None]
    constants: Callable[..., None]
    is_sound: Callable[..., bool]
    options: Callable[..., Any]


def mujoco() -> Any:
    """Return MuJoCo's package, whose types are unknown."""
    try:
        return importlib.import_module("mujoco")
    except ImportError as error:
        raise MissingDependency.of("mujoco", extra="train") from error


def load_model(task: MujocoTask) -> Any:
    """Return the task's ``mujoco.MjModel``; every way to fail is one line, and every warning one in the log."""
    with QuietLog(library()) as log:
        model = _load_model(task, mujoco())
    for message in log.messages:
        _log.debug("%s: %s", task.name, message)
    return model


def without_islands(model: Any) -> Any:
    """Return a copy of a model that does not look for islands of constraints, if its robot is one kinematic tree.

    Such a robot has one island at most, so results keep their bits (``tests/unit/engines/compiled/test_islands.py``),
    and a step takes up to 9 % less time (``benchmarks/physics_overhead.py``). With several trees, bits would change.
    """
    model = copy.copy(model)
    if model.ntree == 1:
        model.opt.disableflags |= int(mujoco().mjtDisableBit.mjDSBL_ISLAND)
    return model


def with_physics(task: MujocoTask, physics: TrainingPhysics) -> MujocoTask:
    """Return the task with other physics. A step takes as many seconds as before."""
    frame_skip = physics.time_steps(task.frame_skip, load_model(task).opt.timestep * task.frame_skip)

    def changed() -> Any:
        library, model = mujoco(), load_model(task)
        if physics.integrator is not None:
            model.opt.integrator = getattr(library.mjtIntegrator, f"mjINT_{physics.integrator.upper()}")
        if physics.solver is not None:
            model.opt.solver = getattr(library.mjtSolver, f"mjSOL_{physics.solver.upper()}")
        if physics.iterations is not None:
            model.opt.iterations = physics.iterations
        if physics.timestep is not None:
            model.opt.timestep = physics.timestep
        if physics.eulerdamp is not None:
            flag = int(library.mjtDisableBit.mjDSBL_EULERDAMP)
            kept = model.opt.disableflags & ~flag
            model.opt.disableflags = kept | flag if physics.eulerdamp == "disable" else kept
        return model

    return replace(task, model=changed, frame_skip=frame_skip)


def _load_model(task: MujocoTask, library: Any) -> Any:
    try:
        source = task.model
        if isinstance(source, str) and source.lstrip().startswith("<"):
            return library.MjModel.from_xml_string(source)
        if isinstance(source, str | Path):
            path = _model_path(source, task)
            if not path.is_file():
                raise InvalidArgument(f"{task.name}: there is no model file {str(source)!r}")
            return library.MjModel.from_xml_path(str(path))
        made = cast(Any, source())
        model = made.compile() if isinstance(made, library.MjSpec) else made
    except ClipUpError:
        raise
    except Exception as error:
        raise InvalidArgument(f"the model of {task.name} does not load: {one_line(error)}") from error
    if not isinstance(model, library.MjModel):
        raise InvalidArgument(f"model of {task.name} must give a mujoco.MjModel, got {type(made).__name__}")
    return model


def _model_path(source: str | Path, task: MujocoTask) -> Path:
    """Return where a model is: a relative path starts at the file that defines `observe`, or else here."""
    code = getattr(plain(task.observe), "__code__", None)
    beside = Path(code.co_filename).parent / source if code is not None else Path(source)
    return beside if beside.is_file() else Path(source)


def start_of(task: MujocoTask, model: Any, seed: int) -> Vector:
    """Return positions and velocities at the start of the episode with this seed."""
    if task.start is None:
        return np.concatenate([model.qpos0, np.zeros(model.nv)])
    positions, velocities = task.start(np.random.default_rng(seed), model, task.options)
    return np.concatenate([positions, velocities])


def library() -> Any:
    """Return MuJoCo's C library, the one that its Python package uses."""
    place = Path(mujoco().__file__).parent
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
    see_model, see_data, reset, forward, step, post, restore, constants, is_sound, options_of = physics
    observe, reward = task.observe, task.reward
    before, control = task.before or _nothing, task.control or _copy_action
    terminated = task.terminated or _never
    posts = needs_post_constraint(task)
    randomize, randomizes = task.randomize or _keep, task.randomize is not None

    def begin(job: Any, slot: int, row: int, episode: int, model: Any, data: Any) -> Any:
        memory = job.memory[slot]
        for i in range(memory.size):
            memory[i] = 0.0
        if randomizes:
            restore(job.calls, model, data)
            random = seeded_random(job.random[slot], job.seeds[row, episode] ^ RANDOMIZE_SALT)
            randomize(random, see_model(model, data), options_of(job.options))
            constants(job.calls, model, data)
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

    def reset(calls: Any, model: Any, data: Any) -> None:
        call_pair(calls[RESET], model, data)

    def forward(calls: Any, model: Any, data: Any) -> None:
        call_pair(calls[FORWARD], model, data)

    def step(calls: Any, model: Any, data: Any) -> None:
        call_pair(calls[STEP], model, data)

    def post(calls: Any, model: Any, data: Any) -> None:
        call_pair(calls[POST], model, data)

    def restore(calls: Any, model: Any, data: Any) -> None:
        call_pair(calls[COPY], model, calls[ORIGINAL])

    def constants(calls: Any, model: Any, data: Any) -> None:
        call_pair(calls[CONSTANTS], model, data)

    number = fields.offsets("mjWarningStat")["number"]
    first = fields.offsets("mjData")["warning"]
    counters = tuple(first + 8 * _warning(name) + number for name in FATAL_WARNINGS)

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

    options = words.option_viewer(task.options)
    return Physics(see_model, see_data, reset, forward, step, post, restore, constants, is_sound, options)


def plain_physics(task: MujocoTask, original: Any) -> Physics:
    """Return MuJoCo's own Python functions: `model` and `data` are its objects."""
    package = mujoco()
    copy_model = library().mj_copyModel
    copy_model.restype, copy_model.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p)
    fatal = [_warning(name) for name in FATAL_WARNINGS]

    def function(name: str) -> Callable[..., None]:
        called = getattr(package, name)
        return lambda *arguments: called(*arguments[1:])

    def restore(calls: Any, model: Any, data: Any) -> None:
        copy_model(model._address, original._address)

    def options(words: Any) -> Any:
        return task.options

    def is_sound(data: Any) -> bool:
        return not any(data.warning[number].number for number in fatal)

    return Physics(
        _first,
        _second,
        function("mj_resetData"),
        function("mj_forward"),
        function("mj_step"),
        function("mj_rnePostConstraint"),
        restore,
        function("mj_setConst"),
        is_sound,
        options,
    )


def _first(model: Any, data: Any) -> Any:
    return model


def _second(model: Any, data: Any) -> Any:
    return data


def _warning(name: str) -> int:
    return int(getattr(mujoco().mjtWarning, f"mjWARN_{name}"))


def _nothing(model: Any, data: Any, options: Any, memory: Any) -> None:
    pass


def _keep(random: Any, model: Any, options: Any) -> None:
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
