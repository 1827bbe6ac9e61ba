"""The catalog of trained policies: its entries have their files, and what they say is so."""

from __future__ import annotations

import importlib
import math
from pathlib import Path

import pytest

from clipup.errors import InvalidArgument
from clipup.export.policy import read_policy
from clipup.zoo import catalog, trained_on
from clipup.zoo.catalog import FOLDER


def test_every_entry_has_a_policy_for_its_task_and_every_policy_an_entry() -> None:
    for entry in catalog():
        assert read_policy(entry.path)[1].env == entry.env
    assert {entry.path for entry in catalog()} == set((FOLDER / "policies").glob("*"))


def test_every_entry_can_be_trained_again_as_it_was() -> None:
    for entry in catalog():
        assert entry.config.seed == entry.settings["seed"]
        assert entry.config.policy == read_policy(entry.path)[0].network.describe()


def test_every_score_has_its_error_over_a_hundred_episodes() -> None:
    for entry in catalog():
        assert entry.episodes == 100 and math.isfinite(entry.score) and entry.standard_error >= 0


def test_the_page_has_the_tables_of_the_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[3]
    monkeypatch.syspath_prepend(root / "benchmarks")
    zoo, page = importlib.import_module("zoo"), (root / "docs/zoo.md").read_text("utf-8")
    assert "\n".join(zoo.tables()) in page and "\n".join(zoo.gallery()) in page
    assert [entry.name for entry in catalog() if not (zoo.PICTURES / f"{entry.name}.webp").is_file()] == []


def test_policies_are_small() -> None:
    assert all(entry.path.stat().st_size < 50_000 for entry in catalog())


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(InvalidArgument, match="did you mean 'CartPole-v1'"):
        trained_on("CartPol-v1")
