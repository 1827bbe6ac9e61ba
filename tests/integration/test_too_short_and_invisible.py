"""Commands say in one line what cannot be said or shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from clipup.cli import main

pytest.importorskip("imageio")
SMALL = ["--generations", "3", "--population", "4", "--evaluation-episodes", "1", "--workers", "1", "--quiet"]


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "environments"))


def test_three_generations_are_too_short_for_a_diagnosis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "Pendulum-v1", *SMALL, "--run", str(tmp_path / "run")]) == 0
    assert main(["diagnose", str(tmp_path / "run")]) == 0
    assert "too short to say" in capsys.readouterr().out


@pytest.mark.parametrize("draws", ["not-taken", "no-arguments", "nothing", "raises", "grey", "missing"])
def test_an_environment_that_cannot_render_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], draws: str
) -> None:
    env = {"not-taken": "odd_starts:Unseen-v0", "no-arguments": "odd_starts:Plain-v0"}.get(draws, "odd_starts:Drawn-v0")
    options = ["--env.draws", draws] if env == "odd_starts:Drawn-v0" else []
    assert main(["train", env, *options, *SMALL, "--run", str(tmp_path / "run")]) == 0
    capfd.readouterr()
    film = tmp_path / "film.mp4"
    assert main(["record", str(tmp_path / "run"), "--import", "odd_starts", "-o", str(film)]) in (1, 2)
    error = capfd.readouterr().err
    assert "cannot be rendered" in error and error.count("\n") == 1 and not film.exists()
