"""``clipup reproduce``."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from clipup.cli.arguments import add_output_flags, whole_number
from clipup.cli.output import print_json, say, table, terminal_width
from clipup.cli.side_by_side import ProgressLine, exit_code
from clipup.reproduction.experiments import EXPERIMENTS
from clipup.reproduction.page import write_page
from clipup.reproduction.reproduce import Reproduction, ReproductionRequest, reproduce
from clipup.runs.resolve import parse_flag

DESCRIPTION = """Run an experiment of the ClipUp paper and compare the results with the published values.

Finished runs are kept and never repeated. Stop it at any time: the same command continues. Experiments with equal
settings share their runs. Without a name, the experiments are listed."""
EXAMPLES = """examples:
  clipup reproduce fitness-scale
  clipup reproduce fitness-scale --runs 2 --generations 5     (a quick look)
  clipup reproduce walker2d --group clipup --runs 1 --budget 60
  clipup reproduce --page docs/reproduction.md --results results"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME", help=f"one of: {', '.join(EXPERIMENTS)}")
    parser.add_argument("--runs", type=whole_number, metavar="N", help="runs per group (default: as in the paper)")
    parser.add_argument("--generations", type=whole_number, metavar="N", help="of each run (default: as in the paper)")
    parser.add_argument("--group", action="append", default=[], metavar="G", help="only this group; may be repeated")
    parser.add_argument(
        "--set", action="append", default=[], type=_setting, metavar="NAME=VALUE",
        help="change a setting of every run, for example for a smaller machine; no claim is judged then",
    )  # fmt: skip
    parser.add_argument("--budget", type=_minutes, metavar="MINUTES", help="stop after this time; everything is saved")
    parser.add_argument("--jobs", type=whole_number, metavar="N", help="runs at a time (default: one per core)")
    parser.add_argument("--cluster", metavar="ADDRESS", help="run on a cluster: ray, or the address of a Ray cluster")
    parser.add_argument(
        "--out", default="reproduction", metavar="DIR", help="directory of the runs (default: %(default)s)"
    )
    parser.add_argument("--results", metavar="DIR", help="directory of results, figures and policies (default: --out)")
    parser.add_argument("--collect", action="store_true", help="make no run, only tables and figures of existing runs")
    parser.add_argument("--no-figures", action="store_true", help="draw no figures, so that Matplotlib is not needed")
    parser.add_argument("--page", metavar="FILE", help="write a Markdown page about all result files in --results")
    add_output_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Reproduce an experiment, write the page, or list the experiments."""
    out = Path(arguments.out)
    results = out if arguments.results is None else Path(arguments.results)
    code = 0
    if arguments.name is not None:
        code = _reproduce(arguments, out, results)
    elif arguments.page is None:
        _list(as_json=arguments.json)
    if arguments.page is not None:
        write_page(results, Path(arguments.page))
        say(f"wrote {arguments.page}")
    return code


def _reproduce(arguments: argparse.Namespace, out: Path, results: Path) -> int:
    request = ReproductionRequest(
        experiment=arguments.name,
        runs=arguments.runs,
        generations=arguments.generations,
        budget=arguments.budget,
        groups=tuple(arguments.group),
        jobs=arguments.jobs,
        cluster=arguments.cluster,
        out=out,
        results=results,
        figures=not arguments.no_figures,
        changes={name: parse_flag(name, value) for name, value in arguments.set},
        collect_only=arguments.collect,
    )
    line = ProgressLine(quiet=arguments.quiet)
    done = reproduce(request, watch=line.watch, watch_seconds=line.seconds)
    line.clear()
    _report(done, json_output=arguments.json)
    return 0 if done.end is None else exit_code(done.end, again="the same command continues")


def _report(done: Reproduction, *, json_output: bool) -> None:
    if json_output:
        verdicts = [dataclasses.asdict(verdict) for verdict in done.verdicts]
        files = [str(path) for path in done.files]
        print_json({"experiment": done.results.experiment, "verdicts": verdicts, "files": files})
        return
    for entry in done.tables:
        say(entry.text() + "\n")
    say("\n".join(f"wrote {path}" for path in done.files))


def _list(*, as_json: bool) -> None:
    if as_json:
        fields = ("name", "title", "where", "runs", "generations")
        print_json(
            {
                "experiments": [
                    {name: getattr(entry, name) for name in fields} | {"groups": [group.name for group in entry.groups]}
                    for entry in EXPERIMENTS.values()
                ]
            }
        )
        return
    rows = [
        (name, f"{entry.runs} × {len(entry.groups)}", str(entry.generations), entry.title) if entry.groups
        else (name, "–", "–", entry.title)
        for name, entry in EXPERIMENTS.items()
    ]  # fmt: skip
    header = ("experiment", "runs", "generations", "title")
    say(table(header, rows, width=terminal_width(sys.stdout)))


def _setting(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name.strip().replace("-", "_"), value.strip()


def _minutes(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of minutes above 0")
    return value * 60.0
