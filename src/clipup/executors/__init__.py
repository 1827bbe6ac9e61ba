"""Where evaluation runs: here, in processes, on a cluster. It is a pure function, so this never changes a result."""

from clipup.executors.protocol import Executor
from clipup.executors.selection import make_executor

__all__ = ["Executor", "make_executor"]
