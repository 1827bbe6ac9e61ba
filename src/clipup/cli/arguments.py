"""An argument parser whose errors are one line and suggest the nearest flag; arguments that commands share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from clipup.errors import FileFault, InvalidArgument
from clipup.suggestions import did_you_mean


class OneLineParser(argparse.ArgumentParser):
    """Raises `InvalidArgument` where argparse would print its usage and exit."""

    def __init__(self, prog: str, description: str = "", epilog: str = "") -> None:
        layout = argparse.RawDescriptionHelpFormatter
        super().__init__(prog, description=description, epilog=epilog, formatter_class=layout, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Raise instead of exiting."""
        raise InvalidArgument(f"{message} (see: {self.prog} --help)")

    def parse_all(self, words: list[str]) -> argparse.Namespace:
        """Parse, and refuse what is not known with a suggestion."""
        options: dict[str, str] = {}
        if self.get_default("env_options") is not None:  # set by `add_env_options`
            words, options = take_env_options(words)
        arguments, unknown = self.parse_known_args(words)
        if unknown:
            flag = next((word for word in unknown if word.startswith("-")), unknown[0])
            name = flag.split("=", 1)[0]
            if name.startswith("-"):
                flags = [option for option in self._option_string_actions if option.startswith("--")]
                raise InvalidArgument(f"unknown flag {name}{did_you_mean(name, flags)} (see: {self.prog} --help)")
            raise InvalidArgument(f"unexpected argument {flag!r} (see: {self.prog} --help)")
        if options:
            from clipup.runs.toml import parse_value

            arguments.env_options = {name: parse_value(text) for name, text in options.items()}
        return arguments


def add_env_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:  # pyright: ignore[reportPrivateUsage]
    """Add ``--env.KEY VALUE``, for any KEY, to the arguments; return the group that it is shown in.

    The values are in `arguments.env_options`, by name.
    """
    group = parser.add_argument_group("the environment")
    group.add_argument("--env.KEY", metavar="VALUE", dest="unused", help="option KEY of the environment")
    parser.set_defaults(env_options={})
    return group


def add_output_flags(parser: argparse.ArgumentParser, *, json: bool = True, quiet: bool = True) -> None:
    """Add --quiet and --json."""
    group = parser.add_argument_group("output")
    if quiet:
        group.add_argument("--quiet", "-q", action="store_true", help="show only errors and the result")
    if json:
        group.add_argument("--json", action="store_true", help="print the result as one JSON object")


def run_paths(words: Sequence[str]) -> list[Path]:
    """The directories that were named; some may be gone, but at least one holds a run."""
    from clipup.runs.rundir import runs_below

    paths = [Path(word) for word in words]
    if not any(path.is_dir() for path in paths):
        raise FileFault(f"{', '.join(words)}: no such directory; clipup runs lists what there is")
    if not any(runs_below(path) for path in paths):
        raise FileFault(f"{', '.join(words)}: no run in there; make one: clipup train ENV")
    return paths


def whole_number(text: str, least: int = 1) -> int:
    """A type for argparse: a whole number of at least 1."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if not least <= value < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is not at least {least} and below 2**63")
    return value


def seed_number(text: str) -> int:
    """A type for argparse: a seed."""
    return whole_number(text, least=0)


def take_env_options(words: list[str]) -> tuple[list[str], dict[str, str]]:
    """Split ``--env.KEY VALUE`` and ``--env.KEY=VALUE`` off the words of a command line.

    >>> take_env_options(["A", "--env.gravity", "-9", "--seed", "1"])
    (['A', '--seed', '1'], {'gravity': '-9'})
    """
    rest: list[str] = []
    options: dict[str, str] = {}
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if not word.startswith("--env."):
            rest.append(word)
            continue
        name, separator, value = word.removeprefix("--env.").partition("=")
        if not name:
            raise InvalidArgument(f"{word} needs a name: --env.KEY VALUE")
        if not separator:
            if position == len(words):
                raise InvalidArgument(f"--env.{name} needs a value: --env.{name} VALUE")
            value = words[position]
            position += 1
        options[name] = value
    return rest, options
