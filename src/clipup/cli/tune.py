"""``clipup tune``."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from clipup.cli.arguments import add_env_options, add_output_flags
from clipup.cli.diagnose import finding_lines
from clipup.cli.output import note, print_json, say
from clipup.cli.train import add_setting_flags, given_settings
from clipup.runs.config import settings
from clipup.tuning.plan import Point, SearchSettings
from clipup.tuning.trials import Progress
from clipup.tuning.tune import spread, tune

DESCRIPTION = """Find max_speed for ENV: the one number that is worth tuning.

Values spread geometrically over a range are tried; most are stopped early, the best get more seeds. The cost is given
in whole runs: --budget 20 trains no more than 20 runs of --generations do. Stopped with Ctrl-C, the same command goes
on where it was. The answer is a command line, a best.toml, and a picture of score against max_speed; the trials are
ordinary runs (clipup report RUN/trials shows them, clipup watch RUN while they go)."""
EXAMPLES = """examples:
  clipup tune LunarLanderContinuous-v3
  clipup tune Swimmer-v4 --generations 60 --population 50 --low 0.01 --high 1
  clipup tune Walker2d-v4 --also radius_factor --also step_ratio --budget 24"""

NOT_HERE = ("env", "env_options", "max_speed", "optimizer", "target_score", "total_interactions", "time_limit")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.usage = "clipup tune ENV [flags]"
    parser.add_argument("env", metavar="ENV", help="id of an environment, or module:id (see: clipup envs)")
    usual = SearchSettings()
    group = parser.add_argument_group("the search for max_speed")
    group.add_argument("--run", metavar="DIR", help="where it is kept (default: runs/tune-ENV)")
    group.add_argument("--low", type=float, default=usual.low, metavar="X", help=f"default: {usual.low:g}")
    group.add_argument("--high", type=float, default=usual.high, metavar="X", help=f"default: {usual.high:g}")
    group.add_argument("--points", type=int, default=usual.points, metavar="N",
                       help=f"values of the first scan (default: {usual.points})")  # fmt: skip
    group.add_argument("--budget", type=float, default=usual.budget, metavar="X",
                       help=f"at most so many whole runs' worth of training (default: {usual.budget:g})")  # fmt: skip
    group.add_argument("--also", action="append", default=[], metavar="SETTING",
                       help="also tune radius_factor or step_ratio")  # fmt: skip
    group.add_argument("--preset", metavar="NAME", default="auto", help="preset to use, or none (default: the task's)")
    add_setting_flags(parser, [name for name in settings() if name not in NOT_HERE])
    add_env_options(parser)
    add_output_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Search, and say what was found."""
    from clipup.runs.resolve import resolve
    from clipup.runs.rundir import next_free

    config, _ = resolve(given_settings(arguments), preset=arguments.preset)
    plan = SearchSettings(arguments.low, arguments.high, arguments.points, arguments.budget)
    name = next_free(Path(), config.env).name.rpartition("-")[0]
    folder = Path(arguments.run) if arguments.run else Path("runs") / f"tune-{name}"

    def show(progress: Progress) -> None:
        if not arguments.quiet:
            note(progress_line(progress))

    try:
        result = tune(config, folder, settings=plan, extra=tuple(arguments.also), report=show)
    except KeyboardInterrupt:
        note(f"stopped; the same command goes on, with what is in {folder}")
        raise
    best = result.standings[0]
    if arguments.json:
        print_json(
            {
                "max_speed": result.max_speed,
                "settings": best.point.settings(),
                "score": best.mean,
                "score_standard_error": spread(best),
                "seeds": len(best.values),
                "runs_worth": result.spent,
                "command": result.command,
                "findings": [finding.as_json() for finding in result.findings],
                "config": str(folder / "best.toml"),
                "standings": [
                    {**standing.point.settings(), "scores": list(standing.values)} for standing in result.standings
                ],
            }
        )
        return 0
    for standing in result.standings:
        error = spread(standing)
        more = f" ± {error:.3g} ({len(standing.values)} seeds)" if math.isfinite(error) else " (1 seed)"
        say(f"  {described(standing.point):<40} {standing.mean:10.5g}{more}")
    say(f"best: {described(best.point)}, after {result.spent:.3g} runs' worth of training")
    say(f"  {result.command}")
    say(f"  clipup train --config {folder / 'best.toml'}     picture: {folder / 'score-by-max-speed.png'}")
    for line in finding_lines(result.findings):
        say(line)
    return 0


def described(point: Point) -> str:
    """A point in words."""
    return ", ".join(f"{name} {value:g}" for name, value in point.settings().items())


def progress_line(progress: Progress) -> str:
    """What was just done, how much of all that is, and how long the rest may take."""
    left = max(0.0, progress.planned - progress.spent) * progress.seconds_per_run
    rest = "" if not math.isfinite(left) else f", about {duration(left)} left"
    value = f"{progress.value:.5g}" if math.isfinite(progress.value) else "failed"
    return (
        f"[{progress.spent:4.1f} of about {progress.planned:.0f} runs{rest}] "
        f"{described(progress.point)}, seed {progress.seed}: {value} after {100 * progress.share:.0f} % of a run"
    )


def duration(seconds: float) -> str:
    """Seconds in words.

    >>> duration(42), duration(600), duration(8000)
    ('42 s', '10 min', '2 h 13 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
