"""The tables of docs/comparison.md are those of the committed comparison."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

import clipup
from clipup.searches import SEARCHES

ROOT = Path(__file__).parents[3]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("searches_compared")


def test_the_tables_of_the_page_are_the_committed_comparison(script: Any) -> None:
    page = (ROOT / "docs/comparison.md").read_text("utf-8")
    for table in script.tables(json.loads(script.RESULT.read_text())):
        assert table in page, f"print it anew: python benchmarks/searches_compared.py --table\n{table}"


def test_every_search_takes_part(script: Any) -> None:
    assert {kind for kind, _ in script.CONTROL.values()} == set(SEARCHES)
    ours = [method.begin.args[0] for method in script.METHODS.values() if method.package == "clipup"]
    assert {getattr(clipup, name).kind for name in ours} == set(SEARCHES)


def test_every_case_has_been_compared(script: Any) -> None:
    found = json.loads(script.RESULT.read_text())
    cases = {(row["function"], row["dimension"], row["method"]) for row in found["functions"]}
    for dimension in script.GRID:
        for function in script.FUNCTIONS:
            for name, method in script.METHODS.items():
                left_out = function in script.LEFT_OUT.get(dimension, ()) or dimension > method.largest
                assert ((function, dimension, name) in cases) != left_out
    assert {(row["env"], row["method"]) for row in found["control"]} == {
        (env, name) for env in script.TASKS for name in script.CONTROL
    }


def test_the_one_number_of_a_function_is_better_than_those_on_both_sides_of_it(script: Any) -> None:
    found = json.loads(script.RESULT.read_text())
    for row in found["functions"]:
        rungs = sorted(map(float, row["tried"]))
        place = rungs.index(float(f"{row['stdev']:.3g}"))
        losses = [script._infinite(row["tried"][number]) for number in sorted(row["tried"], key=float)]
        assert 0 < place < len(rungs) - 1 or row["stdev"] in (min(script.LADDER.values()), max(script.LADDER.values()))
        assert max(losses[place], script.SOLVED) == max(min(losses), script.SOLVED)


def test_tables_take_the_place_of_those_with_the_same_first_cell(script: Any) -> None:
    page = "# Title\n\n| a | b |\n| --- | --- |\n| old | 1 |\n\nText.\n\n| c | d |\n"
    new = "| a | b |\n| --- | --- |\n| new | 2 |"
    assert script.with_tables(page, [new]) == f"# Title\n\n{new}\n\nText.\n\n| c | d |\n"
