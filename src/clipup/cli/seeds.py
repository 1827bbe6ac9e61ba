"""What `train --seeds` and `resume` of several seeds share: the progress, the table and the report at the end."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from clipup.cli.output import note, print_json, say, table, terminal_width
from clipup.cli.side_by_side import ProgressLine, exit_code
from clipup.runs.trust import import_flag
from clipup.tracking.terminal import count, number
from clipup.training.seeds import SeedsInterrupted, SeedsResult, Watch

REPORT = "report.html"


def carry_out_seeds(arguments: argparse.Namespace, train: Callable[[Watch | None, float], SeedsResult]) -> int:
    """Run `train` and show its progress; write the report, print the table, return the exit code."""
    line = ProgressLine(quiet=arguments.quiet)
    try:
        result = train(line.watch, line.seconds)
    except SeedsInterrupted as interrupted:
        result = interrupted.result
    finally:
        line.clear()
    again = f"this goes on: clipup resume {shlex.quote(str(result.path))}{import_flag(result.config)}"
    if result.end.reason == "interrupted":
        code = exit_code(result.end, again=again)
        if arguments.json:
            print_json(_as_json(result, None))
        return code
    report = _write_report(result)
    if arguments.json:
        print_json(_as_json(result, report))
    else:
        say(summary(result))
        if report is not None and not arguments.quiet:
            say(f"wrote {report}")
    return exit_code(result.end, again=again)


def summary(result: SeedsResult) -> str:
    """The table of the runs, and a line with the median and the quartiles of their scores."""
    header = ("seed", "generation", "interactions", "score", "best score", "state")
    rows = [
        (
            str(run.seed),
            str(run.generation),
            count(run.total_interactions),
            number(run.score),
            number(run.best_score),
            run.state + (f" ({run.reason})" if run.reason else ""),
        )
        for run in result.runs
    ]
    quartiles = result.quartiles
    best = next((run for run in result.runs if run.seed == result.chosen), None)
    if best is not None:
        last = f"seed {best.seed} was the best and went on: best score {number(best.best_score)}, in {best.path}"
    elif quartiles is None:
        last = f"no run of {len(result.runs)} is finished"
    else:
        low, middle, high = quartiles
        runs = len(result.scores)
        last = (
            f"median score {middle:.2f}, quartiles {low:.2f} to {high:.2f}, of {runs} "
            f"run{'' if runs == 1 else 's'}, in {result.path}"
        )
    return f"{table(header, rows, width=terminal_width(sys.stdout))}\n{last}"


def _write_report(result: SeedsResult) -> Path | None:
    """Write the page about all runs into their directory; None where no run has begun."""
    from clipup.report.render import write_report

    if not any(run.generation for run in result.runs):
        return None
    return write_report([result.path], result.path / REPORT, warn=note).page


def _as_json(result: SeedsResult, report: Path | None) -> dict[str, object]:
    low, middle, high = result.quartiles or (None, None, None)
    runs = [{**dataclasses.asdict(run), "path": str(run.path)} for run in result.runs]
    return {
        "run": str(result.path),
        "env": result.config.env,
        "seeds": len(result.runs),
        "chosen": result.chosen,
        "state": result.end.reason,
        "score_median": middle,
        "score_lower_quartile": low,
        "score_upper_quartile": high,
        "report": None if report is None else str(report),
        "failures": result.end.failures,
        "runs": runs,
    }
