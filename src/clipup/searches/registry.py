"""The searches that settings can name. A new one is a file beside this one and a line in `_MAKERS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from clipup.errors import InvalidArgument
from clipup.searches.pgpe import PGPE
from clipup.searches.protocol import Search, SearchSettings

_MAKERS: Mapping[str, Callable[[SearchSettings, int], Search]] = {PGPE.kind: PGPE.from_settings}
SEARCHES: tuple[str, ...] = tuple(_MAKERS)
"""The names, the default first."""


def make_search(kind: str, settings: SearchSettings, dimension: int) -> Search:
    """Return the search of that name, at its start, over `dimension` parameters."""
    if kind not in _MAKERS:
        raise InvalidArgument(f"search must be one of {', '.join(SEARCHES)}, got {kind!r}")
    return _MAKERS[kind](settings, dimension)
