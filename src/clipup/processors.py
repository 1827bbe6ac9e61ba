"""How many processors this process may use."""

from __future__ import annotations

import os


def available_threads() -> int:
    """Return the number of processors that this process may use; its affinity counts where the system has one."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
