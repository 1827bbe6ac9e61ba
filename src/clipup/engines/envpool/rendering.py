"""Renders episodes with EnvPool.

EnvPool's MuJoCo binds OpenGL when it is loaded. It then finds only libraries that the process has already loaded for
all others to use, and it ends the whole process if it draws without them. So the libraries are loaded first, and the
first picture is tried in another process.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

import numpy as np

from clipup.engines.envpool import NAME
from clipup.engines.envpool.pool import pool_layout, registered
from clipup.engines.rendering import DEFAULT_RATE, Episode, Step, as_frame, frames_per_second
from clipup.engines.rollout import check_observations, check_sizes
from clipup.engines.seeding import int31, seed_words
from clipup.engines.task import Task
from clipup.policies import Policy

PROBE_SECONDS = 60.0
DM_CONTROL = "envpool.mujoco.dmc"
"""EnvPool's family of dm_control's tasks."""

_PROBE = """
import sys
from clipup.engines.envpool import rendering
rendering.load_opengl()
import envpool
pool = envpool.make(sys.argv[1], env_type="gymnasium", num_envs=1, num_threads=1, render_mode="rgb_array")
pool.reset()
pool.render()
"""


@cache
def load_opengl() -> bool:
    """Load OpenGL for the whole process; return False if there is none, or if EnvPool was imported without it."""
    if "envpool" in sys.modules:
        return False
    found = 0
    for library in ("libEGL.so.1", "libOpenGL.so.0", "libGL.so.1"):
        try:
            ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
            found += 1
        except OSError:
            continue
    return found > 0


def can_draw(task: Task) -> bool:
    """Return whether a picture of `task` can be drawn: only MuJoCo needs OpenGL, the other simulators paint."""
    if "mujoco" not in registered()[str(task.env)][0]:
        return True
    return load_opengl() and draws_elsewhere(str(task.env))


@cache
def draws_elsewhere(env: str) -> bool:
    """Try to draw a picture in another process."""
    import subprocess

    probe = [sys.executable, "-P", "-c", _PROBE, env]  # -P: import nothing from the current directory
    try:
        return subprocess.run(probe, capture_output=True, timeout=PROBE_SECONDS, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def play(policy: Policy, task: Task, *, seed: int, episode: int) -> Episode:
    """Render the episode that `EnvPoolEngine` gives this number in an evaluation."""
    import envpool

    layout = pool_layout(task)
    check_sizes(policy.network, layout.observation_size, layout.actions.size)
    check_observations(policy, layout.observations)
    purpose = "home" if layout.replayable else "candidate"
    words = seed_words(seed, purpose, epoch=0, stream="evaluation", indices=np.array([episode]))
    environment = cast(Any, envpool).make(
        task.env,
        env_type="gymnasium",
        num_envs=1,
        seed=int31(words),
        num_threads=1,
        render_mode="rgb_array",
        max_episode_steps=layout.step_limit,
        **task.env_options,
    )

    # dm_control's own pictures are those of a model's first camera, which follows a robot. EnvPool's stay at the start.
    camera = 0 if registered()[str(task.env)][0] == DM_CONTROL else None

    def steps() -> Iterator[Step]:
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*Box (low|high|bound)'s precision.*")
                observation, _ = environment.reset()
            policy.reset()
            yield Step(as_frame(environment.render(camera_id=camera)[0]), 0.0)
            for _ in range(layout.step_limit):
                parts = layout.observations
                action = policy(
                    np.asarray(observation).reshape(1, -1) if parts is None else parts.flatten_batch(observation)
                )
                observation, reward, terminated, truncated, _ = environment.step(action)
                yield Step(as_frame(environment.render(camera_id=camera)[0]), float(reward[0]))
                if terminated[0] or truncated[0]:
                    return
        finally:
            environment.close()

    rate = frames_per_second(environment) or _rate_in_gymnasium(str(task.env)) or DEFAULT_RATE
    return Episode(steps(), rate, NAME)


def _rate_in_gymnasium(name: str) -> float | None:
    """Return the frames per second that Gymnasium states for the task of the same id, if it has one."""
    with contextlib.suppress(Exception):
        import gymnasium
        from gymnasium.envs.registration import load_env_creator

        entry = gymnasium.spec(name).entry_point
        return frames_per_second(load_env_creator(entry) if isinstance(entry, str) else entry)
    return None
