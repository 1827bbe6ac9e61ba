"""``clipup report``."""

from __future__ import annotations

import argparse
from pathlib import Path

from clipup.cli.arguments import add_output_flags, run_paths, whole_number
from clipup.cli.output import note, print_json, say

DESCRIPTION = """Write one page about one run or many: curves, diagnosis, settings, and how to repeat each run.

The page is a single file. It needs no network and no server: mail it, print it, open it on a phone. Runs that differ
only by seed are drawn as their median, with a band between the quartiles. A run that is damaged or still going is
shown as far as it can be read."""
EXAMPLES = """examples:
  clipup report runs/LunarLanderContinuous-v3-1
  clipup report runs -o comparison.html                 (every run below runs/)
  clipup report runs/a runs/b --figures figures         (also PNG and SVG files)
  clipup report runs --figures figures --axis time      (the same over training time)
  clipup report runs/a --video                          (with a video of the trained policy)"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    from clipup.report.charts import AXES

    parser.add_argument("runs", nargs="+", metavar="RUN", help="run directories, or directories that contain some")
    parser.add_argument("-o", "--output", default="report.html", metavar="FILE", help="default: report.html")
    parser.add_argument("--figures", metavar="DIR", help="also write each chart as PNG and SVG into DIR")
    parser.add_argument("--axis", choices=AXES, default=AXES[0], help="horizontal axis of these figures")
    parser.add_argument("--video", type=whole_number, nargs="?", const=1, default=0, metavar="N",
                        help="embed videos of the N best policies (without N: 1)")  # fmt: skip
    parser.add_argument("--import", dest="imports", metavar="MODULE", action="append", default=[],
                        help="module that the environment in a video may import")  # fmt: skip
    add_output_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the page."""
    from clipup.report.render import write_report

    written = write_report(
        run_paths(arguments.runs),
        Path(arguments.output),
        figures=Path(arguments.figures) if arguments.figures else None,
        axis=arguments.axis,
        videos=arguments.video,
        imports=arguments.imports,
        warn=note,
    )
    if not arguments.quiet and arguments.figures and not written.figures:
        note(f"{arguments.figures}: no figures: nothing was recorded over {arguments.axis}")
    if arguments.json:
        print_json(
            {
                "output": str(written.page),
                "bytes": written.size,
                "runs": [str(path) for path in written.runs],
                "left_out": written.left_out,
                "problems": written.problems,
                "figures": [str(path) for path in written.figures],
            }
        )
        return 0
    if not arguments.quiet:
        for path, problems in written.problems.items():
            note(f"{path}: {'; '.join(problems)}")
    count = len(written.runs)
    more = f" ({written.left_out} more left out)" if written.left_out else ""
    figures = f", {len(written.figures)} figures in {arguments.figures}" if written.figures else ""
    say(f"{written.page}: {count} run{'' if count == 1 else 's'}{more}, {written.size / 1e6:.2f} MB{figures}")
    return 0
