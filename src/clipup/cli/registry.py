"""The commands. A new one is a line here, and a module like `CommandModule`.

A module is imported only when its command is called, so `clipup --help` is always quick.
"""

from __future__ import annotations

import argparse
import importlib
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


def load(name: str) -> CommandModule:
    """Import the module of a command."""
    return cast(CommandModule, importlib.import_module(f"clipup.cli.{name}"))


COMMANDS = {
    "train": "train a policy on an environment",
    "resume": "go on with a run, or give it more generations",
    "evaluate": "measure a trained policy on the environment's own reward",
    "record": "record a video of a trained policy",
    "export": "write a trained policy as ONNX or safetensors",
    "envs": "list environments and what runs them",
    "runs": "list runs: task, generation, score, state",
    "report": "write one page about runs: curves, diagnosis, settings",
    "watch": "show the same page live, for runs in progress",
    "diagnose": "find what is wrong with a run, and what to change",
    "tune": "find max_speed for a task",
    "zoo": "list, play or retrain policies that come with clipup",
    "bench": "measure how fast this machine trains on an environment",
    "reproduce": "repeat an experiment of the paper and compare it",
}
"""The purpose of each command, by name."""
