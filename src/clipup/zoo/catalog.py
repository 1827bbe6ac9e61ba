"""The catalog of trained policies: ``catalog.json``, and one policy file for each of its entries.

An entry has the settings that the training was given, and what came of it. ``benchmarks/zoo.py`` writes both files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, cast

from clipup.decoding import RESULTS, decode_object
from clipup.errors import InvalidArgument
from clipup.files import package_text
from clipup.runs.config import RunConfig
from clipup.runs.resolve import resolve
from clipup.suggestions import did_you_mean

FOLDER = Path(str(resources.files("clipup.zoo")))


@dataclass(frozen=True)
class Trained:
    """A trained policy.

    Attributes
    ----------
    name
        Its name in the zoo: the id of its task, if there is only one policy for it.
    settings
        What its training was given, ``env`` and ``seed`` among it; all else is a default.
    score, standard_error
        Mean return over `episodes` fresh episodes of the environment's own reward, and its standard error.
    interactions, seconds
        What its training cost; docs/zoo.md says on what.
    published
        Scores of other methods, by method, each with its source.
    """

    name: str
    settings: Mapping[str, Any]
    score: float
    standard_error: float
    episodes: int
    interactions: int
    seconds: float
    published: Mapping[str, str]

    @property
    def env(self) -> str:
        """The task's id."""
        return str(self.settings["env"])

    @property
    def config(self) -> RunConfig:
        """The whole configuration of its training, defaults and preset included."""
        given = dict(self.settings)
        return resolve(given, preset=given.pop("preset", "auto"))[0]

    @property
    def imports(self) -> tuple[str, ...]:
        """The module of its task, where that is none of a library's: what `evaluate` must be allowed to import."""
        module, separator, _ = self.env.rpartition(":")
        return (module,) if separator else ()

    @property
    def path(self) -> Path:
        """The policy file."""
        return FOLDER / "policies" / f"{self.name}.safetensors"


@cache
def catalog() -> tuple[Trained, ...]:
    """All trained policies, by name."""
    found = decode_object(package_text("clipup.zoo", "catalog.json"), "catalog.json", RESULTS)
    entries = cast("dict[str, dict[str, Any]]", found)
    return tuple(Trained(name=name, **values) for name, values in sorted(entries.items()))


def trained_on(name: str) -> Trained:
    """The policy of that name. An unknown name is an error that suggests the nearest one."""
    known = {entry.name: entry for entry in catalog()}
    if name not in known:
        raise InvalidArgument(f"the zoo has no policy {name!r}{did_you_mean(name, known)} (see: clipup zoo)")
    return known[name]
