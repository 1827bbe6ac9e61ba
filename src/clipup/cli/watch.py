"""``clipup watch``."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

from clipup.cli.output import note, say

DESCRIPTION = """The report, live: runs in progress and finished ones, new points within seconds, in a browser here.

It listens on 127.0.0.1 only, answers no other site, and serves nothing but the page. Stop it with Ctrl-C; runs do not
notice. From another machine: ssh -L 8000:127.0.0.1:PORT."""
EXAMPLES = """examples:
  clipup watch                    (every run below runs/)
  clipup watch runs/walker --port 8000 --no-browser"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument("folders", nargs="*", default=["runs"], metavar="DIR",
                        help="run directories, or directories that hold some (default: runs)")  # fmt: skip
    parser.add_argument("--port", type=int, default=0, metavar="N", help="default: any that is free")
    parser.add_argument("--no-browser", dest="browser", action="store_false", help="do not open a browser")


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from clipup.report.server import WatchServer

    folders = [Path(folder) for folder in arguments.folders]
    for folder in folders:
        if not folder.is_dir():
            note(f"{folder}: no such directory yet; runs in it appear once it is there")
    with WatchServer(folders, arguments.port) as server:
        say(f"watching {', '.join(str(folder) for folder in folders)} at {server.address} (Ctrl-C stops)")
        if arguments.browser:
            webbrowser.open(server.address)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            say("stopped watching")
    return 0
