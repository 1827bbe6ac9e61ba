"""What a function calls, and a fingerprint that changes with any of it."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np

from clipup.compilation.functions import attribute_names, fingerprint, primitive, reachable

LIMIT = 3
TABLE = np.arange(3.0)


def inner(value: Any) -> Any:
    return value.field + LIMIT


def outer(value: Any) -> Any:
    return inner(value) * TABLE[0]


def calls_itself(value: int) -> int:
    return 0 if value == 0 else calls_itself(value - 1)


def with_globals(function: Any, **changes: Any) -> FunctionType:
    return FunctionType(function.__code__, function.__globals__ | changes, function.__name__)


def test_functions_are_found_through_the_names_that_they_use() -> None:
    assert reachable([outer]) == [outer, inner]
    assert reachable([calls_itself]) == [calls_itself]

    def closure(value: Any) -> Any:
        return enclosed(value)

    enclosed = inner
    assert reachable([closure]) == [closure, inner]
    assert {"field", "inner", "TABLE"} <= attribute_names([outer])


def test_a_fingerprint_changes_with_code_and_with_what_it_refers_to() -> None:
    own = fingerprint([outer])
    assert own == fingerprint([outer])
    changed = [
        with_globals(outer, TABLE=np.arange(1.0, 4.0)),
        with_globals(outer, inner=with_globals(inner, LIMIT=4)),
        with_globals(outer, inner=calls_itself),
    ]
    assert len({own, *(fingerprint([function]) for function in changed)}) == 4
    assert fingerprint([with_globals(outer, unrelated=1)]) == own


def test_constants_in_the_code_count_too() -> None:
    made: list[dict[str, Any]] = [{}, {}, {}]
    for space, text in zip(made, ("x + 1.0", "x + 2.0", "x in {1, 2, 3}"), strict=True):
        exec(f"def f(x):\n    return {text}", space)
    assert len({fingerprint([space["f"]]) for space in made}) == 3


def test_a_primitive_is_marked_and_stays_itself() -> None:
    def double(value: int) -> int:
        return 2 * value

    assert primitive(double) is double and double(2) == 4
