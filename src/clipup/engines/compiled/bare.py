"""Physics and nothing else: recorded actions replayed in machine code, the yardstick of ``clipup bench``."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clipup.compilation import machine_code
from clipup.compilation.random import STATE_WORDS
from clipup.engines.compiled import array_world, episode, mujoco_world, simulators, words
from clipup.engines.compiled.episode import KernelJob, World
from clipup.engines.compiled.task import CompiledTask, MujocoTask, Options, Vector
from clipup.engines.seeding import seed_words, uint32
from clipup.policies.act import Actor

RECORDED_EPISODES = 16
"""How many policies are recorded at most: recording runs as Python."""
TURNS = 8
"""How often each recording is replayed at most before the clock is read."""
STEPS = 20_000
"""How many steps are enough before the clock is read."""


class BareKernel:
    """A simulator that replays the actions of some policies, as `clipup.engines.protocol.BareSimulator`.

    Of a MuJoCo task only ``mj_step`` is left; of a task without MuJoCo its `step`.
    """

    def __init__(self, task: CompiledTask, *, count: int, threads: int) -> None:
        self._task = task
        indices = np.arange(min(count, RECORDED_EPISODES))
        self._seeds = np.array(uint32(seed_words(0, "candidate", epoch=0, stream="evaluation", indices=indices)))
        plain, name = machine_code.is_disabled(), f"the physics of {task.name}"
        self._simulators: simulators.Simulators
        if isinstance(task, MujocoTask):
            stripped = dataclasses.replace(
                task, observation_size=1, observe=_observe_nothing, reward=_pay_nothing, terminated=None, before=None,
                post_constraint=False, name=name,
            )  # fmt: skip
            self._simulators = simulators.MujocoSimulators(stripped, threads, plain=plain, make=make_replay)
        else:
            task = dataclasses.replace(task, name=name)
            self._simulators = simulators.ArraySimulators(task, threads, plain=plain, make=make_replay)

    def steps_per_second(self, actor: Actor, parameters: NDArray[np.float32], seconds: float) -> float:
        """Replay the actions of the policies for about `seconds` and return the speed."""
        arranged = actor.arrange(parameters)

        def policy(row: int) -> Callable[[NDArray[np.float64]], Any]:
            state = actor.initial_state(1)
            return lambda observation: actor.act(arranged[row : row + 1], observation, state)[0]

        recorded = [self._record(policy(row), int(seed)) for row, seed in enumerate(self._seeds)]
        job = self._job(recorded)
        started, steps = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - started) < seconds:
            job.following[0] = 0
            self._simulators.run(job)
            steps += int(job.steps.sum())
        return steps / elapsed

    def close(self) -> None:
        """Free the simulators."""
        self._simulators.close()

    def _record(self, act: Callable[[NDArray[np.float64]], Any], seed: int) -> NDArray[np.float32]:
        """Return the actions of one episode, one row each."""
        task, actions = self._task, self._simulators.actions
        seeds = np.full((1, 1), seed, np.int64)
        if isinstance(task, MujocoTask):
            one: Any = mujoco_world.load_model(task)
            other: Any = mujoco_world.mujoco().MjData(one)
            physics = mujoco_world.plain_physics(task, one)
            world = mujoco_world.make_world(task, physics, discrete=actions.kind == "discrete")
            start = mujoco_world.start_of(task, one, seed).reshape(1, 1, -1)
        else:
            one, other = np.zeros(task.state_size), np.zeros(STATE_WORDS, np.uint64)
            world, start = array_world.make_world(task, lambda _: task.options), np.zeros((1, 1, 1))
        numbers = _numbers(task)
        job = SimpleNamespace(
            memory=np.zeros((1, self._simulators.memory_size)),
            observation=np.zeros((1, task.observation_size)),
            starts=start,
            seeds=seeds,
            random=np.zeros((1, STATE_WORDS), np.uint64),
            options=None,
            calls=None,
            numbers=numbers,
        )
        taken: list[NDArray[np.float32]] = []
        handle = world.begin(job, 0, 0, 0, one, other)
        over = False
        while not over and len(taken) < task.max_episode_steps:
            action = act(job.observation)
            taken.append(np.asarray(action, np.float32).reshape(-1))
            given: Any = int(action) if actions.kind == "discrete" else action
            _, over, _ = world.advance(job, 0, one, handle, task.options, job.memory[0], job.observation[0], given)
        return np.array(taken)

    def _job(self, recorded: list[NDArray[np.float32]]) -> KernelJob:
        """Return a job whose parameters are actions, and whose steps say how many there are."""
        task, slots = self._task, self._simulators.slots
        places = slots * episode.SPREAD
        turns = min(TURNS, 1 + STEPS // sum(len(part) for part in recorded))
        rows = len(recorded) * turns
        actions = np.zeros((rows, max(part.size for part in recorded)), np.float32)
        steps = np.zeros(rows, np.int64)
        for row in range(rows):
            part = recorded[row % len(recorded)]
            actions[row, : part.size], steps[row] = part.ravel(), len(part)
        seeds = np.tile(self._seeds, turns)[:, np.newaxis]
        vector = np.zeros(1)
        return KernelJob(
            stop=np.zeros(1, np.int64),
            following=np.zeros(1, np.int64),
            ready=np.zeros(1, np.int64),
            current=np.full(slots, -1, np.int64),
            taken=np.zeros(places, np.int64),
            numbers=_numbers(task, width=recorded[0].shape[1]),
            parameters=actions,
            sizes=np.zeros(1, np.int64),
            mean=vector,
            scale=vector,
            bounds=np.zeros((1, 1), np.float32),
            arranged=np.zeros((1, 1), np.float32),
            values=np.zeros((1, 1, 1), np.float32),
            observation=np.zeros((places, task.observation_size)),
            action=np.zeros((1, 1), np.float32),
            memory=np.zeros((places, self._simulators.memory_size)),
            state=np.zeros((places, 1), np.float32),
            totals=np.zeros(rows),
            steps=steps,
            status=np.zeros(rows, np.int64),
            counts=vector,
            moment_mean=np.zeros((1, 1)),
            moment_m2=np.zeros((1, 1)),
            options=words.option_words(task.options),
            seeds=seeds,
            starts=np.zeros((rows, 1, self._simulators.start_size)),
            random=np.zeros((places, STATE_WORDS), np.uint64),
            calls=self._simulators.calls,
        )


def make_replay(world: World) -> Callable[..., None]:
    """Return the function that replays one episode: ``(job, slot, row, one, other)``, as `episode.make_candidate`."""
    begin, advance, options_of = world.begin, world.advance, world.options
    action_of = _choice if world.discrete else _vector

    def replay(job: Any, slot: int, row: int, one: Any, other: Any) -> None:
        options = options_of(job.options)
        observation, memory, recorded = job.observation[slot], job.memory[slot], job.parameters[row]
        width = job.numbers[episode.CHOICES]
        total = 0.0
        handle = begin(job, slot, row, 0, one, other)
        for step in range(job.steps[row]):
            action = action_of(recorded[step * width : (step + 1) * width])
            reward, _, _ = advance(job, slot, one, handle, options, memory, observation, action)
            total += reward
        job.totals[row] = total

    return replay


def _vector(recorded: Any) -> Any:
    return recorded


def _choice(recorded: Any) -> int:
    return int(recorded[0])


def _observe_nothing(model: Any, data: Any, options: Options, observation: Vector) -> None:
    observation[0] = 0.0


def _pay_nothing(model: Any, data: Any, options: Options, memory: Vector, action: Any) -> float:
    return 0.0


def _numbers(task: CompiledTask, *, width: int = 1) -> NDArray[np.int64]:
    numbers = np.zeros(episode.NUMBERS, np.int64)
    numbers[episode.FRAME_SKIP] = getattr(task, "frame_skip", 1)
    numbers[episode.CHOICES] = width
    return numbers
