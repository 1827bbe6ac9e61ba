"""What an engine gives back when it renders an episode, and what the engines share to do so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from clipup.errors import EnvironmentFault

Frame = NDArray[np.uint8]
DEFAULT_RATE = 50.0


@dataclass(frozen=True)
class Step:
    """One step of an episode: the picture after it, and its reward. The first is the start, with reward 0."""

    frame: Frame
    reward: float


@dataclass(frozen=True)
class Episode:
    """The steps of one episode, made one by one, and how many of them make a second."""

    steps: Iterator[Step]
    rate: float
    engine: str


def as_frame(image: object) -> Frame:
    """Return what an environment rendered; `EnvironmentFault` unless it is a picture in colour."""
    frame = np.asarray(image)
    if frame.ndim != 3 or frame.shape[2] != 3 or frame.dtype != np.uint8:
        raise EnvironmentFault(f"expected a frame in colour, got {frame.dtype} of shape {frame.shape}")
    return frame


def frames_per_second(environment: object) -> float | None:
    """Return the rate that an environment (or its class) states in its metadata, if it does."""
    metadata = getattr(environment, "metadata", None)
    rate = cast("Mapping[str, object]", metadata).get("render_fps") if isinstance(metadata, Mapping) else None
    return float(rate) if isinstance(rate, int | float) and rate > 0 else None
