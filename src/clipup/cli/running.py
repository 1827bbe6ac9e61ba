"""What `train` and `resume` share: the display while a run goes, and what is said when it ends."""

from __future__ import annotations

import argparse
import contextlib
import shlex
from collections.abc import Callable

from clipup.cli.diagnose import finding_lines
from clipup.cli.output import displays, print_json, say
from clipup.diagnosis import Finding, diagnose
from clipup.report.loading import LINES_AT_ONCE
from clipup.runs.records import Record, read_lines
from clipup.runs.rundir import RunDirectory
from clipup.runs.trust import import_flag, start_flag
from clipup.tracking import Tracker
from clipup.training.api import RunInterrupted, TrainingResult


def carry_out(arguments: argparse.Namespace, train: Callable[[list[Tracker]], TrainingResult]) -> int:
    """Run `train` with the display that was asked for and report how it ended; return the exit code."""
    code = 0
    try:
        result = train(displays(quiet=arguments.quiet, json_output=arguments.json))
    except RunInterrupted as interrupted:
        result, code = interrupted.result, interrupted.exit_code
    if arguments.json:
        print_json(as_json(result))
    elif code:
        with contextlib.suppress(OSError):  # a closed terminal may be what stopped the run
            say(f"stopped after generation {result.generation}, all saved; go on with: {_command('resume', result)}")
    else:
        more = [] if arguments.quiet else [*finding_lines(_findings(result)), next_steps(result)]
        say("\n".join([ending(result), *more]))
    return code


def as_json(result: TrainingResult) -> dict[str, object]:
    """The result for a program."""
    return {
        "run": str(result.path) if result.path is not None else None,
        "env": result.config.env,
        "state": result.state,
        "reason": result.reason,
        "generation": result.generation,
        "total_interactions": result.total_interactions,
        "score": result.score,
        "score_standard_error": result.score_standard_error,
        "episodes": result.config.evaluation_episodes,
        "seed": result.config.seed,
        "findings": [finding.as_json() for finding in _findings(result)],
    }


def _findings(result: TrainingResult) -> list[Finding]:
    """What is odd about the run; of a very long one, not all records are held at once."""
    if result.path is None:
        records = result.records
    else:
        records, _ = read_lines(RunDirectory(result.path).records_path, Record, limit=LINES_AT_ONCE)
    return diagnose(records, result.config, result.policy.actions.kind)


def ending(result: TrainingResult) -> str:
    """One line about a finished run."""
    score = "no score"
    if result.score is not None:
        error = result.score_standard_error
        score = f"score {result.score:.2f}" + (f" ± {error:.2f}" if error is not None else "")
        score += f" (mean of {result.config.evaluation_episodes} episodes)"
    return f"finished ({result.reason}): {score}, generation {result.generation}, in {result.path}"


def next_steps(result: TrainingResult) -> str:
    """Commands that are useful next."""
    further = {
        "generations": f"--generations +{max(1, result.generation)}",
        "interactions": f"--total-interactions {2 * result.total_interactions}",
        "seconds": f"--time-limit {2 * (result.config.time_limit or 0):g}",
        "evaluations": "--patience none",
        "callback": "",
    }.get(result.reason.rpartition(" ")[2], "--target-score none" if result.config.target_score else "--stop none")
    commands = [f"{_command('resume', result)} {further}".rstrip()]
    if result.generation:
        commands = [_command("evaluate", result), f"{_command('record', result)} -o video.mp4", *commands]
    return "\n".join(["next:", *(f"  {command}" for command in commands)])  # a line each, to be copied whole


def _command(name: str, result: TrainingResult) -> str:
    """A command on the run, with the user's leave to import what its task needs."""
    start = start_flag(result.config) if name == "resume" and not result.generation else ""
    return f"clipup {name} {shlex.quote(str(result.path))}{import_flag(result.config)}{start}"
