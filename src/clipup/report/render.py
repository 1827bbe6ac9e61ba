"""One self-contained HTML file: template, style, scripts and data. It needs no network and no server."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import cast

from clipup.report.charts import new_figure, write_charts
from clipup.report.loading import load_runs
from clipup.report.page_data import PageData, page_data
from clipup.report.videos import embedded_videos
from clipup.runs.files import write_atomically

SCRIPTS = ("numbers.js", "data.js", "aggregate.js", "chart.js", "pointer.js", "panels.js", "tables.js", "main.js")
# Above this size the data is compressed. Below, it stays readable in the page's source.
PLAIN_LIMIT = 300_000


def make_report(paths: Sequence[Path], *, videos: Sequence[PageData] = ()) -> str:
    """The page about the runs in and below `paths`."""
    runs, left_out = load_runs(paths)
    data = page_data(runs, left_out=left_out)
    data["videos"] = list(videos)
    return render_page(data)


@dataclass(frozen=True)
class WrittenReport:
    """What `write_report` wrote."""

    page: Path
    size: int
    """Of the page, in bytes."""
    runs: tuple[Path, ...]
    left_out: int
    """Runs beyond the limit of a page."""
    problems: Mapping[str, Sequence[str]]
    """What is wrong with each run, by its path."""
    figures: tuple[Path, ...]


def write_report(
    paths: Sequence[Path],
    page: Path,
    *,
    figures: Path | None = None,
    axis: str = "interactions",
    videos: int = 0,
    warn: Callable[[str], None] = lambda text: None,
) -> WrittenReport:
    """Write the page about the runs in and below `paths`, with videos of the best policies.

    With a directory `figures`, each chart is also written there as PNG and SVG, over `axis`.
    """
    if figures is not None:
        new_figure(1.0, 1.0)  # a missing Matplotlib is reported before anything is written
    runs, left_out = load_runs(paths)
    data = page_data(runs, left_out=left_out)
    data["videos"] = embedded_videos(runs, limit=videos, warn=warn) if videos else []
    text = render_page(data).encode("utf-8")
    write_atomically(page, text)
    charts = write_charts(runs, figures, axis=axis) if figures is not None else []
    shown = cast("list[dict[str, object]]", data["runs"])
    problems = {str(run["path"]): cast("list[str]", run["problems"]) for run in shown if run["problems"]}
    return WrittenReport(page, len(text), tuple(run.path for run in runs), left_out, problems, tuple(charts))


def render_page(data: PageData, *, live: bool = False) -> str:
    """The page for this data. A live page may connect to its own server and to nothing else."""
    data = {**data, "live": live, "version": _version(), "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")}
    script, style = _script(), _static("style.css")
    own_server = "'self'" if live else "'none'"
    policy = (
        f"default-src 'none'; script-src 'sha256-{_digest(script)}'; style-src 'sha256-{_digest(style)}'; "
        f"connect-src {own_server}; img-src data:; media-src data:; base-uri 'none'; form-action 'none'"
    )
    kind, text = _embed(data)
    # A title may be the name of a directory, which may not be valid text.
    title = str(data.get("title", "Runs")).encode("utf-8", "replace").decode("utf-8")
    parts = {
        "POLICY": html.escape(policy),
        "TITLE": html.escape(f"{title} · clipup"),
        "STYLE": style,
        "SCRIPT": script,
        "KIND": kind,
        "DATA": text,
    }
    page = _static("page.html")
    # One pass over the template: an inserted part is never searched for placeholders.
    pieces = page.split("%%")
    return "".join(parts[piece] if number % 2 else piece for number, piece in enumerate(pieces))


def escape_json(value: object) -> str:
    """JSON that can neither end the script element around it nor break a JavaScript string.

    >>> escape_json("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _embed(data: PageData) -> tuple[str, str]:
    text = escape_json(data)
    if len(text) <= PLAIN_LIMIT:
        return "application/json", text
    compressor = zlib.compressobj(6, zlib.DEFLATED, 31)  # 31: gzip, without a name or a time
    packed = compressor.compress(text.encode("ascii")) + compressor.flush()
    return "application/gzip", base64.b64encode(packed).decode("ascii")


def _script() -> str:
    return "'use strict';\n(() => {\n" + "\n".join(_static(name) for name in SCRIPTS) + "\n})();\n"


def _static(name: str) -> str:
    return (resources.files("clipup.report") / "static" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _version() -> str:
    from clipup import __version__

    return __version__
