"""Whether EnvPool's MuJoCo can draw here.

Its compiled code binds OpenGL when it is loaded, finds only libraries that the process has loaded for everybody by
then, and ends the whole process when it draws without. So the libraries are loaded first, and the first picture is
tried in a process of its own.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from functools import cache

from clipup.engines import Task
from clipup.engines.registry import envpool_ids

PROBE_SECONDS = 60.0

_PROBE = """
import sys
from clipup.evaluation import graphics
graphics.prepare()
import envpool
pool = envpool.make(sys.argv[1], env_type="gymnasium", num_envs=1, num_threads=1, render_mode="rgb_array")
pool.reset()
pool.render()
"""


@cache
def prepare() -> bool:
    """Load OpenGL for everybody; False when there is none, or EnvPool was loaded without it."""
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


def needed(task: Task) -> bool:
    """Whether drawing this EnvPool task takes OpenGL: the simulators other than MuJoCo paint by themselves."""
    family = envpool_ids()[str(task.env)][0]
    return "mujoco" in family or "dmc" in family


@cache
def _works(env: str) -> bool:
    probe = [sys.executable, "-P", "-c", _PROBE, env]  # -P: nothing is imported from where one happens to be
    try:
        return subprocess.run(probe, capture_output=True, timeout=PROBE_SECONDS, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def works(task: Task) -> bool:
    """Whether a picture of this task could be drawn, tried in another process."""
    return _works(str(task.env))
