"""Engines: a population through a simulator, each candidate's result a pure function of its own inputs."""

import warnings

from clipup.engines.gymnasium.check import SeedCheck, check_environment
from clipup.engines.outcomes import Failure, Outcomes
from clipup.engines.protocol import Engine, EngineDescription
from clipup.engines.registry import make_engine
from clipup.engines.rollout import Rollout
from clipup.engines.task import Task

__all__ = [
    "Engine",
    "EngineDescription",
    "Failure",
    "Outcomes",
    "Rollout",
    "SeedCheck",
    "Task",
    "check_environment",
    "make_engine",
]


def __getattr__(name: str) -> object:
    if name != "Report":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn("clipup.engines.Report is now clipup.engines.SeedCheck", DeprecationWarning, stacklevel=2)
    return SeedCheck
