"""From observations in parts (a dictionary, a tuple, choices) to the vector that a policy takes, in a fixed order.

The order: the entries of a dictionary by their names, in alphabetical order; those of a tuple as they stand; the
numbers of an array row by row. A choice among n is n numbers, all zero but a one at the choice. True is 1, False is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from clipup.errors import InvalidArgument, one_line

Rows = NDArray[np.float64]
PART_LIMIT = 1000
"""Parts that a layout has at most."""


@dataclass(frozen=True)
class ObservationPart:
    """One array of an observation, and the numbers that it becomes.

    Parameters
    ----------
    path
        Where it is: the keys of dictionaries and the places in tuples, from the outside in; empty for the whole.
    size
        How many numbers it becomes.
    choices, starts
        If its values are choices: how many there are of each, and the number of the first. Empty for numbers.
    """

    path: tuple[str | int, ...]
    size: int
    choices: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        wrong = self.size < 1 or len(self.choices) != len(self.starts) or min(self.choices, default=1) < 1
        if wrong or (self.choices and sum(self.choices) != self.size):
            raise InvalidArgument(f"an observation of {self.size} numbers cannot hold choices {self.choices}")

    @property
    def name(self) -> str:
        """Its path as text."""
        return "/".join(map(str, self.path)) or "observation"

    def rows(self, values: NDArray[Any]) -> Rows:
        """Return the numbers of n observations: values (n, …) become (n, size)."""
        flat = np.reshape(values, (len(values), -1))
        wanted = len(self.choices) or self.size
        if flat.shape[1] != wanted:
            raise InvalidArgument(f"{self.name} must have {wanted} numbers, got {flat.shape[1]}")
        if not self.choices:
            return flat.astype(np.float64)
        chosen = flat.astype(np.int64) - np.array(self.starts)
        if (chosen < 0).any() or (chosen >= np.array(self.choices)).any() or not (chosen + self.starts == flat).all():
            raise InvalidArgument(f"{self.name} holds a choice that its space does not have: {values!r:.80}")
        found = np.zeros((len(flat), self.size))
        offsets = np.concatenate([[0], np.cumsum(self.choices)[:-1]])
        np.put_along_axis(found, chosen + offsets, 1.0, axis=1)
        return found


@dataclass(frozen=True)
class Observations:
    """The parts of an observation, in the order in which they stand in the vector.

    >>> layout = Observations((ObservationPart(("goal",), 2), ObservationPart(("mode",), 3, (3,), (0,))))
    >>> layout.flatten({"mode": 1, "goal": [0.5, 2.0]})
    array([0.5, 2. , 0. , 1. , 0. ])
    """

    parts: tuple[ObservationPart, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.parts) <= PART_LIMIT:
            raise InvalidArgument(f"an observation has 1 to {PART_LIMIT} parts, got {len(self.parts)}")

    @cached_property
    def size(self) -> int:
        """The length of the vector."""
        return sum(part.size for part in self.parts)

    def rows(self, values: Sequence[NDArray[Any]]) -> Rows:
        """Return n observations as rows; `values` are the arrays of the parts, n rows each, in order."""
        return np.concatenate([part.rows(array) for part, array in zip(self.parts, values, strict=True)], axis=1)

    def flatten(self, observation: object) -> Rows:
        """Return one observation as a vector."""
        return self.rows([np.asarray(_inside(observation, part))[np.newaxis] for part in self.parts])[0]

    def flatten_batch(self, observations: object) -> Rows:
        """Return n observations as rows, where each part is an array of n."""
        return self.rows([np.asarray(_inside(observations, part)) for part in self.parts])

    def describe(self) -> str:
        """The parts in words.

        >>> Observations((ObservationPart(("goal",), 2), ObservationPart(("mode",), 3, (3,), (0,)))).describe()
        'goal (2), mode (3)'
        """
        shown = [f"{part.name} ({part.size})" for part in self.parts]
        return ", ".join(shown if len(shown) <= 8 else [*shown[:7], f"and {len(shown) - 7} more"])

    def to_list(self) -> list[dict[str, object]]:
        """Return the parts in a form that JSON can hold."""
        return [
            {"path": list(part.path), "size": part.size, "choices": list(part.choices), "starts": list(part.starts)}
            for part in self.parts
        ]

    @classmethod
    def from_list(cls, parts: object) -> Observations:
        """Return the layout that `to_list` described."""
        try:
            return cls(tuple(_part(entry) for entry in cast("list[Mapping[str, object]]", parts)))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidArgument(f"not a description of observations: {one_line(error)}") from error


def _part(entry: Mapping[str, object]) -> ObservationPart:
    path = cast("list[object]", entry["path"])
    whole = [entry["size"], *cast("list[object]", entry["choices"]), *cast("list[object]", entry["starts"])]
    if any(type(value) is not int or not -(2**53) < value < 2**53 for value in whole):
        raise TypeError("sizes are not whole numbers")
    if any(type(key) not in (str, int) for key in path):
        raise TypeError("a path is not text and numbers")
    return ObservationPart(
        tuple(cast("list[str | int]", path)),
        cast(int, entry["size"]),
        tuple(cast("list[int]", entry["choices"])),
        tuple(cast("list[int]", entry["starts"])),
    )


def _inside(observation: object, part: ObservationPart) -> object:
    """Return what lies at the path of a part."""
    found: Any = observation
    for key in part.path:
        try:
            found = found[key]
        except (KeyError, IndexError, TypeError) as error:
            raise InvalidArgument(f"an observation must hold {part.name}, got {observation!r:.80}") from error
    return found
