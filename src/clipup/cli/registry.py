"""The commands. A new one is a line here and a module with `configure(parser)` and `run(arguments) -> int`.

Modules are imported only when their command is called, so `clipup --help` stays quick whatever they need.
"""

from __future__ import annotations

import argparse
import importlib
from dataclasses import dataclass
from typing import Protocol, cast


class CommandModule(Protocol):
    """What the module of a command offers."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments, the description and the examples."""
        ...

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it; return the exit code."""
        ...


@dataclass(frozen=True)
class Command:
    """A command's name, what it is for in one line, and where it is."""

    name: str
    summary: str
    module: str

    def load(self) -> CommandModule:
        """Import the module."""
        return cast(CommandModule, importlib.import_module(self.module))


COMMANDS = (
    Command("train", "train a policy on an environment", "clipup.cli.train"),
    Command("resume", "go on with a run, or give it more generations", "clipup.cli.resume"),
    Command("evaluate", "how good a trained policy is, on the environment's own reward", "clipup.cli.evaluate"),
    Command("record", "a video of a trained policy", "clipup.cli.record"),
    Command("export", "a trained policy as ONNX or safetensors", "clipup.cli.export"),
    Command("envs", "which environments there are, and what runs them", "clipup.cli.envs"),
    Command("runs", "a table of runs: task, generation, score, state", "clipup.cli.runs"),
    Command("report", "one page about runs: curves, diagnosis, configurations", "clipup.cli.report"),
    Command("watch", "the same page, live, for runs in progress", "clipup.cli.watch"),
    Command("diagnose", "what is wrong with a run, and what to change", "clipup.cli.diagnose"),
    Command("tune", "find max_speed for a task", "clipup.cli.tune"),
    Command("bench", "how fast this machine rolls out an environment", "clipup.cli.bench"),
    Command("reproduce", "an experiment of the paper, beside its published values", "clipup.cli.reproduce"),
)
