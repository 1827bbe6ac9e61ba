"""Policies of one's own by name: ``module:Class``, ``file.py:Class``, or with arguments ``module:Class(hidden=32)``.

To make such a policy runs the code of its module. Whoever calls `make_named` has made sure that the user named it.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from dataclasses import dataclass, replace
from typing import Any

from clipup.errors import BrokenTask, InvalidArgument, one_line
from clipup.importing import absolute, load_place, short_path
from clipup.policies.grammar import HEADS, MOST_INPUTS, parse_policy
from clipup.policies.modules import ModuleNetwork, is_module, same_random_numbers
from clipup.policies.own import OwnNetwork
from clipup.policies.protocol import PolicyNetwork
from clipup.suggestions import did_you_mean

_FORM = re.compile(r"(?P<place>[^()]+):(?P<name>[^\W\d]\w*)\s*(?P<call>\(.*\))?", re.DOTALL)

LONGEST = 1000
"""Most characters in a name: it may come from a file, and its arguments are parsed."""


@dataclass(frozen=True)
class PolicyName:
    """Where a policy's code is, what it is called, and the arguments that it is made with."""

    place: str
    name: str
    arguments: dict[str, object]
    typed: str
    """The name as the user typed it. Files hold this one."""

    def for_workers(self) -> PolicyName:
        """Return the name for another process, which may be in another directory."""
        place = absolute(f"{self.place}:{self.name}").rpartition(":")[0]
        return replace(self, place=place)


def make_policy(policy: object, observation_size: int, action_size: int) -> PolicyNetwork:
    """Return a policy for these sizes: of a short name, of a name of one's own, or of an object, class or function."""
    if isinstance(policy, str):
        own = own_name(policy)
        return (
            parse_policy(policy, observation_size, action_size)
            if own is None
            else make_policy(own, observation_size, action_size)
        )
    if isinstance(policy, PolicyName):
        return make_named(policy, observation_size, action_size)
    return make_network(policy, observation_size, action_size)


def for_workers(policy: object) -> object:
    """Return what another process makes the same policy from."""
    own = own_name(policy) if isinstance(policy, str) else None
    return policy if own is None else own.for_workers()


def own_name(text: str) -> PolicyName | None:
    """Return what `text` names if that is a policy of one's own; nothing is imported."""
    return None if text.partition(":")[0].partition("+")[0] in HEADS else read_name(text)


def check_policy(text: str) -> None:
    """Raise `InvalidArgument` unless `text` can name a policy; nothing is imported."""
    if own_name(text) is None:
        parse_policy(text, MOST_INPUTS, 1)


def read_name(text: str) -> PolicyName | None:
    """Return what `text` names if it has the form of a policy of one's own; nothing is imported."""
    found = _FORM.fullmatch(text.strip()) if len(text) <= LONGEST else None
    if found is None:
        return None
    place, name = found["place"], found["name"]
    if not place.endswith(".py") and not all(map(str.isidentifier, place.split("."))):
        return None
    return PolicyName(place, name, _arguments(text, found["call"] or "()"), text)


def _arguments(text: str, call: str) -> dict[str, object]:
    """Return the keyword arguments in parentheses, which may be numbers, texts, true, false and lists of them."""
    try:
        tree = ast.parse(f"f{call}", mode="eval").body
        if not isinstance(tree, ast.Call) or tree.args or not isinstance(tree.func, ast.Name):
            raise ValueError
        found: dict[str, object] = {}
        for keyword in tree.keywords:
            if keyword.arg is None or keyword.arg in found:
                raise ValueError
            found[keyword.arg] = ast.literal_eval(keyword.value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise InvalidArgument(
            f"policy {text!r}: arguments are names with plain values, like (hidden=32, kind='a'), got {call!r:.60}"
        ) from error
    return found


def make_named(name: PolicyName, observation_size: int, action_size: int) -> PolicyNetwork:
    """Import the code that `name` names, and return the policy for these sizes."""
    try:
        module = load_place(name.place, name.name)
    except BrokenTask as error:
        raise InvalidArgument(f"policy {name.typed!r}: {error}") from error
    if not hasattr(module, name.name):
        known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise InvalidArgument(
            f"policy {name.typed!r}: {name.place} has no {name.name!r}{did_you_mean(name.name, known)}"
        )
    thing = getattr(module, name.name)
    return make_network(thing, observation_size, action_size, name=name.typed, arguments=name.arguments, source=name)


def make_network(
    thing: object,
    observation_size: int,
    action_size: int,
    *,
    name: str | None = None,
    arguments: dict[str, object] | None = None,
    source: PolicyName | None = None,
) -> PolicyNetwork:
    """Return the policy that `thing` is, or that it makes if it is a class or a function.

    A class or function gets `arguments`, and `observation_size` and `action_size` if it takes them.
    """
    label = name or name_of(thing)
    makes = inspect.isclass(thing) or (inspect.isfunction(thing) and not hasattr(thing, "parameter_count"))
    if makes:
        thing = _made(thing, label, {**(arguments or {})}, observation_size, action_size)
    elif arguments:
        raise InvalidArgument(f"policy {label}: only a class or a function takes arguments; it is an object")
    if is_module(thing):
        return ModuleNetwork(label, observation_size, action_size, thing, source)
    return OwnNetwork(label, observation_size, action_size, thing, source)


def own_object(network: PolicyNetwork) -> object | None:
    """Return the object of the user's that a network was made from, or None; see `make_network`."""
    if isinstance(network, OwnNetwork):
        return network.policy
    return network.module if isinstance(network, ModuleNetwork) else None


def _made(maker: Any, label: str, arguments: dict[str, object], observation_size: int, action_size: int) -> object:
    try:
        taken = inspect.signature(maker).parameters
    except (TypeError, ValueError):
        taken = {}
    for key, value in (("observation_size", observation_size), ("action_size", action_size)):
        if key in taken:
            arguments.setdefault(key, value)
    try:
        with same_random_numbers():  # of every process, where a module draws its first parameters
            return maker(**arguments)
    except Exception as error:
        given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        raise InvalidArgument(f"policy {label} cannot be made with ({given}): {one_line(error)}") from error


def name_of(thing: object) -> str:
    """Return the name under which `make_named` finds a class, or the class of an object.

    What the script that is run defines is named by the script's file.
    """
    kind: Any = thing if inspect.isclass(thing) or inspect.isfunction(thing) else type(thing)
    place = str(kind.__module__)
    file = getattr(sys.modules.get(place), "__file__", None)
    if file is not None and (place == "__main__" or place.startswith("_clipup_")):
        place = short_path(file)
    return f"{place}:{kind.__qualname__.rpartition('.')[2]}"
