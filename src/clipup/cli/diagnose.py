"""``clipup diagnose``, and the lines about findings that `train` and `tune` end with."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence

from clipup.cli.arguments import add_output_flags, run_paths
from clipup.cli.output import print_json, say
from clipup.diagnosis import Finding

DESCRIPTION = """Find out what is wrong with a run, from its records alone.

Each finding is a plain sentence with the numbers behind it, and says what to change to which value. A healthy run has
no findings."""
EXAMPLES = """examples:
  clipup diagnose runs/LunarLanderContinuous-v3-1
  clipup diagnose runs --json"""


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
                "problems": problems,
                "findings": [finding.as_json() for finding in findings],
            }
        )
        if not arguments.json:
            # A directory's name may not be valid text.
            say(f"{path}: {len(loaded.records)} generations".encode("utf-8", "replace").decode("utf-8"))
            for problem in problems:
                say(textwrap.indent(textwrap.fill(f"unreadable: {problem}", 110), "  "))
            nothing = "nothing wrong in the records" if loaded.records else "no records"
            for line in finding_lines(findings) or [f"  {nothing}"]:
                say(line)
    if arguments.json:
        print_json({"runs": entries})
    return 0


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """Findings as lines for a terminal."""
    lines: list[str] = []
    for finding in findings:
        said = f"{finding.severity}: {finding.sentence}"
        lines += textwrap.wrap(said, 110, initial_indent="  ", subsequent_indent="    ")
        lines += textwrap.wrap(finding.suggestion, 110, initial_indent="    → ", subsequent_indent="      ")
    return lines
