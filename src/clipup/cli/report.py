"""``clipup report``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import cast

from clipup.cli.arguments import add_output_flags, run_paths, whole_number
from clipup.cli.output import note, print_json, say

DESCRIPTION = """One page about one run, or many side by side: curves, diagnosis, configurations, how to repeat each.

The page is a single file. It needs no network and no server: mail it, print it, open it on a phone. Runs that differ
only by seed are drawn as their median with the band between the quartiles. A run that is broken, or still going, is
shown as far as it can be read."""
EXAMPLES = """examples:
  clipup report runs/LunarLanderContinuous-v3-1
  clipup report runs -o comparison.html                 (every run below runs/)
  clipup report runs/a runs/b --figures figures         (also PNG and SVG files)
  clipup report runs --figures figures --axis time      (... over training time)
  clipup report runs/a --video                          (with the trained policy at work)"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run directories, or directories that hold some")
    parser.add_argument("-o", "--output", default="report.html", metavar="FILE", help="default: report.html")
    parser.add_argument("--figures", metavar="DIR", help="also write each chart as PNG and SVG")
    parser.add_argument("--axis", choices=("interactions", "generations", "time"), default="interactions",
                        help="axis of the figures (the page can switch)")  # fmt: skip
    parser.add_argument("--video", type=whole_number, nargs="?", const=1, default=0, metavar="N",
                        help="embed videos of the N best policies (default 1)")  # fmt: skip
    add_output_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the page."""
    from clipup.report.figures import write_figures
    from clipup.report.model import page_data
    from clipup.report.page import render_page
    from clipup.report.runs import load_runs
    from clipup.report.videos import embedded_videos
    from clipup.runs.files import write_atomically

    runs, left_out = load_runs(run_paths(arguments.runs))
    data = page_data(runs, left_out=left_out)
    data["videos"] = embedded_videos(runs, limit=arguments.video, warn=note) if arguments.video > 0 else []
    page = render_page(data).encode("utf-8")
    output = Path(arguments.output)
    write_atomically(output, page)
    figures = write_figures(runs, Path(arguments.figures), axis=arguments.axis) if arguments.figures else []
    if arguments.figures and not figures and not arguments.quiet:
        note(f"{arguments.figures}: no figures: nothing was recorded over {arguments.axis}")
    problems = page_problems(data)
    if arguments.json:
        print_json(
            {
                "output": str(output),
                "bytes": len(page),
                "runs": [str(run.path) for run in runs],
                "left_out": left_out,
                "problems": problems,
                "figures": [str(path) for path in figures],
            }
        )
        return 0
    for path in problems if not arguments.quiet else ():
        note(f"{path}: {'; '.join(problems[path])}")
    beyond = f" ({left_out} more left out)" if left_out else ""
    more = f", {len(figures)} figures in {arguments.figures}" if figures else ""
    say(f"{output}: {len(runs)} run{'s' if len(runs) != 1 else ''}{beyond}, {len(page) / 1e6:.2f} MB{more}")
    return 0


def page_problems(data: dict[str, object]) -> dict[str, list[str]]:
    """What is wrong with each run in a page's data, by its path."""
    runs = cast("list[dict[str, object]]", data["runs"])
    return {str(run["path"]): cast("list[str]", run["problems"]) for run in runs if run["problems"]}
