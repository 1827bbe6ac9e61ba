"""Checkpoints: everything that a run needs to go on to the same bits, in one safetensors file.

Arrays and floats are tensors. A float has the shape ``[]``, so every bit of it survives, infinities included. Whole
numbers and words are JSON in the metadata. No time is written, so equal runs write equal checkpoints.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from clipup.errors import FileFault
from clipup.export.safetensors import Array, decode, encode
from clipup.optimizers.protocol import State, StateValue
from clipup.runs.files import TEMPORARY_SUFFIX, write_atomically

FORMAT = "clipup-checkpoint"
VERSION = 1
_NAME = re.compile(r"generation-(\d{8,})\.safetensors\Z")


class NewerFormat(FileFault):
    """A newer clipup wrote the file. Going back to an older file would lose what the newer one did."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state after a generation: of the search, of the normalizer, and the run's own counters."""

    generation: int
    search: State
    normalizer: State
    counters: State


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """The bytes of the file."""
    tensors: dict[str, Array] = {}
    words: dict[str, dict[str, int | str]] = {}
    parts = {"search": checkpoint.search, "normalizer": checkpoint.normalizer, "counters": checkpoint.counters}
    for part, state in parts.items():
        words[part] = {}
        for name, value in state.items():
            if isinstance(value, np.ndarray):
                tensors[f"{part}.{name}"] = value
            elif isinstance(value, float):
                tensors[f"{part}.{name}"] = np.array(value, dtype=np.float64)
            else:
                words[part][name] = value
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "generation": str(checkpoint.generation),
        "state": json.dumps(words, sort_keys=True),
    }
    return encode(tensors, metadata)


def decode_checkpoint(data: bytes, source: str) -> Checkpoint:
    """The checkpoint in `data`; FileFault when it is damaged, NewerFormat when it is too new."""
    file = decode(data, source=source)
    version = check_format(file.metadata, FORMAT, VERSION, source)
    try:
        words = cast("dict[str, dict[str, int | str]]", json.loads(file.metadata["state"]))
        states: dict[str, State] = {part: dict(words[part]) for part in ("search", "normalizer", "counters")}
        for name, array in file.tensors.items():
            part, _, key = name.partition(".")
            is_float = array.dtype == np.float64 and array.shape == ()
            states[part][key] = float(cast(float, array)) if is_float else array
        generation = int(file.metadata["generation"])
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise FileFault(f"{source}: not a checkpoint of format version {version} ({error!r:.80})") from error
    return Checkpoint(generation, states["search"], states["normalizer"], states["counters"])


def check_format(metadata: Mapping[str, str], form: str, newest: int, source: str) -> int:
    """The format version of a file, once it is known to be of this form and not too new."""
    if metadata.get("format") != form:
        raise FileFault(f"{source}: expected a {form} file, got {metadata.get('format', 'something else')!r:.60}")
    text = metadata.get("version", "")
    if not (text.isascii() and text.isdecimal() and len(text) < 10) or int(text) < 1:
        raise FileFault(f"{source}: format version {text!r:.20} makes no sense")
    if int(text) > newest:
        raise NewerFormat(
            f"{source}: written in format version {text}, this clipup reads up to {newest}; upgrade clipup to use it"
        )
    return int(text)


def checkpoint_path(directory: Path, generation: int) -> Path:
    """Where the checkpoint of a generation lies."""
    return directory / f"generation-{generation:08d}.safetensors"


def list_checkpoints(directory: Path) -> list[tuple[int, Path]]:
    """Generation and path of every checkpoint, newest first."""
    try:
        entries = list(directory.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise FileFault.of(directory, "read", error) from error
    found = [(int(match[1]), path) for path in entries if (match := _NAME.match(path.name))]
    return sorted(found, reverse=True)


def write_checkpoint(directory: Path, checkpoint: Checkpoint, *, keep: int) -> Path:
    """Write a checkpoint whole or not at all, then remove all older ones but the newest `keep`."""
    path = checkpoint_path(directory, checkpoint.generation)
    write_atomically(path, encode_checkpoint(checkpoint))
    older = [entry for generation, entry in list_checkpoints(directory) if generation <= checkpoint.generation]
    for entry in older[keep:]:
        entry.unlink(missing_ok=True)
    return path


def clean_up(directory: Path) -> None:
    """Remove the unfinished checkpoints that a crash left."""
    for entry in directory.glob(f"*{TEMPORARY_SUFFIX}"):
        entry.unlink(missing_ok=True)


def newest_checkpoint(
    directory: Path, accept: Callable[[Checkpoint], str | None], warn: Callable[[str], None]
) -> Checkpoint | None:
    """The newest checkpoint that can be used; None when there is no checkpoint at all.

    `accept` returns why a checkpoint cannot be used, or None. `warn` is told about each one that cannot. FileFault is
    raised, and nothing is changed, when none of them can be used or when one is of a newer format.
    """
    found = list_checkpoints(directory)
    for generation, path in found:
        try:
            checkpoint = decode_checkpoint(_read(path), str(path))
            if checkpoint.generation != generation:
                raise FileFault(f"{path}: holds generation {checkpoint.generation}; the file was renamed")
            objection = accept(checkpoint)
            if objection:
                raise FileFault(f"{path}: {objection}")
        except NewerFormat:
            raise
        except FileFault as fault:
            warn(f"{fault}; trying the one before it")
            continue
        return checkpoint
    if found:
        raise FileFault(f"{directory}: none of the {len(found)} checkpoints can be used; nothing was changed")
    return None


def state_value(state: Mapping[str, StateValue], name: str) -> float:
    """A number of a state by name, or FileFault."""
    value = state.get(name)
    if not isinstance(value, int | float):
        raise FileFault(f"the checkpoint has no number {name!r}")
    return value


def whole_value(state: Mapping[str, StateValue], name: str) -> int:
    """A count of a state by name, or FileFault."""
    value = state.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise FileFault(f"the checkpoint has no whole number {name!r}")
    return value


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileFault.of(path, "read", error) from error
