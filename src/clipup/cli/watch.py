"""``clipup watch``."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

from clipup.cli.output import note, say

DESCRIPTION = """Show the report live in a browser: new points of running and finished runs appear within seconds.

It listens only on 127.0.0.1, answers no other site, and serves only the page. Stop it with Ctrl-C; this does not
affect the runs. From another machine: ssh -L 8000:127.0.0.1:PORT."""
EXAMPLES = """examples:
  clipup watch                    (every run below runs/)
  clipup watch runs/walker --port 8000 --no-browser"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("directories", nargs="*", default=["runs"], metavar="DIR",
                        help="run directories, or directories that contain some (default: runs)")  # fmt: skip
    parser.add_argument("--port", type=int, default=0, metavar="N", help="default: any free port")
    parser.add_argument("--no-browser", dest="browser", action="store_false", help="do not open a browser")


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from clipup.report.server import WatchServer

    directories = [Path(directory) for directory in arguments.directories]
    for directory in directories:
        if not directory.is_dir():
            note(f"{directory}: no such directory yet; its runs will appear when it exists")
    with WatchServer(directories, arguments.port) as server:
        say(f"watching {', '.join(str(directory) for directory in directories)} at {server.address} (Ctrl-C stops)")
        if arguments.browser:
            webbrowser.open(server.address)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            say("stopped watching")
    return 0
