"""Executors: where evaluation runs, be it in this process, in others or on a cluster. No result depends on it."""

from clipup.executors.protocol import Executor
from clipup.executors.selection import make_executor

__all__ = ["Executor", "make_executor"]
