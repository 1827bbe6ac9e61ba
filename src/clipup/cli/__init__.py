"""The command line: parses, calls, prints. One file per command; see `registry` for the list."""

from clipup.cli.main import main

__all__ = ["main"]
