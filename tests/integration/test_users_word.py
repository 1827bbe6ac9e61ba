"""What only a file asks for does not happen: no import, no connection, no crowd of processes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import clipup
from clipup.cli.main import main
from clipup.errors import InvalidArgument
from clipup.processors import available_threads
from clipup.runs.config import RunConfig
from clipup.runs.resolve import resolve
from clipup.runs.rundir import RunDirectory
from clipup.runs.seeds import Seeds, SeedsDirectory
from clipup.runs.trust import check_import, trusted_execution
from clipup.training import api


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    words = ["train", "CartPole-v1", "--population", "8", "--evaluation-episodes", "2", "--quiet", "--workers", "1"]
    assert main([*words, "--generations", "2", "--run", str(path)]) == 0
    return path


def with_settings(run: Path, target: Path, **settings: str) -> Path:
    shutil.copytree(run, target)
    config = target / "config.toml"
    kept = [line for line in config.read_text().splitlines() if line.partition(" ")[0] not in settings]
    added = [f"{name} = {value}" for name, value in settings.items()]
    config.write_text("\n".join([*added, *kept]) + "\n")
    return target


@pytest.mark.parametrize("service", ["wandb", "mlflow"])
def test_a_service_that_only_a_file_names_is_not_connected_to(
    service: str, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither library is installed here: the attempt alone would be an error."""
    run = with_settings(finished, tmp_path / "run", **{service: '"x"'})
    assert main(["resume", str(run), "--generations", "3", "--quiet"]) == 0
    assert f"not logging to {service} project 'x'" in capsys.readouterr().err
    assert f'{service} = "x"' in (run / "config.toml").read_text()
    assert main(["resume", str(run), "--generations", "4", f"--{service}", "x", "--quiet"]) == 2
    assert service in capsys.readouterr().err
    new = ["train", "--config", str(run / "config.toml"), "--run", str(tmp_path / "new"), "--generations", "1"]
    assert main([*new, "--quiet"]) == 0


def test_workers_from_a_file_are_at_most_the_processors_here(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    make = api.make_executor

    def remember(*arguments: object, **options: object) -> object:
        asked.append(options["workers"])
        return make(*arguments, **{**options, "workers": 1})

    monkeypatch.setattr(api, "make_executor", remember)
    run = with_settings(finished, tmp_path / "run", workers="100000")
    assert main(["resume", str(run), "--generations", "3", "--quiet"]) == 0
    assert main(["resume", str(run), "--generations", "4", "--workers", "70", "--quiet"]) == 0
    assert asked == [available_threads(), 70]


def test_the_words_of_a_person_are_kept() -> None:
    config = RunConfig(env="A", wandb="x", mlflow="y", workers=500, cluster="ray://h:1")
    told: list[str] = []
    assert trusted_execution(config, {"wandb", "mlflow", "workers"}, told.append) == config and told == []
    assert trusted_execution(config, {"cluster"}, told.append).workers == 500  # a cluster has its own processors
    assert trusted_execution(config, (), told.append).workers == available_threads() and len(told) == 4


@pytest.mark.parametrize(
    "env",
    ["os:Evil-v0", "pybullet_envs_gymnasium:HumanoidBulletEnv-v0", "a.b:c:D-v0", ":X", "GymV26Environment-v0",
     "GymV21Environment-v0", "x:GymV26Environment-v0"],
)  # fmt: skip
def test_a_module_that_only_a_file_names_is_not_imported(env: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="--import"):
        check_import(env, named=(), source="file")
    (tmp_path / "config.toml").write_text(f'env = "{env}"\n')
    with pytest.raises(InvalidArgument, match="--import"):
        resolve({}, file=tmp_path / "config.toml")


def test_the_task_of_our_own_preset_works_as_a_person_types_it_but_not_from_a_file(tmp_path: Path) -> None:
    full = "pybullet_envs_gymnasium:HumanoidBulletEnv-v0"
    assert resolve({"env": "HumanoidBulletEnv-v0"})[0].env == full
    assert resolve({"env": full})[1] is not None
    (tmp_path / "config.toml").write_text('env = "HumanoidBulletEnv-v0"\n')
    with pytest.raises(InvalidArgument, match="--import pybullet_envs_gymnasium"):
        resolve({}, file=tmp_path / "config.toml")
    assert resolve({}, file=tmp_path / "config.toml", imports=["pybullet_envs_gymnasium"])[0].env == full


def as_if_killed_at_its_start(run: Path) -> Path:
    for path in run.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "config.toml":
            path.unlink()
    return run


@pytest.mark.parametrize("place", ["/etc/passwd", "missing", "pipe", "other"])
def test_a_policy_that_only_a_run_names_is_not_read(
    place: str, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run without a checkpoint would start from it, and it lies outside of the run."""
    init = place if place.startswith("/") else str(tmp_path / place)
    if place == "pipe":
        os.mkfifo(init)
    if place == "other":
        shutil.copytree(finished, init)
    run = as_if_killed_at_its_start(with_settings(finished, tmp_path / "run", init=f'"{init}"'))
    for words in ([], ["--generations", "4"], ["--workers", "1"]):
        assert main(["resume", str(run), "--quiet", *words]) == 2
        said = f"starts from the policy {init!r}; if that is meant, say so: --init {init}"
        assert capsys.readouterr().err == f"clipup: {run / 'config.toml'} {said}\n"
    with pytest.raises(InvalidArgument, match="--init"):
        clipup.resume(run)
    assert main(["resume", str(run), "--quiet", "--init", "another"]) == 2
    assert "init may only repeat that, got 'another'" in capsys.readouterr().err
    assert [path.name for path in run.iterdir()] == ["config.toml"]
    seeds = tmp_path / "seeds"
    with SeedsDirectory(seeds).claimed(Seeds(RunDirectory(run).read_config(), 2), new=True):
        pass
    assert main(["resume", str(seeds), "--quiet"]) == 2 and f"--init {init}" in capsys.readouterr().err
    assert {path.name for path in seeds.iterdir()} == {"seeds.toml", "lock"}


def test_a_run_that_was_killed_before_its_first_checkpoint_starts_from_its_policy_on_a_persons_word(
    finished: Path, tmp_path: Path
) -> None:
    words = ["train", "CartPole-v1", "--population", "8", "--evaluation-episodes", "2", "--quiet", "--workers", "1"]
    start = ["--init", str(finished)]
    assert main([*words, "--generations", "2", *start, "--run", str(tmp_path / "whole")]) == 0
    run = as_if_killed_at_its_start(Path(shutil.copytree(tmp_path / "whole", tmp_path / "run")))
    assert main(["resume", str(run), "--quiet", *start]) == 0
    for name in ("records.jsonl", "policy.safetensors"):
        assert (run / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert main(["resume", str(run), "--quiet", "--generations", "3"]) == 0  # the checkpoint has all of it now
