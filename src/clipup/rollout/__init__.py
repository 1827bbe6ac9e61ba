"""Rollouts: a population through a simulator, each candidate's result a pure function of its own inputs."""

from clipup.rollout.check import Report, check_environment
from clipup.rollout.engine import Engine, make_engine
from clipup.rollout.outcomes import Failure, Outcomes
from clipup.rollout.task import Task

__all__ = ["Engine", "Failure", "Outcomes", "Report", "Task", "check_environment", "make_engine"]
