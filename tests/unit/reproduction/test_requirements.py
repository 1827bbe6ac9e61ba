import importlib.util
from pathlib import Path

import pytest

from clipup.cli.main import main
from clipup.errors import MissingDependency
from clipup.reproduction.experiments import EXPERIMENTS
from clipup.reproduction.planned_runs import check_requirements, requirements


def hide(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name in names else real(name, *rest))


@pytest.mark.parametrize(
    ("experiment", "hidden", "command"),
    [
        ("humanoid-bullet", ("pybullet",), "clipup[bullet]"),
        ("humanoid-bullet", ("pybullet_envs_gymnasium",), "clipup[bullet]"),
        ("humanoid", ("envpool", "mujoco"), "clipup[train]"),
        ("walker2d", ("envpool", "gymnasium"), "clipup[train]"),
        ("fitness-scale", ("matplotlib",), "clipup[plot]"),
        ("fitness-scale", ("ray",), "clipup[ray]"),
        ("humanoid-bullet", ("gymnasium",), "clipup[train]"),
        ("humanoid", ("gymnasium",), "clipup[train]"),
        ("humanoid-observations", ("envpool",), "clipup[train]"),
    ],
)
def test_a_missing_library_is_one_line_with_the_install_command(
    experiment: str, hidden: tuple[str, ...], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, *hidden)
    with pytest.raises(MissingDependency) as caught:
        check_requirements(EXPERIMENTS[experiment], runs=True, figures=True, cluster=True)
    assert f"pip install '{command}'" in str(caught.value) and "\n" not in str(caught.value)


def test_it_is_said_before_any_run_begins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hide(monkeypatch, "pybullet")
    assert main(["reproduce", "humanoid-bullet", "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()
    assert capsys.readouterr().err.count("\n") == 1


def test_what_is_collected_needs_no_simulator(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hide(monkeypatch, "pybullet", "ray")
    words = ["--collect", "--no-figures", "--cluster", "ray", "--out", str(tmp_path)]
    assert main(["reproduce", "humanoid-bullet", *words]) == 0, capsys.readouterr().err


def test_pictures_that_are_not_wanted_need_no_matplotlib() -> None:
    assert "matplotlib" not in dict(requirements(EXPERIMENTS["walker2d"], runs=True, figures=False, cluster=False))
