"""A program's output stays its own, whatever a simulator prints."""

import subprocess
import sys

CODE = """
from clipup.engines import Task, make_engine
print("before")
engine = make_engine(Task("pybullet_envs_gymnasium:HumanoidBulletEnv-v0"))
engine.close()
print("after")
"""


def test_what_bullet_prints_does_not_reach_standard_output() -> None:
    run = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["before", "after"]
