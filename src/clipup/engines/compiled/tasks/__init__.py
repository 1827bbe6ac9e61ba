"""Built-in tasks of the compiled engine: Gymnasium's MuJoCo tasks, versions 4 and 5, and classic control.

Gymnasium is the reference. From the same seed and the same actions, with the same MuJoCo, a built-in MuJoCo task gives
the same observations, rewards and ends, to the bit. A few numbers may differ in the last bit, because Gymnasium's own
differ between processors: sines and cosines (observed in Reacher and InvertedDoublePendulum), distances (the rewards of
Reacher and Pusher) and squares (the reward of InvertedDoublePendulum). Classic control is within 1e-12 for each step,
from the same state.

Models are those of the installed Gymnasium. Rendering options are not options of a compiled task.
"""

from __future__ import annotations

from collections.abc import Mapping

from clipup.engines.compiled.task import CompiledTask
from clipup.engines.compiled.tasks import ant, arms, classic, humanoids, pendulums, runners
from clipup.engines.compiled.tasks.declared import BuiltIn, Settings, near_miss
from clipup.errors import UnknownEnvironment

__all__ = ["BUILT_IN", "BuiltIn", "task"]

BUILT_IN: Mapping[str, BuiltIn] = {
    entry.id: entry for family in (ant, arms, classic, humanoids, pendulums, runners) for entry in family.TASKS
}
"""Every built-in task by its id: its step limit, and its options with their defaults."""


def task(id: str, options: Mapping[str, object] | None = None) -> CompiledTask:
    """Return the built-in task called `id`, with options that Gymnasium's environment of that name takes.

    >>> task("CartPole-v1", {"sutton_barto_reward": True}).max_episode_steps
    500
    """
    entry = BUILT_IN.get(id)
    if entry is None:
        raise UnknownEnvironment(f"the compiled engine has no task {id!r}{near_miss(id, BUILT_IN)}")
    return entry.make(Settings(entry, options or {}))
