"""``clipup diagnose``, and the words that `train` ends with."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence

from clipup.cli.arguments import add_output_flags, run_paths
from clipup.cli.output import print_json, say
from clipup.diagnosis import Finding, diagnose

DESCRIPTION = """What is wrong with a run, from its records alone: in plain sentences, with the numbers behind them and
what to change by how much. Says nothing about a run in health."""
EXAMPLES = """examples:
  clipup diagnose runs/LunarLanderContinuous-v3-1
  clipup diagnose runs --json"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run directories, or directories that hold some")
    add_output_flags(parser, quiet=False)


def run(arguments: argparse.Namespace) -> int:
    """Diagnose each run."""
    from clipup.report.runs import find_runs, load_run

    entries: list[dict[str, object]] = []
    for path in find_runs(run_paths(arguments.runs)):
        loaded = load_run(path)
        problems = list(loaded.problems)
        try:
            findings = diagnose(loaded.records, loaded.config)
        except Exception as error:
            # Damage in one run's records must not keep the others from being diagnosed.
            findings = []
            problems.append(f"cannot be diagnosed: {type(error).__name__}: {error}")
        entries.append(
            {
                "run": str(path),
                "generation": loaded.records[-1].generation if loaded.records else 0,
                "problems": problems,
                "findings": [finding.as_json() for finding in findings],
            }
        )
        if not arguments.json:
            # A directory's name need not be text.
            say(f"{path}: {len(loaded.records)} generations".encode("utf-8", "replace").decode("utf-8"))
            for problem in problems:
                say(textwrap.indent(textwrap.fill(f"unreadable: {problem}", 110), "  "))
            nothing = "nothing wrong that the records show" if loaded.records else "no records to go by"
            for line in finding_lines(findings) or [f"  {nothing}"]:
                say(line)
    if arguments.json:
        print_json({"runs": entries})
    return 0


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """Findings as lines for a terminal."""
    lines: list[str] = []
    for finding in findings:
        lines += textwrap.wrap(
            f"{finding.severity}: {finding.sentence}", 110, initial_indent="  ", subsequent_indent="    "
        )
        lines += textwrap.wrap(finding.suggestion, 110, initial_indent="    → ", subsequent_indent="      ")
    return lines
