"""The commands. A new one is a line here, and a module like `CommandModule`.

A module is imported only when its command is called, so `clipup --help` is always quick.
"""

from __future__ import annotations

import argparse
import importlib
from dataclasses import dataclass
from typing import Protocol, cast


class CommandModule(Protocol):
    """What the module of a command offers."""

    DESCRIPTION: str
    EXAMPLES: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments."""
        ...

    def run(self, arguments: argparse.Namespace) -> int:
        """Run the command; return the exit code."""
        ...


@dataclass(frozen=True)
class Command:
    """The name of a command, its purpose in one line, and its module."""

    name: str
    summary: str
    module: str

    def load(self) -> CommandModule:
        """Import the module."""
        return cast(CommandModule, importlib.import_module(self.module))


COMMANDS = (
    Command("train", "train a policy on an environment", "clipup.cli.train"),
    Command("resume", "go on with a run, or give it more generations", "clipup.cli.resume"),
    Command("evaluate", "measure a trained policy on the environment's own reward", "clipup.cli.evaluate"),
    Command("record", "record a video of a trained policy", "clipup.cli.record"),
    Command("export", "write a trained policy as ONNX or safetensors", "clipup.cli.export"),
    Command("envs", "list environments and what runs them", "clipup.cli.envs"),
    Command("runs", "list runs: task, generation, score, state", "clipup.cli.runs"),
    Command("report", "write one page about runs: curves, diagnosis, settings", "clipup.cli.report"),
    Command("watch", "show the same page live, for runs in progress", "clipup.cli.watch"),
    Command("diagnose", "find what is wrong with a run, and what to change", "clipup.cli.diagnose"),
    Command("tune", "find max_speed for a task", "clipup.cli.tune"),
    Command("bench", "measure how fast this machine trains on an environment", "clipup.cli.bench"),
    Command("reproduce", "repeat an experiment of the paper and compare it", "clipup.cli.reproduce"),
)
