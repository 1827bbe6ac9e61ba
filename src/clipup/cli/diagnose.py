"""``clipup diagnose``, and the lines about findings that `train` and `tune` end with."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence

from clipup.cli.arguments import add_output_flags, run_paths
from clipup.cli.output import print_json, say, terminal_width
from clipup.diagnosis import Finding
from clipup.diagnosis.trace import ENOUGH
from clipup.errors import printable

DESCRIPTION = """Find out what is wrong with a run, from its records alone.

Each finding is a plain sentence with the numbers behind it, and says what to change to which value. A healthy run has
no findings."""
EXAMPLES = """examples:
  clipup diagnose runs/LunarLanderContinuous-v3-1
  clipup diagnose runs --json"""

WIDEST = 110
"""Columns of a sentence where the terminal has more, or where there is none."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run directories, or directories that contain some")
    add_output_flags(parser, quiet=False)


def run(arguments: argparse.Namespace) -> int:
    """Diagnose each run."""
    from clipup.report.loading import load_run
    from clipup.runs.rundir import find_runs

    entries: list[dict[str, object]] = []
    for path in find_runs(run_paths(arguments.runs)):
        loaded = load_run(path)
        findings, failure = loaded.diagnose()
        problems = [*loaded.problems, *failure]
        entries.append(
            {
                "run": str(path),
                "generation": loaded.records[-1].generation if loaded.records else 0,
                "too_short": len(loaded.records) < ENOUGH,
                "problems": problems,
                "findings": [finding.as_json() for finding in findings],
            }
        )
        if not arguments.json:
            say(f"{printable(str(path))}: {len(loaded.records)} generations")
            for problem in problems:
                say(textwrap.indent(textwrap.fill(f"unreadable: {problem}", _width() - 2), "  "))
            for line in finding_lines(findings) or [f"  {verdict(len(loaded.records))}"]:
                say(line)
    if arguments.json:
        print_json({"runs": entries})
    return 0


def verdict(generations: int) -> str:
    """What to say about a run without findings."""
    if not generations:
        return "no records"
    if generations < ENOUGH:
        return f"too short to say: most rules need at least {ENOUGH} generations"
    return "nothing wrong in the records"


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """Findings as lines for a terminal."""
    lines: list[str] = []
    for finding in findings:
        said = f"{finding.severity}: {finding.sentence}"
        lines += textwrap.wrap(said, _width(), initial_indent="  ", subsequent_indent="    ")
        lines += textwrap.wrap(finding.suggestion, _width(), initial_indent="    → ", subsequent_indent="      ")
    return lines


def _width() -> int:
    """The columns for sentences: those of the terminal, and at most as many as can be read well."""
    return min(WIDEST, terminal_width(sys.stdout) or WIDEST)
