"""``clipup tune``."""

from __future__ import annotations

import argparse
import dataclasses
import math
from pathlib import Path

from clipup.cli.arguments import add_env_options, add_output_flags
from clipup.cli.diagnose import finding_lines
from clipup.cli.output import note, print_json, say
from clipup.cli.train import add_setting_flags, given_settings
from clipup.runs.config import settings
from clipup.tracking.terminal import duration
from clipup.tuning import TrialProgress, TuningSettings, tune
from clipup.tuning.baseline import Gain
from clipup.tuning.journal import EXTRA_RANGES
from clipup.tuning.tune import BEST

DESCRIPTION = """Find max_speed for ENV: the one number that is worth tuning.

Values spread geometrically over a range are tried. Most are stopped early; the best get more seeds. The cost is counted
in whole runs: --budget 20 trains at most as much as 20 runs of --generations. Where max_speed cannot matter (a linear
policy with discrete actions), radius_factor and the population are tuned in its place. The best is compared with
policies without training; where nothing learned, no winner is named, and no best.toml is left. After Ctrl-C, the same
command continues. The result is a command line, a best.toml, and a figure of score against max_speed. The trials are
ordinary runs: clipup report RUN/trials shows them, and clipup watch RUN while they train."""
EXAMPLES = """examples:
  clipup tune LunarLanderContinuous-v3
  clipup tune Swimmer-v4 --generations 60 --population 50 --low 0.01 --high 1
  clipup tune Walker2d-v4 --also radius_factor --also step_ratio --budget 24"""

NOT_HERE = ("env", "env_options", "max_speed", "optimizer", "target_score", "total_interactions", "time_limit")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.usage = "clipup tune ENV [flags]"
    parser.add_argument(
        "env",
        metavar="ENV",
        help="an id, module:id, or your own task: module:Name, file.py:Name (see: clipup envs)",
    )
    usual = TuningSettings()
    group = parser.add_argument_group("the search for max_speed")
    group.add_argument("--run", metavar="DIR", help="directory of the search (default: runs/tune-ENV)")
    group.add_argument("--low", type=float, default=usual.low, metavar="X", help="lowest value (default: %(default)g)")
    group.add_argument(
        "--high", type=float, default=usual.high, metavar="X", help="highest value (default: %(default)g)"
    )
    group.add_argument("--points", type=int, default=usual.points, metavar="N",
                       help="values of the first scan (default: %(default)s)")  # fmt: skip
    group.add_argument("--budget", type=float, default=usual.budget, metavar="X",
                       help="train at most as much as this many whole runs (default: %(default)g)")  # fmt: skip
    group.add_argument("--also", action="append", default=[], metavar="SETTING",
                       help=f"also tune {' or '.join(EXTRA_RANGES)}; may be repeated")  # fmt: skip
    group.add_argument("--preset", metavar="NAME", default="auto", help="preset to use, or none (default: the task's)")
    add_setting_flags(parser, [name for name in settings() if name not in NOT_HERE])
    add_env_options(parser)
    add_output_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Search, and print the result."""
    from clipup.runs.resolve import resolve
    from clipup.runs.rundir import directory_name
    from clipup.runs.trust import import_flag

    config, _ = resolve(given_settings(arguments), preset=arguments.preset)
    plan = TuningSettings(arguments.low, arguments.high, arguments.points, arguments.budget)
    directory = Path(arguments.run) if arguments.run else Path("runs") / f"tune-{directory_name(config.env)}"

    def show(progress: TrialProgress) -> None:
        if not arguments.quiet:
            note(progress_line(progress))

    try:
        result = tune(config, directory, settings=plan, extra=tuple(arguments.also), report=show)
    except KeyboardInterrupt:
        note(f"stopped; the same command continues the search in {directory}")
        raise
    best = result.standings[0]
    if arguments.json:
        print_json(
            {
                "max_speed": result.max_speed,
                "setting": result.setting,
                "learned": result.learned,
                "gain": dataclasses.asdict(result.gain) if result.gain is not None else None,
                "notes": list(result.notes),
                "settings": best.point.settings(),
                "score": best.mean,
                "score_standard_error": best.standard_error,
                "seeds": len(best.values),
                "runs_worth": result.spent,
                "command": result.command if result.learned else None,
                "findings": [finding.as_json() for finding in result.findings],
                "config": str(directory / BEST) if result.learned else None,
                "standings": [
                    {**standing.point.settings(), "scores": list(standing.values)} for standing in result.standings
                ],
            }
        )
        return 0
    for standing in result.standings:
        error = standing.standard_error
        more = f" ± {error:.3g} ({len(standing.values)} seeds)" if math.isfinite(error) else " (1 seed)"
        say(f"  {standing.point!s:<40} {standing.mean:10.5g}{more}")
    for text in result.notes:
        say(text)
    if result.gain is not None:
        say(gain_line(result.gain))
    figure = directory / f"score-by-{result.setting.replace('_', '-')}.png"
    if not result.learned:
        say(f"no winner, after the training of {result.spent:.3g} whole runs")
        say(f"figure: {figure}")
        return 0
    say(f"best: {best.point}, after the training of {result.spent:.3g} whole runs")
    say(f"  {result.command}")
    best_run = f"clipup train --config {directory / BEST}{import_flag(config)}"
    say(f"  {best_run}\nfigure: {figure}")
    for line in finding_lines(result.findings):
        say(line)
    return 0


def gain_line(gain: Gain) -> str:
    """How much better the best is than no training."""
    sign = "+" if gain.difference >= 0 else ""
    return (
        f"against {gain.name} ({gain.baseline:.5g}): {sign}{gain.difference:.5g} ± {gain.half_width:.3g} "
        "(95 % interval)"
    )


def progress_line(progress: TrialProgress) -> str:
    """One line: the trial that was just run, the training so far, and the time left."""
    left = max(0.0, progress.planned - progress.spent) * progress.seconds_per_run
    rest = "" if not math.isfinite(left) else f", about {duration(left)} left"
    value = f"{progress.value:.5g}" if math.isfinite(progress.value) else "failed"
    return (
        f"[{progress.spent:4.1f} of about {progress.planned:.0f} runs{rest}] "
        f"{progress.point}, seed {progress.seed}: {value} after {100 * progress.share:.0f} % of a run"
    )
