"""The live page of ``clipup watch``: reads runs again when their files change, and serves them to this machine only.

The server listens on 127.0.0.1. A page of another site could still send requests there. Through a name of its own that
points at 127.0.0.1 (DNS rebinding) it could even read the answers. So a request must name this machine as its host, and
must not come from another origin. Any port is accepted, because a tunnel may use another one at its far end; rebinding
needs a foreign name. There are two addresses, the page and its data. No part of a request ever becomes a path.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs, urlsplit

from clipup.errors import InvalidArgument, printable, reason
from clipup.report.groups import group_runs
from clipup.report.loading import RUN_LIMIT, LoadedRun, load_share
from clipup.report.page_data import PageData, group_data, group_numbers, limit_notes, page_title, run_data, short_names
from clipup.report.render import render_page
from clipup.runs.rundir import RunDirectory, find_runs

HOST = "127.0.0.1"
OWN_NAME = re.compile(r"(127\.0\.0\.1|localhost)(:[0-9]{1,5})?")
WAITING, NO_RUN = "Waiting for runs", "There is no run yet. A run appears here as soon as it starts."
EMPTY: PageData = {"title": WAITING, "notes": [], "groups": [], "settings": [], "runs": []}
_WATCHED = ("config.toml", "records.jsonl", "clock.jsonl", "status.json")
Signature = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class _ReadRun:
    """A run as last read."""

    signature: Signature
    busy: bool
    run: LoadedRun
    epoch: int
    """Grows when records that the page already has change or vanish, as when a run resumes from a checkpoint."""


class LiveRuns:
    """The runs in and below some directories. Not thread-safe: the server holds a lock."""

    def __init__(self, directories: Sequence[Path]) -> None:
        """Watch the runs in and below these directories."""
        self._directories = list(directories)
        self._known: dict[str, _ReadRun] = {}
        self._left_out = 0

    def refresh(self) -> None:
        """Look at the directories again and read what changed."""
        fresh: dict[str, _ReadRun] = {}
        found = find_runs(self._directories)
        self._left_out = max(0, len(found) - RUN_LIMIT)
        for path in found[:RUN_LIMIT]:
            if path in (directory.absolute() for directory in self._directories) and not _signature(path):
                continue  # the watched directory itself, which holds no run yet
            key = run_key(path)
            fresh[key] = self._read(path, len(found), self._known.get(key))
        self._known = fresh

    def answer(self, have: Mapping[str, tuple[int, int]], token: str = "") -> PageData:
        """The data that is new for a page.

        `have` maps each run to the epoch and the number of rows that the page has. `token` stands for all its other
        data.
        """
        keys = list(self._known)
        runs = [self._known[key].run for key in keys]
        epochs = [self._known[key].epoch for key in keys]
        stands = {key: (epoch, len(run.records)) for key, epoch, run in zip(keys, epochs, runs, strict=True)}
        states = hashlib.sha256(
            repr([(run.status, run.problems, run.config) for run in runs] + [self._left_out]).encode("utf-8", "replace")
        ).hexdigest()
        if dict(have) == stands and states == token:
            return {"changed": False}
        groups = group_runs(runs)
        group_of, names = group_numbers(groups), short_names(runs)
        news: list[PageData] = []
        for place, (key, run) in enumerate(zip(keys, runs, strict=True)):
            epoch, rows = have.get(key, (-1, 0))
            first = rows if epoch == epochs[place] and rows <= len(run.records) else 0
            data = run_data(run, names[place], group_of[place], first=first)
            news.append({**data, "key": key, "epoch": epochs[place], "first": first})
        return {
            "changed": True,
            "token": states,
            "title": page_title(runs) if runs else WAITING,
            "notes": limit_notes(self._left_out) if runs else [NO_RUN],
            **group_data(groups),
            "runs": news,
        }

    def _read(self, path: Path, count: int, before: _ReadRun | None) -> _ReadRun:
        signature = _signature(path)
        busy = RunDirectory(path).is_busy()
        if before is not None and before.signature == signature and before.busy == busy:
            return before
        run = load_share(path, count)
        epoch = 0
        if before is not None:
            old = before.run.records
            grown = len(run.records) >= len(old) and (not old or run.records[len(old) - 1] == old[-1])
            epoch = before.epoch if grown else before.epoch + 1
        return _ReadRun(signature, busy, run, epoch)


def run_key(path: Path) -> str:
    """A short key for a path that reveals nothing about the file system."""
    return hashlib.sha256(str(path.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:12]


def parse_have(text: str) -> dict[str, tuple[int, int]]:
    """Parse what a page says it has: ``key.epoch.rows``, separated by commas. Anything else is ignored.

    >>> parse_have("ab12.0.17,nonsense,cd.x.1")
    {'ab12': (0, 17)}
    """
    found: dict[str, tuple[int, int]] = {}
    for word in text.split(","):
        parts = word.split(".")
        if len(parts) == 3 and all(part.isdecimal() and len(part) < 10 for part in parts[1:]):
            found[parts[0]] = (int(parts[1]), int(parts[2]))
    return found


def _signature(path: Path) -> Signature:
    found: list[tuple[int, int]] = []
    for name in _WATCHED:
        try:
            state = (path / name).lstat()
        except OSError:
            continue
        found.append((state.st_size, state.st_mtime_ns))
    return tuple(found)


class WatchServer(ThreadingHTTPServer):
    """Serves the live page about the runs in and below some directories."""

    daemon_threads = True

    def __init__(self, directories: Sequence[Path], port: int = 0) -> None:
        """Bind to `port` of this machine; 0 takes any free port."""
        try:
            super().__init__((HOST, port), WatchHandler)
        except (OSError, OverflowError) as error:
            why = reason(error) if isinstance(error, OSError) else error
            raise InvalidArgument(f"cannot listen on port {port}: {why}; choose another --port") from error
        self._runs = LiveRuns(directories)
        self._lock = threading.Lock()

    @property
    def address(self) -> str:
        """The address to open in a browser."""
        return f"http://{HOST}:{self.server_port}/"

    def data(self, have: str, token: str) -> dict[str, object]:
        """The data that is new for a page with this data."""
        with self._lock:
            self._runs.refresh()
            return self._runs.answer(parse_have(have), token)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a browser that disconnected; report any other error in one line."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError):
            sys.stderr.write(printable(f"a request failed: {type(error).__name__}: {error}") + "\n")


class WatchHandler(BaseHTTPRequestHandler):
    """Answers GET / and GET /data, and nothing else."""

    server_version = "clipup"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        """Answer, or refuse."""
        server = cast(WatchServer, self.server)
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if not OWN_NAME.fullmatch(host) or origin not in (None, f"http://{host}"):
            self._send(403, "text/plain", b"clipup watch answers only requests from this machine to its own address\n")
            return
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            self._send(403, "text/plain", b"clipup watch does not answer requests from other sites\n")
            return
        address = urlsplit(self.path)
        if address.path == "/":
            self._send(200, "text/html; charset=utf-8", render_page(dict(EMPTY), live=True).encode("utf-8"))
        elif address.path == "/data":
            query = parse_qs(address.query)
            have, token = query.get("have", [""])[0], query.get("token", [""])[0]
            try:
                answer = json.dumps(server.data(have, token), allow_nan=False, separators=(",", ":")).encode("ascii")
            except Exception as error:
                # The page asks again. A dropped connection would hide every run.
                self._send(500, "text/plain", f"{type(error).__name__}\n".encode("ascii"))
                return
            self._send(200, "application/json", answer)
        else:
            self._send(404, "text/plain", b"not found; the page is at /\n")

    def _send(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        if len(body) > 2000 and "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, 3)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the terminal belongs to the user."""
