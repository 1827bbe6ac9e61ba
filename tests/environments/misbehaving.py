"""Environments that a worker does not survive, or does not return from; imported by worker processes.

A candidate is known by its first parameter: the policy is linear, without bias, the only observation is 1, so that the
action is the parameter itself. Where `marks` names a directory, a candidate misbehaves only as long as there are fewer
than `times` files in it, and leaves one each time.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np


class Misbehaving(gymnasium.Env[Any, Any]):
    """Rewards are the action; actions above `above` are punished."""

    def __init__(
        self, how: str = "", above: float = 2.0, marks: str = "", times: int = 10**9, pause: float = 0
    ) -> None:
        self.observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        self.action_space = gymnasium.spaces.Box(-100, 100, (1,), np.float32)
        self.how, self.above, self.marks, self.times, self.pause = how, above, marks, times, pause

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[Any, dict[str, object]]:
        super().reset(seed=seed)
        self.left = 3
        return np.ones(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, object]]:
        self.left -= 1
        time.sleep(self.pause)
        if action[0] > self.above and self._again():
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif self.how == "hang":
                time.sleep(1000)
            elif self.how == "exit":
                os._exit(3)
            else:
                raise RuntimeError(f"action {action[0]:.3f} is too much")
        noise = float(self.np_random.normal())
        return np.ones(1, np.float32), float(action[0]) + noise, self.left == 0, False, {}

    def _again(self) -> bool:
        if not self.marks:
            return True
        directory = Path(self.marks)
        if len(list(directory.iterdir())) >= self.times:
            return False
        (directory / f"{os.getpid()}-{time.monotonic_ns()}").touch()
        return True


def dies_at_once(**options: object) -> Misbehaving:
    """Fail like a simulator whose library is broken."""
    os._exit(7)


class SlowToMake(Misbehaving):
    """Takes its time to be made, none to run; the evaluation's is another one."""

    def __init__(self, **options: Any) -> None:
        time.sleep(0.8)
        super().__init__(**options)


class WithProcess(Misbehaving):
    """Runs its simulator in a process of its own."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(0.01,))
        self.process.start()

    def close(self) -> None:
        self.process.join()


gymnasium.register("Misbehaving-v0", entry_point="misbehaving:Misbehaving")
gymnasium.register("SlowToMake-v0", entry_point="misbehaving:SlowToMake")
gymnasium.register("WithProcess-v0", entry_point="misbehaving:WithProcess")
