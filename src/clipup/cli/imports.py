"""Modules in the current directory, for a user who typed their names."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder
from pathlib import Path


def let_import(env: str | None, modules: Iterable[str]) -> None:
    """Make the current directory importable, as ``python -m`` would, if the user named a module in it.

    `env` names one as ``module:Name``. The command ``clipup`` itself imports nothing from the
    current directory. With ``PYTHONSAFEPATH`` that stays so, and a task is named by its file.
    """
    here = str(Path.cwd())
    if sys.flags.safe_path or here in sys.path or "" in sys.path:
        return
    for module in ((env or "").rpartition(":")[0], *modules):
        top = module.partition(".")[0]
        if top.isidentifier() and top not in sys.modules:
            found = PathFinder.find_spec(top, [here])
            if found is not None and found.origin is not None:
                sys.path.append(here)  # last: what is installed is never replaced
                return
