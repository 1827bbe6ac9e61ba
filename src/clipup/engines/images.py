"""Which observations and choices are too large for clipup's policies, which have no convolutions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

MOST_CHOICES = 2**16
"""Choices of an observation or an action, in all."""
IMAGE = 1024
"""Numbers from which on an array of bytes with two or more dimensions counts as an image: 32 × 32."""
LARGE = 10_000
"""Numbers from which on any array with two or more dimensions counts as one."""


def is_image(shape: tuple[int, ...], dtype: Any) -> bool:
    """Return whether an array is too much like a picture for policies without convolutions."""
    size = math.prod(shape) if len(shape) > 1 else 0
    return size >= (IMAGE if np.dtype(dtype) == np.uint8 else LARGE)
