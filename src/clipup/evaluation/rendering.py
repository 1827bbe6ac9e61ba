"""Episodes as frames, without a screen: through EnvPool where it runs the task, else through Gymnasium."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from clipup.engines import Task
from clipup.engines.environment import make_ready
from clipup.engines.pool import pool_layout
from clipup.engines.registry import envpool_refusal
from clipup.engines.seeding import int31, seed_words, uint32
from clipup.errors import EnvironmentFault, InvalidArgument, one_line
from clipup.evaluation import graphics
from clipup.policies import Policy

Frame = NDArray[np.uint8]
DEFAULT_RATE = 50.0


@dataclass(frozen=True)
class Step:
    """One moment of an episode: what it looks like, and the reward that led to it."""

    frame: Frame
    reward: float


@dataclass(frozen=True)
class Episode:
    """Frames of one episode as they come, and how many of them make a second."""

    steps: Iterator[Step]
    rate: float
    engine: str


def play(policy: Policy, task: Task, *, seed: int = 0, episode: int = 0) -> Episode:
    """Return an episode of `policy` on `task`: the same one that `evaluate` numbers so, frame by frame."""
    task = task.for_evaluation()
    _go_without_screen()
    ready = graphics.prepare()  # before anything imports EnvPool
    refusal = envpool_refusal(task) if task.engine != "gymnasium" else InvalidArgument("Gymnasium was asked for")
    if refusal is None and (not graphics.needed(task) or (ready and graphics.works(task))):
        return _play_envpool(policy, task, seed, episode)
    if task.engine == "envpool":
        raise refusal or EnvironmentFault(f"EnvPool cannot render {task.label} here: no usable EGL or OpenGL library")
    return _play_gymnasium(policy, task, seed, episode)


def _go_without_screen() -> None:
    if not os.environ.get("DISPLAY"):
        os.environ.setdefault("MUJOCO_GL", "egl")
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")


def _word(seed: int, episode: int, *, home: bool) -> NDArray[np.uint64]:
    purpose = "home" if home else "candidate"
    return seed_words(seed, purpose, epoch=0, stream="evaluation", indices=np.array([episode], dtype=np.int64))


def _play_envpool(policy: Policy, task: Task, seed: int, episode: int) -> Episode:
    import envpool

    layout = pool_layout(task)
    _check_sizes(policy, task, layout.observation_size, layout.actions.size)
    word = _word(seed, episode, home=layout.replayable)
    environment = cast(Any, envpool).make(
        task.env,
        env_type="gymnasium",
        num_envs=1,
        seed=int31(word),
        num_threads=1,
        render_mode="rgb_array",
        max_episode_steps=layout.step_limit,
        **task.env_options,
    )

    def steps() -> Iterator[Step]:
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*Box (low|high|bound)'s precision.*")
                observation, _ = environment.reset()
            yield Step(_frame(environment.render()[0]), 0.0)
            for _ in range(layout.step_limit):
                action = policy(np.asarray(observation).reshape(1, -1))
                observation, reward, terminated, truncated, _ = environment.step(action)
                yield Step(_frame(environment.render()[0]), float(reward[0]))
                if terminated[0] or truncated[0]:
                    return
        finally:
            environment.close()

    return Episode(steps(), _rate(environment, task.env), "envpool")


def _play_gymnasium(policy: Policy, task: Task, seed: int, episode: int) -> Episode:
    visible = dataclasses.replace(task, env_options={**task.env_options, "render_mode": "rgb_array"})
    environment = make_ready(visible)
    size = math.prod(cast("tuple[int, ...]", environment.observation_space.shape))
    _check_sizes(policy, task, size, policy.actions.size)
    start = uint32(_word(seed, episode, home=False))[0]

    def steps() -> Iterator[Step]:
        try:
            observation, _ = environment.reset(seed=start)
            yield Step(_frame(environment.render()), 0.0)
            while True:
                observation, reward, terminated, truncated, _ = environment.step(_action(policy, observation))
                yield Step(_frame(environment.render()), float(reward))
                if terminated or truncated:
                    return
        except Exception as error:
            raise EnvironmentFault(f"{task.label} could not be rendered: {one_line(error)}") from error
        finally:
            with contextlib.suppress(Exception):
                environment.close()

    return Episode(steps(), _rate(environment), "gymnasium")


def _action(policy: Policy, observation: object) -> object:
    action = policy(np.asarray(observation).reshape(-1))
    return int(cast(int, action)) if policy.actions.kind == "discrete" else action


def _check_sizes(policy: Policy, task: Task, observations: int, outputs: int) -> None:
    if observations != policy.network.observation_size or outputs != policy.actions.size:
        raise InvalidArgument(
            f"the policy takes {policy.network.observation_size} observations and gives {policy.actions.size} "
            f"outputs, but {task.label} has {observations} and {outputs}"
        )


def _frame(image: object) -> Frame:
    frame = np.asarray(image)
    if frame.ndim != 3 or frame.shape[2] != 3 or frame.dtype != np.uint8:
        raise EnvironmentFault(f"a frame of colours was expected, got {frame.dtype} of shape {frame.shape}")
    return frame


def _rate(environment: Any, name: object = None) -> float:
    """Frames per second as the environment says, or as Gymnasium says of the same task."""
    found = _render_fps(getattr(environment, "metadata", None))
    if found is None and isinstance(name, str):
        with contextlib.suppress(Exception):
            import gymnasium
            from gymnasium.envs.registration import load_env_creator

            entry = gymnasium.spec(name).entry_point
            creator = load_env_creator(entry) if isinstance(entry, str) else entry
            found = _render_fps(getattr(creator, "metadata", None))
    return found or DEFAULT_RATE


def _render_fps(metadata: object) -> float | None:
    if not isinstance(metadata, dict):
        return None
    rate = cast("dict[str, object]", metadata).get("render_fps")
    return float(rate) if isinstance(rate, int | float) and rate > 0 else None
