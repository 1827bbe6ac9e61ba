"""``clipup train``."""

from __future__ import annotations

import argparse
from pathlib import Path

from clipup.cli.arguments import add_output_flags, take_env_options
from clipup.cli.output import say
from clipup.cli.running import carry_out, comment
from clipup.errors import InvalidArgument, RunBusy, RunExists
from clipup.runs.config import RunConfig, Setting, kinds, settings
from clipup.tracking import Tracker

DESCRIPTION = """Train a policy on ENV and leave a run directory with its records, checkpoints and policy.

One number is worth tuning: --max-speed, how far the policy may move in one generation. Everything else follows from
it or has a sensible value, and the tasks of the ClipUp paper have presets. Settings come from, the later winning:
defaults, the preset of the task, --config FILE, flags. The word none (or auto) unsets one."""

EXAMPLES = """examples:
  clipup train LunarLanderContinuous-v3
  clipup train Walker2d-v4 --seed 3 --run runs/walker-3
  clipup train HalfCheetah-v4 --max-speed 0.1 --total-interactions 20e6
  clipup train CartPole-v1 --target-score 500 --generations 50
  clipup train pybullet_envs_gymnasium:HumanoidBulletEnv-v0 --workers 8
  clipup train --config runs/walker-3/config.toml --run runs/again      (repeats a run, bit for bit)
  clipup train LunarLanderContinuous-v3 --env.enable_wind true

stop it with Ctrl-C whenever you like: clipup resume RUN goes on to the same result."""

_HEADINGS = {
    "task": "the task",
    "policy": "the policy",
    "search": "the search",
    "stopping": "when to stop (whichever comes first)",
    "evaluation": "evaluation of the center, on the environment's own reward",
    "execution": "execution (never changes a result)",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add a flag for every setting."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.usage = "clipup train ENV [flags]"
    parser.add_argument("env", nargs="?", metavar="ENV", help="id of an environment, or module:id (see: clipup envs)")
    run = parser.add_argument_group("the run")
    run.add_argument("--run", metavar="DIR", help="run directory (default: runs/ENV-1, or the next free number)")
    run.add_argument("--config", metavar="FILE.toml", help="settings, as in the config.toml of a run")
    run.add_argument(
        "--preset", metavar="NAME", default="auto", help="preset to use, or none (default: the task's own)"
    )
    run.add_argument("--import", dest="imports", metavar="MODULE", action="append", default=[],
                     help="module that an environment named in --config may import")  # fmt: skip
    run.add_argument("--dry-run", action="store_true", help="print the resolved configuration and do nothing")
    add_setting_flags(parser, [name for name in settings() if name not in ("env", "env_options")])
    parser.add_argument_group("the environment").add_argument(
        "--env.KEY", metavar="VALUE", dest="unused", help="option KEY of the environment"
    )
    add_output_flags(parser)


def add_setting_flags(parser: argparse.ArgumentParser, names: list[str]) -> None:
    """Add flags for these settings, in their groups."""
    known, types = settings(), kinds()
    groups: dict[str, argparse._ArgumentGroup] = {}  # pyright: ignore[reportPrivateUsage]
    for name in names:
        setting = known[name]
        if setting.group not in groups:
            groups[setting.group] = parser.add_argument_group(_HEADINGS[setting.group])
        flag, text = "--" + name.replace("_", "-"), _help(name, setting)
        if types[name] is bool:
            groups[setting.group].add_argument(
                flag, action=argparse.BooleanOptionalAction, default=None, help=text, dest=name
            )
        else:
            metavar = "|".join(setting.choices) or {int: "N", float: "X", str: "TEXT"}[types[name]]
            groups[setting.group].add_argument(flag, metavar=metavar, dest=name, help=text)


def given_settings(arguments: argparse.Namespace) -> dict[str, object]:
    """The settings that were given as flags."""
    from clipup.runs.resolve import parse_flag

    found: dict[str, object] = {}
    for name in settings():
        value = getattr(arguments, name, None)
        if isinstance(value, str):
            found[name] = parse_flag(name, value)
        elif value is not None:
            found[name] = value
    return found


def prepare(words: list[str]) -> tuple[list[str], dict[str, object]]:
    """Take ``--env.KEY VALUE`` out before argparse sees the words."""
    from clipup.runs.toml import parse_value

    rest, options = take_env_options(words)
    return rest, {"env_options": {name: parse_value(text) for name, text in options.items()}} if options else {}


def run(arguments: argparse.Namespace) -> int:
    """Train."""
    from clipup.runs.resolve import resolve
    from clipup.runs.rundir import RunDirectory, next_free
    from clipup.runs.toml import format_config, read_toml
    from clipup.runs.trust import check_cluster, check_import
    from clipup.training.api import TrainingResult, start

    file = read_toml(arguments.config) if arguments.config else None
    given = given_settings(arguments)
    config, _ = resolve(given, file=file, file_name=str(arguments.config), preset=arguments.preset)
    if arguments.env is None:
        check_import(config.env, named=arguments.imports, source=arguments.config)
    check_cluster(config.cluster, named="cluster" in given, source=str(arguments.config))
    if arguments.run == "":
        raise InvalidArgument("--run needs the name of a directory, got nothing")
    if arguments.dry_run:
        say(format_config(config).rstrip("\n"))
        return 0

    def begin(trackers: list[Tracker]) -> TrainingResult:
        tried: Path | None = None
        while True:
            path = Path(arguments.run) if arguments.run else next_free(Path("runs"), config.env)
            try:
                return start(config, RunDirectory(path), trackers=trackers, comment=comment(path))
            except (RunExists, RunBusy):
                if arguments.run or path == tried:
                    raise
                tried = path  # another run took the name since it was found free: there are more

    return carry_out(arguments, begin)


def _help(name: str, setting: Setting) -> str:
    default = RunConfig.__dataclass_fields__[name].default
    shown = ("yes" if default else "no") if isinstance(default, bool) else setting.unset if default is None else default
    return f"{setting.help} (default: {shown})".replace("%", "%%")
