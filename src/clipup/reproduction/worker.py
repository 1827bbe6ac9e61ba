"""One run in a process of its own: ``python -m clipup.reproduction.worker DIRECTORY``, its configuration on stdin.

The configuration is TOML and ends with a line ``END``. Standard input stays open as long as the parent lives; when it
closes, the parent is gone and the run stops as if it had been asked to, with everything saved. Exit codes: 0 finished,
130 or 143 interrupted and saved, 2 failed with one line on standard error.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import tomllib
from pathlib import Path

from clipup.errors import ClipUpError, FileFault
from clipup.reproduction.runs import check_same_run
from clipup.runs.config import RunConfig
from clipup.runs.resolve import make_config
from clipup.runs.rundir import RunDirectory
from clipup.training.api import RunInterrupted, proceed, start

END = "END"


def advance(path: Path, config: RunConfig) -> None:
    """Bring the run in `path` to the generations that `config` asks for: begin it, or go on with it."""
    directory = RunDirectory(path)
    if directory.config_path.is_file():
        check_same_run(directory, config)
        proceed(config, directory)
    else:
        start(config, directory)


def read_config(lines: list[str]) -> RunConfig:
    """The configuration that the parent sent."""
    try:
        return make_config(tomllib.loads("".join(lines)))
    except tomllib.TOMLDecodeError as error:
        raise FileFault(f"the configuration of a run could not be read: {error}") from error


def main() -> int:
    """Run until finished, told to stop, or left alone."""
    lines: list[str] = []
    for line in sys.stdin:
        if line.strip() == END:
            break
        lines.append(line)
    threading.Thread(target=_stop_when_alone, daemon=True).start()
    try:
        advance(Path(sys.argv[1]), read_config(lines))
    except RunInterrupted as interrupted:
        return interrupted.exit_code
    except KeyboardInterrupt:
        return 130
    except ClipUpError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _stop_when_alone() -> None:
    # Not through sys.stdin: Python aborts at exit when a thread waits inside one of its buffered readers.
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
