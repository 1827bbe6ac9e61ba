"""Checkpoints: everything that a run needs to go on to the same bits, in one safetensors file.

Arrays and floats are tensors. A float has the shape ``[]``, so every bit of it survives, infinities included. Whole
numbers and words are JSON in the metadata. No time is written, so equal runs write equal checkpoints.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np

from clipup.decoding import WORDS, decode_object
from clipup.errors import FileFault
from clipup.export.safetensors import SIZE_LIMIT, Array, check_head, decode, encode
from clipup.files import Directory
from clipup.optimizers.protocol import State, StateValue

FORMAT = "clipup-checkpoint"
VERSION = 1
_NAME = re.compile(r"generation-([0-9]{8,18})\.safetensors\Z")


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
        words = decode_object(file.metadata["state"], source, WORDS)
        states: dict[str, State] = {part: _words(words[part], part) for part in ("search", "normalizer", "counters")}
        for name, array in file.tensors.items():
            part, _, key = name.partition(".")
            is_float = array.dtype == np.float64 and array.shape == ()
            if key in states[part] or (part == "counters" and not is_float):
                raise FileFault(f"{name[:60]} is an array where a number or a word belongs")
            states[part][key] = float(cast(float, array)) if is_float else array
        generation = int(file.metadata["generation"][:20])
    except FileFault as error:
        raise FileFault(f"{source}: {str(error).removeprefix(f'{source}: ')}") from error
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise FileFault(f"{source}: not a checkpoint of format version {version} ({error!r:.80})") from error
    return Checkpoint(generation, states["search"], states["normalizer"], states["counters"])


def _words(value: object, part: str) -> State:
    """The whole numbers and words of a state; anything else in it is refused."""
    if not isinstance(value, dict):
        raise FileFault(f"its {part} is not a JSON object")
    for name, item in cast("dict[str, object]", value).items():
        if not isinstance(item, int | str) or isinstance(item, bool):
            raise FileFault(f"{part}.{name[:60]} is neither a whole number nor text")
    return cast("State", dict(cast("dict[str, object]", value)))


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


def checkpoint_name(generation: int) -> str:
    """The name of the checkpoint of a generation."""
    return f"generation-{generation:08d}.safetensors"


def list_checkpoints(directory: Directory) -> list[tuple[int, str]]:
    """Generation and name of every checkpoint, newest first."""
    found = [(int(match[1]), name) for name in directory.names() if (match := _NAME.match(name))]
    return sorted(found, reverse=True)


def write_checkpoint(directory: Directory, checkpoint: Checkpoint, *, keep: int) -> None:
    """Write a checkpoint whole or not at all, then remove all older ones but the newest `keep`."""
    directory.replace(checkpoint_name(checkpoint.generation), encode_checkpoint(checkpoint))
    older = [name for generation, name in list_checkpoints(directory) if generation <= checkpoint.generation]
    for name in older[keep:]:
        directory.remove(name)


def newest_checkpoint(
    directory: Directory, accept: Callable[[Checkpoint], str | None], warn: Callable[[str], None]
) -> Checkpoint | None:
    """The newest checkpoint that can be used; None when there is no checkpoint at all.

    `accept` returns why a checkpoint cannot be used, or None. `warn` is told about each one that cannot. FileFault is
    raised, and nothing is changed, when none of them can be used or when one is of a newer format.
    """
    found = list_checkpoints(directory)
    for generation, name in found:
        path = directory.path / name
        try:
            checkpoint = read_checkpoint(directory, name)
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
        raise FileFault(f"{directory.path}: none of the {len(found)} checkpoints can be used; nothing was changed")
    return None


def read_checkpoint(directory: Directory, name: str) -> Checkpoint:
    """The checkpoint of that name, or FileFault."""
    source = str(directory.path / name)

    def head(data: bytes, size: int) -> None:
        check_head(data, size, source)

    return decode_checkpoint(directory.read(name, SIZE_LIMIT, "a checkpoint", head), source)


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
