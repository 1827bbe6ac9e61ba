"""``clipup watch``: the page, live, for this machine only.

It listens on 127.0.0.1. A page of another site could still send requests there, and through a name that it points at
127.0.0.1 (DNS rebinding) even read the answers: so a request must name this machine as its host, and must not come from
another origin. The port may be any, as it is another one at the far end of a tunnel; rebinding needs a foreign name.
There are two addresses, the page and its data; no part of a request ever becomes a path.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs, urlsplit

from clipup.errors import InvalidArgument
from clipup.report.live import LiveRuns, parse_have
from clipup.report.page import render_page

HOST = "127.0.0.1"
OWN_NAME = re.compile(r"(127\.0\.0\.1|localhost)(:[0-9]{1,5})?")
EMPTY: dict[str, object] = {"title": "Waiting for runs", "notes": [], "groups": [], "settings": [], "runs": []}


class WatchServer(ThreadingHTTPServer):
    """Serves the runs in and below some directories."""

    daemon_threads = True

    def __init__(self, folders: Sequence[Path], port: int = 0) -> None:
        """Bind to `port` of this machine, or to any that is free."""
        try:
            super().__init__((HOST, port), WatchHandler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InvalidArgument(f"port {port} of this machine cannot be used: {reason}; choose another") from error
        self._runs = LiveRuns(folders)
        self._lock = threading.Lock()

    @property
    def address(self) -> str:
        """Where to point a browser."""
        return f"http://{HOST}:{self.server_port}/"

    def data(self, have: str, token: str) -> dict[str, object]:
        """What is new for a page that has this much."""
        with self._lock:
            self._runs.refresh()
            return self._runs.answer(parse_have(have), token)

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that went away is no news; anything else is said in one line."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError):
            sys.stderr.write(f"a request failed: {type(error).__name__}: {error}\n")


class WatchHandler(BaseHTTPRequestHandler):
    """Answers GET / and GET /data; nothing else."""

    server_version = "clipup"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        """Answer, or refuse."""
        server = cast(WatchServer, self.server)
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if not OWN_NAME.fullmatch(host) or origin not in (None, f"http://{host}"):
            self._send(403, "text/plain", b"clipup watch answers only this machine, under its own address\n")
            return
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            self._send(403, "text/plain", b"clipup watch does not answer other sites\n")
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
                # The page asks again; a dropped connection would hide every run.
                self._send(500, "text/plain", f"{type(error).__name__}\n".encode("ascii"))
                return
            self._send(200, "application/json", answer)
        else:
            self._send(404, "text/plain", b"there is only / here\n")

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
        """Say nothing: the terminal belongs to the person."""
