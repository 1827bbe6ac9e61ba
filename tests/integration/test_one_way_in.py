"""The command and the library are one way into a run: equal settings leave equal files, from either side."""

from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path

import pytest

import clipup
from clipup.cli.main import main
from clipup.engines import registry
from clipup.reproduction.experiments import EXPERIMENTS, HUMANOID_BULLET
from clipup.reproduction.planned_runs import plan, run_name
from clipup.runs.rundir import RunDirectory
from clipup.training.api import engine_of
from clipup.training.setup import make_task

DATA = Path(__file__).parent / "data"
FILE = 'env = "CartPole-v1"\nmax_speed = 0.1\npopulation = 12\n'


def content(run: Path) -> dict[str, bytes]:
    """Return every file of a run by its path, without what a clock says and the number of a process."""
    return {
        str(path.relative_to(run)): path.read_bytes()
        for path in sorted(run.rglob("*"))
        if path.is_file() and path.name not in ("clock.jsonl", "lock")
    }


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """Return two directories with the same file of settings: one for the command, one for the library."""
    for name in ("command", "library"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "settings.toml").write_text(FILE)
    return tmp_path / "command", tmp_path / "library"


def test_training_and_resuming_leave_the_same_bytes(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command, library = places
    monkeypatch.chdir(command)
    words = ["--generations", "4", "--evaluate-every", "2", "--evaluation-episodes", "3", "--seed", "5"]
    assert main(["train", "--config", "settings.toml", *words, "--workers", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    monkeypatch.chdir(library)
    result = clipup.train(
        run=True, config="settings.toml", generations=4, evaluate_every=2, evaluation_episodes=3, seed=5, workers=1
    )
    run = Path("runs/CartPole-v1-1")
    assert result.path == run and told["run"] == str(run)
    assert (told["score"], told["generation"]) == (result.score, result.generation)
    assert content(command / run) == content(library / run)
    assert len(content(command / run)) == 7  # configuration, records, status, two policies, two checkpoints

    monkeypatch.chdir(command)
    assert main(["resume", str(run), "--generations", "+3", "--keep-checkpoints", "1", "--quiet"]) == 0
    monkeypatch.chdir(library)
    assert clipup.resume(run, more_generations=3, keep_checkpoints=1).generation == 7
    assert content(command / run) == content(library / run)


def test_both_refuse_the_same_things(places: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    file = places[0] / "settings.toml"
    run = places[0] / "run"
    for text, words in (
        ('env = "evil_module:Env-v0"\n', "--import evil_module"),
        ('env = "CartPole-v1"\ncluster = "ray://127.0.0.1:1"\n', "--cluster ray://127.0.0.1:1"),
        ('env = "CartPole-v1"\nmax_sped = 1\n', "did you mean 'max_speed'"),
    ):
        file.write_text(text)
        with pytest.raises(clipup.ClipUpError) as caught:
            clipup.train(config=file, run=run)
        assert words in str(caught.value)
        assert main(["train", "--config", str(file), "--run", str(run)]) == 2
        assert capsys.readouterr().err == f"clipup: {caught.value}\n"
    assert not run.exists()
    with pytest.raises(clipup.ClipUpError, match="max_speed cannot change within a run"):
        shutil.copytree(DATA / "version-0.1-lunar", run)
        clipup.resume(run, max_speed=0.1)  # type: ignore[call-arg]
    with pytest.raises(clipup.ClipUpError, match="either generations or more_generations"):
        clipup.resume(run, generations=5, more_generations=1)


@pytest.mark.parametrize(("name", "engine"), [("version-0.1-lunar", "envpool"), ("version-0.1-pendulum", "gymnasium")])
def test_a_run_of_version_0_1_goes_on_where_it_was_made_and_says_that_roundings_changed(
    name: str, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    once, twice = tmp_path / "once", tmp_path / "twice"
    shutil.copytree(DATA / name, once)
    shutil.copytree(DATA / name, twice)
    made = len((once / "records.jsonl").read_text().splitlines())
    kept = (once / "records.jsonl").read_bytes()
    result = clipup.resume(once, more_generations=2, progress=True)
    assert f"made the first {made} generations, with other roundings" in capsys.readouterr().err
    assert result.generation == made + 2 and len(result.records) == made + 2
    assert (once / "records.jsonl").read_bytes().startswith(kept)
    for _ in range(2):
        clipup.resume(twice, more_generations=1)
    assert "roundings" not in capsys.readouterr().err
    for run in (once, twice):
        status = json.loads((run / "status.json").read_text())
        assert (status["engine"], status["arithmetic_changed_at"]) == (engine, made)
    for file in ("records.jsonl", "policy.safetensors", "best-policy.safetensors"):
        assert (once / file).read_bytes() == (twice / file).read_bytes()


ROOT = Path(__file__).parents[2]
UNFINISHED = ROOT / "results" / "unfinished"


@pytest.mark.parametrize("path", sorted(UNFINISHED.iterdir()), ids=lambda path: path.name)
def test_an_unfinished_run_goes_on_under_its_name_with_the_engine_that_it_began_with(path: Path) -> None:
    directory = RunDirectory(path)
    config = directory.read_config()
    assert run_name(config) == path.name
    planned = {
        run.name for experiment in EXPERIMENTS.values() for run in plan(experiment, runs=max(5, experiment.runs))
    }
    scaled = {run.name for _, run, _ in runpy.run_path(str(ROOT / "benchmarks" / "long_runs.py"))["planned"]()}
    assert path.name in planned | scaled
    begun = json.loads((path / "status.json").read_text())["engine"]
    assert engine_of(directory, make_task(config)) == begun
    newest = "gymnasium" if config.env == HUMANOID_BULLET else "compiled"
    assert registry.choose(make_task(config))[0].name == newest  # what a new run would take
