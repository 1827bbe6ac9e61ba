"""Rollouts: a population through a simulator, each candidate's result a pure function of its own inputs."""

from clipup.engines.check import Report, check_environment
from clipup.engines.engine import Engine, make_engine
from clipup.engines.outcomes import Failure, Outcomes
from clipup.engines.task import Task

__all__ = ["Engine", "Failure", "Outcomes", "Report", "Task", "check_environment", "make_engine"]
