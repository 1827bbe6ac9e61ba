"""``clipup train``."""

from __future__ import annotations

import argparse
from typing import cast

from clipup.cli.arguments import add_env_options, add_output_flags, whole_number
from clipup.cli.output import note, say
from clipup.cli.running import carry_out
from clipup.cli.seeds import carry_out_seeds
from clipup.errors import InvalidArgument
from clipup.runs.config import RunConfig, Setting, kinds, settings
from clipup.runs.keywords import RunSettings
from clipup.runs.resolve import parse_flag, resolve
from clipup.runs.toml import format_config
from clipup.training.api import train
from clipup.training.seeds import train_seeds

DESCRIPTION = """Train a policy on ENV and leave a run directory with its records, checkpoints and policy.

One number is worth tuning: --max-speed, how far the policy may move in one generation. Everything else follows from
it or has a sensible default. The tasks of the ClipUp paper have presets. Settings come from four places, and later ones
win: defaults, the preset of the task, --config FILE, flags. The value none (or auto) unsets a setting."""

EXAMPLES = """examples:
  clipup train LunarLanderContinuous-v3
  clipup train Walker2d-v4 --seed 3 --run runs/walker-3
  clipup train HalfCheetah-v4 --max-speed 0.1 --total-interactions 20e6
  clipup train CartPole-v1 --target-score 500 --generations 50
  clipup train pybullet_envs_gymnasium:HumanoidBulletEnv-v0 --workers 8
  clipup train --config runs/walker-3/config.toml --run runs/again      (repeat a run, bit for bit)
  clipup train LunarLanderContinuous-v3 --env.enable_wind true
  clipup train Pendulum-v1 --wrapper 'gymnasium.wrappers:FrameStackObservation(stack_size=3)'
  clipup train CartPole-v1 --seeds 5                    (five runs side by side, with seeds 0 to 4)
  clipup train Humanoid-v4 --seeds 4 --best-after 5e6   (four starts; the best of them goes on)

Ctrl-C stops a run. Later, clipup resume RUN goes on with it, to the same result."""

_HEADINGS = {
    "task": "the task",
    "policy": "the policy",
    "search": "the search",
    "stopping": "when to stop (at the first of these limits)",
    "evaluation": "evaluation of the center, on the environment's own reward",
    "execution": "execution (never changes a result)",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add a flag for every setting."""
    parser.usage = "clipup train ENV [flags]"
    parser.add_argument(
        "env",
        nargs="?",
        metavar="ENV",
        help="an id, module:id, or your own environment or task: module:Name, file.py:Name (see: clipup envs)",
    )
    run = parser.add_argument_group("the run")
    run.add_argument("--run", metavar="DIR", help="run directory (default: runs/ENV-1, or the next free number)")
    run.add_argument("--config", metavar="FILE.toml", help="settings, as in the config.toml of a run")
    run.add_argument("--preset", metavar="NAME", default="auto", help="preset to use, or none (default: the task's)")
    run.add_argument("--import", dest="imports", metavar="MODULE", action="append", default=[],
                     help="module that an environment named in --config may import")  # fmt: skip
    run.add_argument("--seeds", type=whole_number, metavar="N",
                     help="train with N seeds from --seed on, side by side: one directory with a run each")  # fmt: skip
    run.add_argument("--best-after", metavar="N",
                     help="with --seeds: after N interactions each, only the best run goes on")  # fmt: skip
    run.add_argument("--dry-run", action="store_true", help="print the resolved configuration and stop")
    add_setting_flags(parser, [name for name in settings() if name not in ("env", "env_options")])
    add_env_options(parser)
    add_output_flags(parser)


def add_setting_flags(parser: argparse.ArgumentParser, names: list[str], *, default: str | None = None) -> None:
    """Add flags for these settings, in their groups. The help shows `default`, or each setting's own default."""
    known, types = settings(), kinds()
    groups: dict[str, argparse._ArgumentGroup] = {}  # pyright: ignore[reportPrivateUsage]
    for name in names:
        setting = known[name]
        if setting.group not in groups:
            groups[setting.group] = parser.add_argument_group(_HEADINGS[setting.group])
        add = groups[setting.group].add_argument
        flag, text = "--" + name.replace("_", "-"), _help(name, setting, default)
        if name == "wrapper":
            add(flag, metavar="TEXT", dest=name, action="append", help=f"{text}; may be repeated")
        elif types[name] is bool:
            add(flag, action=argparse.BooleanOptionalAction, default=None, help=text, dest=name)
        else:
            metavar = "|".join(setting.choices) or {int: "N", float: "X", str: "TEXT"}[types[name]]
            add(flag, metavar=metavar, dest=name, help=text)


def given_settings(arguments: argparse.Namespace) -> dict[str, object]:
    """The settings that were given as flags."""
    found: dict[str, object] = {}
    for name in settings():
        value = getattr(arguments, name, None)
        if name == "wrapper" and value is not None:
            found[name] = "; ".join(value)
        elif isinstance(value, str):
            found[name] = parse_flag(name, value)
        elif value is not None and value != {}:
            found[name] = value
    return found


def run(arguments: argparse.Namespace) -> int:
    """Train."""
    given = given_settings(arguments)
    if arguments.dry_run:
        config, _ = resolve(given, file=arguments.config, preset=arguments.preset, imports=arguments.imports)
        say(format_config(config).rstrip("\n"))
        return 0
    env = given.pop("env", None)
    after = None if arguments.best_after is None else cast(int, parse_flag("total_interactions", arguments.best_after))
    if after is not None and arguments.seeds is None:
        raise InvalidArgument("--best-after chooses among several seeds; give --seeds N too")
    if arguments.seeds is not None:
        return carry_out_seeds(
            arguments,
            lambda watch, seconds: train_seeds(
                cast("str | None", env),
                seeds=arguments.seeds,
                best_after=after,
                run=arguments.run,
                config=arguments.config,
                preset=arguments.preset,
                imports=arguments.imports,
                watch=watch,
                watch_seconds=seconds,
                warn=note,
                **cast(RunSettings, given),
            ),
        )
    return carry_out(
        arguments,
        lambda trackers: train(
            cast("str | None", env),
            run=True if arguments.run is None else arguments.run,
            config=arguments.config,
            preset=arguments.preset,
            imports=arguments.imports,
            trackers=trackers,
            **cast(RunSettings, given),
        ),
    )


def _help(name: str, setting: Setting, default: str | None) -> str:
    if default is None:
        own = RunConfig.__dataclass_fields__[name].default
        default = ("yes" if own else "no") if isinstance(own, bool) else setting.unset if own is None else str(own)
    return f"{setting.help} (default: {default})".replace("%", "%%")
