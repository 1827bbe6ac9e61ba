"""``clipup reproduce``."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from clipup.cli.arguments import add_output_flags, whole_number
from clipup.cli.output import note, print_json, say, table
from clipup.errors import FileFault
from clipup.reproduction.experiments import EXPERIMENTS
from clipup.reproduction.page import build_page
from clipup.reproduction.reproduce import Reproduction, Request, reproduce
from clipup.reproduction.schedule import Outcome, Progress
from clipup.runs.files import write_atomically
from clipup.runs.resolve import parse_flag

DESCRIPTION = """Run an experiment of the ClipUp paper and show it beside the published values.

Finished runs are kept and never repeated; stop at any time, and the same command goes on. Experiments with equal
settings share their runs. Without a name: which experiments there are."""
EXAMPLES = """examples:
  clipup reproduce fitness-scale
  clipup reproduce fitness-scale --runs 2 --generations 5     a quick look
  clipup reproduce walker2d --group clipup --runs 1 --budget 60
  clipup reproduce --page docs/reproduction.md --results results"""
LINE_SECONDS = 60.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument("name", nargs="?", metavar="NAME", help=f"one of: {', '.join(EXPERIMENTS)}")
    parser.add_argument("--runs", type=whole_number, metavar="N", help="runs of each group (default: as in the paper)")
    parser.add_argument("--generations", type=whole_number, metavar="N", help="of each run (default: as in the paper)")
    parser.add_argument("--group", action="append", default=[], metavar="G", help="only this group; may be repeated")
    parser.add_argument(
        "--set", action="append", default=[], type=_setting, metavar="NAME=VALUE",
        help="change a setting of every run, as for a smaller machine; no claim is judged then",
    )  # fmt: skip
    parser.add_argument("--budget", type=_minutes, metavar="MINUTES", help="stop after so long, with everything saved")
    parser.add_argument("--jobs", type=whole_number, metavar="N", help="runs at a time (default: one a core)")
    parser.add_argument("--cluster", metavar="ADDRESS", help="run on a cluster: ray, or an address of Ray")
    parser.add_argument(
        "--out", default="reproduction", metavar="DIR", help="where the runs live (default: reproduction)"
    )
    parser.add_argument("--results", metavar="DIR", help="where the JSON, figures and policies go (default: --out)")
    parser.add_argument("--collect", action="store_true", help="make no run; tables and figures of what is there")
    parser.add_argument("--no-figures", action="store_true", help="draw nothing (needs no matplotlib)")
    parser.add_argument("--page", metavar="FILE", help="write the page about all result files in --results")
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
        page = Path(arguments.page)
        if not results.is_dir():
            raise FileFault(f"{results}: no such directory; result files are made by: clipup reproduce NAME")
        if not any((results / f"{name}.json").is_file() for name in EXPERIMENTS):
            raise FileFault(f"{results}: no result file in there; they are made by: clipup reproduce NAME")
        write_atomically(page, build_page(results, page).encode("utf-8"))
        say(f"wrote {page}")
    return code


def _reproduce(arguments: argparse.Namespace, out: Path, results: Path) -> int:
    request = Request(
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
    live = sys.stderr.isatty()
    watch = None if arguments.quiet else (_show_live if live else _show_line)
    done = reproduce(request, watch=watch, watch_seconds=1.0 if live else LINE_SECONDS)
    if watch is _show_live:
        sys.stderr.write("\r\x1b[K")
    _report(done, json_output=arguments.json)
    return _exit_code(done.outcome)


def _report(done: Reproduction, *, json_output: bool) -> None:
    if json_output:
        verdicts = [dataclasses.asdict(verdict) for verdict in done.verdicts]
        files = [str(path) for path in done.files]
        print_json({"experiment": done.results.experiment, "verdicts": verdicts, "files": files})
        return
    for entry in done.tables:
        say(entry.text() + "\n")
    say("\n".join(f"wrote {path}" for path in done.files))


def _exit_code(outcome: Outcome | None) -> int:
    if outcome is None or outcome.reason == "complete":
        return 0
    for failure in outcome.failures:
        note(f"clipup: a run failed: {failure}")
    if outcome.reason == "busy":
        note(f"{outcome.finished} of {outcome.total} runs finished; another process works on the rest")
    elif outcome.reason != "failed":
        note(
            f"stopped ({outcome.reason}) with {outcome.finished} of {outcome.total} runs finished; everything is "
            "saved, and the same command goes on"
        )
    if outcome.reason == "interrupted":
        return 130
    return 1 if outcome.failures else 0


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
    say(table(("experiment", "runs", "generations", "what"), rows))


def _show_live(progress: Progress) -> None:
    sys.stderr.write(f"\r\x1b[K{_line(progress)}")
    sys.stderr.flush()


def _show_line(progress: Progress) -> None:
    note(_line(progress))


def _line(progress: Progress) -> str:
    left = "?" if progress.remaining is None else _duration(progress.remaining)
    return (
        f"{progress.finished} of {progress.total} runs, generation {progress.generations} of "
        f"{progress.generations_wanted}, {_duration(progress.seconds)} gone, {left} left: {', '.join(progress.running)}"
    )


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60.0)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else (f"{minutes} min" if minutes else "< 1 min")


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
