"""The searches that settings can name. A new one is a file beside this one and an entry in `_ENTRIES`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from clipup.errors import InvalidArgument
from clipup.optimizers.registry import OptimizerSettings
from clipup.searches.ars import ARS
from clipup.searches.cma_es import CMAES, SepCMAES
from clipup.searches.cross_entropy import CrossEntropy
from clipup.searches.openai_es import OpenAIES
from clipup.searches.pgpe import PGPE
from clipup.searches.protocol import Search, SearchSettings
from clipup.searches.snes import SNES
from clipup.searches.xnes import XNES

_OPTIMIZER = frozenset(entry.name for entry in fields(OptimizerSettings)) | {"optimizer"}
_COMMON = frozenset(
    {"seed", "population", "population_max", "interactions", "radius", "radius_factor", "stdev", "max_speed"}
)


@dataclass(frozen=True)
class _Entry:
    """How a search is made from settings, and which settings it takes besides those that all of them take."""

    make: Callable[[SearchSettings, int], Search]
    takes: frozenset[str] = frozenset()


_ENTRIES: dict[str, _Entry] = {
    PGPE.kind: _Entry(PGPE.from_settings, _OPTIMIZER | {"stdev_learning_rate", "stdev_max_change", "fitness_shaping"}),
    OpenAIES.kind: _Entry(OpenAIES.from_settings, _OPTIMIZER | {"fitness_shaping", "weight_decay"}),
    ARS.kind: _Entry(ARS.from_settings, _OPTIMIZER | {"top"}),
    SNES.kind: _Entry(SNES.from_settings),
    XNES.kind: _Entry(XNES.from_settings),
    CMAES.kind: _Entry(CMAES.from_settings),
    SepCMAES.kind: _Entry(SepCMAES.from_settings),
    CrossEntropy.kind: _Entry(CrossEntropy.from_settings),
}
SEARCHES: tuple[str, ...] = tuple(_ENTRIES)
"""The names, the default first."""


def unused_settings(kind: str) -> frozenset[str]:
    """Return the names of the settings that mean nothing to the search of that name."""
    every = frozenset(entry.name for entry in fields(SearchSettings))
    return every - _COMMON - _ENTRIES[kind].takes


def make_search(kind: str, settings: SearchSettings, dimension: int) -> Search:
    """Return the search of that name, at its start, over `dimension` parameters."""
    if kind not in _ENTRIES:
        raise InvalidArgument(f"search must be one of {', '.join(SEARCHES)}, got {kind!r}")
    return _ENTRIES[kind].make(settings, dimension)
