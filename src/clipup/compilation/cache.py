"""Machine code kept on disk, beside the user's other caches.

A file holds one line of JSON and the object code. It is replaced whole and carries a digest, so a damaged one is
noticed and made anew. A file that another user could have written is not used. Where the directory cannot be written,
code is compiled again in each process.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

DIRECTORY_VARIABLE = "CLIPUP_CACHE_DIR"
_FORMAT = "clipup machine code 1"
_LARGEST = 64 * 2**20


@dataclass(frozen=True)
class ObjectCode:
    """Compiled code: an object file, the name of the function in it, and the names that it expects elsewhere."""

    code: bytes
    entry: str
    externals: tuple[str, ...]


def directory() -> Path:
    """Return where machine code is kept: ``CLIPUP_CACHE_DIR``, or the platform's place for caches."""
    chosen = os.environ.get(DIRECTORY_VARIABLE)
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "clipup"


def read(key: str) -> ObjectCode | None:
    """Return the code kept under `key`; None where there is none, or where it cannot be used."""
    try:
        path = directory() / f"{key}.code"
        status = path.stat()
        if status.st_size > _LARGEST or not _is_ours(status):
            return None
        header, _, code = path.read_bytes().partition(b"\n")
        fields = cast("dict[str, Any]", json.loads(header))
        whole = fields["format"] == _FORMAT and fields["key"] == key
        if not whole or fields["sha256"] != _digest(code, fields["entry"], fields["externals"]):
            return None
        return ObjectCode(code, str(fields["entry"]), tuple(map(str, fields["externals"])))
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):  # RuntimeError: there is no home directory
        return None


def write(key: str, compiled: ObjectCode) -> bool:
    """Keep the code under `key`; return whether that was possible."""
    header = {
        "format": _FORMAT,
        "key": key,
        "entry": compiled.entry,
        "externals": list(compiled.externals),
        "sha256": _digest(compiled.code, compiled.entry, list(compiled.externals)),
    }
    try:
        place = directory()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f"{key}.", suffix=".part", dir=place)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(json.dumps(header).encode() + b"\n" + compiled.code)
            Path(name).replace(place / f"{key}.code")
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except (OSError, RuntimeError):
        return False
    return True


def _is_ours(status: os.stat_result) -> bool:
    """Return whether nobody but this user can have written a file: it holds code that will be run."""
    if not hasattr(os, "getuid"):
        return True  # Windows keeps such directories to their user
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _digest(code: bytes, entry: str, externals: list[str]) -> str:
    return hashlib.sha256(json.dumps([entry, externals]).encode() + code).hexdigest()
