"""Wrappers of Gymnasium's environments by name: ``module:Class``, or ``module:Class(key=value, …)``.

Several stand behind each other, with semicolons; the first is the innermost. To apply one imports its module. Whoever
asks for that has made sure that the user named it.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from clipup.errors import EnvironmentFault, InvalidArgument, one_line

Scalar = str | int | float | bool

_QUOTED = r"\"[^\"]*\"|'[^']*'"
# A `+` after `*` gives nothing back: a text from a file must not make the search slow.
_ENTRY = re.compile(rf"\s*+([A-Za-z_][\w.]*+):([A-Za-z_]\w*+)\s*+(?:\(((?:[^()\"']|{_QUOTED})*+)\)\s*+)?(;|\Z)")
_OPTION = re.compile(rf"\s*+([A-Za-z_]\w*+)\s*+=\s*+({_QUOTED}|[^,\"'\s][^,\"']*+)\s*+(,|\Z)")


@dataclass(frozen=True)
class Wrapper:
    """A class (or function) that wraps an environment, and its options."""

    module: str
    name: str
    options: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])

    def __str__(self) -> str:
        options = ", ".join(f"{key}={value!r}" for key, value in self.options.items())
        return f"{self.module}:{self.name}" + (f"({options})" if options else "")

    def wrap(self, environment: Any) -> Any:
        """Import the wrapper and return the wrapped environment; every failure is one line."""
        import gymnasium

        try:
            made = getattr(importlib.import_module(self.module), self.name)
        except ImportError as error:
            raise InvalidArgument(f"the wrapper {self} cannot be imported: {one_line(error)}") from error
        except AttributeError:
            raise InvalidArgument(f"the wrapper {self}: {self.module} has no {self.name}") from None
        except Exception as error:
            raise EnvironmentFault(f"importing the wrapper {self} failed: {one_line(error)}") from error
        try:
            wrapped: Any = made(environment, **self.options)
        except TypeError as error:
            raise InvalidArgument(f"the wrapper {self} does not take these options: {one_line(error)}") from error
        except Exception as error:
            raise EnvironmentFault(f"the wrapper {self} failed: {one_line(error)}") from error
        if not isinstance(cast(object, wrapped), gymnasium.Env):
            raise InvalidArgument(f"the wrapper {self} must return a gymnasium.Env, got {type(wrapped).__name__}")
        return wrapped


def parse_wrappers(text: str | None) -> tuple[Wrapper, ...]:
    """Return the wrappers that `text` names, without importing any.

    >>> [str(wrapper) for wrapper in parse_wrappers("a.b:Stack(size=4, mode=flat); c:Plain")]
    ["a.b:Stack(size=4, mode='flat')", 'c:Plain']
    """
    found: list[Wrapper] = []
    position = 0
    while text is not None and position < len(text):
        match = _ENTRY.match(text, position)
        if match is None:
            raise InvalidArgument(
                "wrapper must be module:Class or module:Class(key=value, …), several with semicolons, got "
                f"{text!r:.200}"
            )
        module, name, options, _ = match.groups()
        found.append(Wrapper(module, name, _options(options or "", text)))
        position = match.end()
    return tuple(found)


def _options(text: str, source: str) -> dict[str, Scalar]:
    found: dict[str, Scalar] = {}
    position = 0
    while position < len(text.rstrip()):
        match = _OPTION.match(text, position)
        if match is None:
            raise InvalidArgument(f"options of a wrapper must be key=value, with commas, got {source!r:.200}")
        found[match[1]] = _value(match[2].strip())
        position = match.end()
    return found


def _value(text: str) -> Scalar:
    if text[0] in "\"'":
        return text[1:-1]
    if text in ("true", "false", "True", "False"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
