"""Every score under results/evaluations comes out again from its policy file (minutes)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import clipup

ROOT = Path(__file__).parents[2]
EVALUATIONS = sorted((ROOT / "results/evaluations").glob("*.json"))


@pytest.mark.slow
@pytest.mark.parametrize("path", EVALUATIONS, ids=lambda path: path.stem)
def test_a_published_score_comes_out_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    published = json.loads(path.read_text())
    module, separator, _ = published["env"].rpartition(":")
    found = clipup.evaluate(
        published["policy"],
        episodes=published["episodes"],
        seed=published["seed"],
        imports=(module,) if separator else (),
    )
    assert found.engine == published["engine"]
    if found.engine == "compiled":
        assert list(found.returns) == published["returns"]
    assert abs(found.summary.mean - published["mean"]) <= 3 * published["standard_error"] + 1e-9
