"""Renders episodes of one's own tasks, in plain Python: by MuJoCo, or by the function `render` of the task."""

from __future__ import annotations

import contextlib
import copy
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from clipup.compilation.random import STATE_WORDS
from clipup.engines.compiled import NAME, array_world, mujoco_world, simulators
from clipup.engines.compiled.episode import FRAME_SKIP, NUMBERS, World
from clipup.engines.compiled.task import ArrayRender, CompiledTask, MujocoTask, Options
from clipup.engines.rendering import Episode, Frame, Step, as_frame
from clipup.engines.rollout import check_sizes
from clipup.engines.seeding import seed_words, uint32
from clipup.errors import EnvironmentFault, one_line
from clipup.policies import Policy

WIDTH, HEIGHT = 640, 480
CONTEXTS = {"egl": "mujoco.egl", "osmesa": "mujoco.osmesa"}
"""What draws without a screen, by the value of ``MUJOCO_GL``."""


def play(policy: Policy, compiled: CompiledTask, *, seed: int, episode: int) -> Episode:
    """Render the episode that `CompiledEngine` gives this number in an evaluation."""
    words = seed_words(seed, "candidate", epoch=0, stream="evaluation", indices=np.array([episode]))
    seeds = np.array(uint32(words), np.int64).reshape(1, 1)
    if isinstance(compiled, MujocoTask):
        made = simulators.MujocoSimulators(compiled, 1, plain=True)
        actions, memory_size = made.actions, made.memory_size
        model = mujoco_world.load_model(compiled)
        starts = mujoco_world.start_of(compiled, model, int(seeds[0, 0])).reshape(1, 1, -1)
        one: Any = copy.copy(model)
        other: Any = mujoco_world.mujoco().MjData(one)
        physics = mujoco_world.plain_physics(compiled, model)
        world = mujoco_world.make_world(compiled, physics, discrete=actions.kind == "discrete")
        rate = 1.0 / (float(model.opt.timestep) * compiled.frame_skip)
    else:
        made = simulators.ArraySimulators(compiled, 1, plain=True)
        actions, memory_size, starts = made.actions, made.memory_size, np.zeros((1, 1, 1))
        one, other = np.zeros(compiled.state_size), np.zeros(STATE_WORDS, np.uint64)
        world = array_world.make_world(compiled, lambda _: compiled.options)
        rate = compiled.steps_per_second
    check_sizes(policy.network, compiled.observation_size, actions.size)
    numbers = np.zeros(NUMBERS, np.int64)
    numbers[FRAME_SKIP] = getattr(compiled, "frame_skip", 1)
    job = SimpleNamespace(
        memory=np.zeros((1, memory_size)),
        observation=np.zeros((1, compiled.observation_size)),
        starts=starts,
        seeds=seeds,
        random=np.zeros((1, STATE_WORDS), np.uint64),
        options=None,
        calls=None,
        numbers=numbers,
    )

    def steps() -> Iterator[Step]:
        try:
            with contextlib.closing(_painter(compiled, one, other)) as painter, np.errstate(all="ignore"):
                yield from _episode(policy, compiled, world, job, one, other, painter.frame)
        except EnvironmentFault:
            raise
        except Exception as error:
            raise EnvironmentFault(f"{compiled.name} could not be rendered: {one_line(error)}") from error

    return Episode(steps(), rate, NAME)


def _episode(
    policy: Policy,
    compiled: CompiledTask,
    world: World,
    job: Any,
    one: Any,
    other: Any,
    frame: Callable[[], Frame],
) -> Iterator[Step]:
    handle = world.begin(job, 0, 0, 0, one, other)
    observation, memory = job.observation[0], job.memory[0]
    policy.reset()
    yield Step(frame(), 0.0)
    for _ in range(compiled.max_episode_steps):
        action: Any = policy(observation)
        if world.discrete:
            action = int(action)
        reward, over, sound = world.advance(job, 0, one, handle, compiled.options, memory, observation, action)
        if not sound:
            raise EnvironmentFault(f"{compiled.name}: MuJoCo's simulation broke down in this episode")
        yield Step(frame(), reward)
        if over:
            return


def _painter(compiled: CompiledTask, one: Any, other: Any) -> _MujocoPainter | _ArrayPainter:
    if isinstance(compiled, MujocoTask):
        return _MujocoPainter(one, other)
    if compiled.render is None:
        raise EnvironmentFault(f"{compiled.name} has no function render")
    return _ArrayPainter(compiled.render, one, compiled.options)


class _ArrayPainter:
    def __init__(self, render: ArrayRender, state: Any, options: Options) -> None:
        self._render, self._state, self._options = render, state, options

    def frame(self) -> Frame:
        """Return what the task's own function draws."""
        return as_frame(self._render(self._state.copy(), self._options))

    def close(self) -> None:
        """Do nothing."""


class _MujocoPainter:
    """Draws a simulation with the model's first camera, or else with one that follows the model's first body.

    Not `mujoco.Renderer`: that one draws on a screen if MuJoCo was first imported before ``MUJOCO_GL`` was set.
    """

    def __init__(self, model: Any, data: Any) -> None:
        mujoco = self._mujoco = mujoco_world.mujoco()
        self._model, self._data = model, data
        model.vis.global_.offwidth, model.vis.global_.offheight = WIDTH, HEIGHT
        wanted = os.environ.get("MUJOCO_GL", "").lower()
        module = CONTEXTS.get(wanted, "mujoco.gl_context") if sys.platform == "linux" else "mujoco.gl_context"
        try:
            self._context: Any = importlib.import_module(module).GLContext(WIDTH, HEIGHT)
            self._context.make_current()
            self._painter = mujoco.MjrContext(model, int(mujoco.mjtFontScale.mjFONTSCALE_150))
        except Exception as error:
            raise EnvironmentFault(f"MuJoCo cannot draw here: {one_line(error)}; MUJOCO_GL chooses how") from error
        mujoco.mjr_setBuffer(int(mujoco.mjtFramebuffer.mjFB_OFFSCREEN), self._painter)
        self._scene = mujoco.MjvScene(model, 10_000)
        self._options = mujoco.MjvOption()
        self._area = mujoco.MjrRect(0, 0, WIDTH, HEIGHT)
        self._camera = mujoco.MjvCamera()
        mujoco.mjv_defaultFreeCamera(model, self._camera)
        if model.ncam:
            self._camera.type, self._camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, 0
        elif model.nbody > 1:
            self._camera.type, self._camera.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, 1

    def frame(self) -> Frame:
        """Return a picture of the simulation as it stands."""
        mujoco, pixels = self._mujoco, np.empty((HEIGHT, WIDTH, 3), np.uint8)
        everything = int(mujoco.mjtCatBit.mjCAT_ALL)
        mujoco.mjv_updateScene(self._model, self._data, self._options, None, self._camera, everything, self._scene)
        mujoco.mjr_render(self._area, self._scene, self._painter)
        mujoco.mjr_readPixels(pixels, None, self._area, self._painter)
        return np.flipud(pixels).copy()

    def close(self) -> None:
        """Free what the graphics library holds."""
        self._painter.free()
        self._context.free()
