"""Callbacks of `clipup.train`: your own code after each generation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from clipup.errors import InvalidArgument
from clipup.policies import Policy
from clipup.runs.config import RunConfig
from clipup.runs.records import Record


@dataclass(frozen=True)
class Progress:
    """What a callback is told after a generation."""

    record: Record
    """What happened in the generation; its scores are None where the center was not evaluated."""
    config: RunConfig
    path: Path | None
    """The run directory, if there is one."""
    policy: Policy
    """The center after the generation."""


Callback = Callable[[Progress], "bool | Mapping[str, float] | None"]
"""Returns True to stop the run after this generation, or figures to add to its record, by name, or None."""


def call_all(callbacks: tuple[Callback, ...], progress: Progress) -> tuple[bool, dict[str, float]]:
    """Call all of them; return whether one wants to stop, and the figures that they add."""
    stop, figures = False, dict[str, float]()
    for callback in callbacks:
        answer = callback(progress)
        if isinstance(answer, Mapping):
            figures |= {str(name): _figure(str(name), value) for name, value in answer.items()}
        elif isinstance(answer, bool | np.bool_):  # comparisons of numpy's numbers give the latter
            stop = stop or bool(answer)
        elif answer is not None:
            raise InvalidArgument(f"a callback must return True (stop), figures by name, or None, got {answer!r}")
    return stop, figures


def _figure(name: str, value: object) -> float:
    try:
        number = float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        raise InvalidArgument(f"the figure {name!r} of a callback must be a number, got {value!r}") from None
    return number if math.isfinite(number) else math.nan
