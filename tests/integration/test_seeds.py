"""``clipup train --seeds``: each run has the bytes of a run alone, however the command is stopped."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import clipup
from clipup.cli.main import main
from clipup.errors import InvalidArgument, RunExists
from clipup.report.loading import load_runs
from clipup.runs.records import read_standing
from clipup.runs.seeds import SeedsDirectory

SMALL = [
    *("Pendulum-v1", "--engine", "gymnasium", "--policy", "linear", "--population", "4", "--max-episode-steps", "10"),
    *("--evaluate-every", "2", "--evaluation-episodes", "2", "--checkpoint-seconds", "0"),
]
FILES = ("records.jsonl", "policy.safetensors", "best-policy.safetensors")


def results(parent: Path) -> dict[str, bytes]:
    """Everything of the runs that may not depend on how they went."""
    runs = sorted(parent.glob("seed-*/"))
    files = {f"{run.name}/{name}": (run / name).read_bytes() for run in runs for name in FILES}
    settings = {f"{run.name}/settings": _settings(run / "config.toml") for run in runs}
    return files | settings | {"seeds": _settings(parent / "seeds.toml")}


def _settings(path: Path) -> bytes:
    return b"\n".join(
        line for line in path.read_bytes().splitlines() if not line.startswith(b"#")
    )  # they name the path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three seeds, trained without interruption."""
    parent = tmp_path_factory.mktemp("seeds") / "whole"
    words = ["train", *SMALL, "--seed", "7", "--seeds", "3", "--generations", "12", "--run", str(parent), "--quiet"]
    assert main(words) == 0
    return parent


def test_each_run_has_the_bytes_of_one_that_was_trained_alone(whole: Path, tmp_path: Path) -> None:
    assert [path.name for path in sorted(whole.glob("seed-*"))] == ["seed-7", "seed-8", "seed-9"]
    words = ["train", *SMALL, "--seed", "8", "--generations", "12", "--run", str(tmp_path / "alone"), "--quiet"]
    assert main(words) == 0
    for name in FILES:
        assert (whole / "seed-8" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()


def test_a_page_about_all_runs_lies_beside_them_and_the_parent_can_be_watched(whole: Path) -> None:
    assert b"Pendulum-v1" in (whole / "report.html").read_bytes()
    runs, left_out = load_runs([whole])  # what clipup watch and clipup report show
    assert [run.path.name for run in runs] == ["seed-7", "seed-8", "seed-9"] and not left_out


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)])
def test_killed_and_resumed_the_runs_have_the_same_bytes(
    number: signal.Signals, code: int, whole: Path, tmp_path: Path
) -> None:
    parent = tmp_path / "killed"
    words = ["train", *SMALL, "--seed", "7", "--seeds", "3", "--generations", "12", "--run", str(parent), "--quiet"]
    process = subprocess.Popen(
        [sys.executable, "-m", "clipup", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    wait_for(lambda: any(path.stat().st_size for path in parent.glob("seed-*/records.jsonl")))
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code
    wait_for(lambda: not is_alive(process.pid))  # nobody of its session is left
    if number == signal.SIGTERM:
        assert f"clipup resume {parent}" in said and "everything is saved" in said
    made = [(parent / name / "records.jsonl") for name in ("seed-7", "seed-8", "seed-9")]
    assert not all(path.exists() and path.read_bytes().count(b"\n") == 12 for path in made)
    assert main(["resume", str(parent), "--quiet"]) == 0
    assert results(parent) == results(whole)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_table_with_median_and_quartiles_ends_it_and_more_generations_go_on_with_all_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parent = tmp_path / "runs"
    assert main(["train", *SMALL, "--seeds", "2", "--generations", "2", "--run", str(parent)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["seed", "generation", "interactions", "score", "best", "score", "state"]
    assert [line.split()[:2] for line in lines[1:3]] == [["0", "2"], ["1", "2"]]
    assert lines[3].startswith("median score -") and "quartiles -" in lines[3] and "of 2 runs" in lines[3]
    before = results(parent)
    assert main(["resume", str(parent), "--quiet"]) == 0
    assert results(parent) == before
    capsys.readouterr()
    assert main(["resume", str(parent), "--generations", "+2", "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(run["seed"], run["generation"], run["state"]) for run in found["runs"]] == [
        (0, 4, "finished"),
        (1, 4, "finished"),
    ]
    low, middle, high = (found[f"score_{name}"] for name in ("lower_quartile", "median", "upper_quartile"))
    scores = sorted(run["score"] for run in found["runs"])
    assert scores[0] < low < middle < high < scores[1]
    longer = clipup.train_seeds(
        "Pendulum-v1", seeds=2, run=tmp_path / "longer", engine="gymnasium", policy="linear", population=4,
        max_episode_steps=10, evaluate_every=2, evaluation_episodes=2, checkpoint_seconds=0.0, generations=4,
    )  # fmt: skip
    assert results(parent) == results(tmp_path / "longer") and longer.quartiles == (low, middle, high)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["NoSuchThing-v0"], "NoSuchThing"),
        (["Pendulum-v1", "--policy", "convolution"], "'convolution'"),
        (["Pendulum-v1", "--engine", "gymnasium", "--stop", "solved"], "--target-score"),
        (["Pendulum-v1", "--engine", "gymnasium", "--init", "nothing.safetensors"], "nothing.safetensors"),
        (["Pendulum-v1", "--seed", str(2**63 - 1)], "2**63"),
        (["Pendulum-v1", "--seeds", "0"], "at least 1"),
        (["Pendulum-v1", "--seeds", "100000"], "from 1 to"),
    ],
)
def test_a_mistake_is_one_line_before_anything_is_written(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--seeds", "3", "--run", str(tmp_path / "new"), *words]) == 2
    shown = capsys.readouterr().err.strip()
    assert said in shown and "\n" not in shown and not (tmp_path / "new").exists()


def test_what_needs_one_run_names_the_best_of_those_below(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = {run: read_standing(run / "records.jsonl").best_score or 0.0 for run in sorted(whole.glob("seed-*/"))}
    assert main(["evaluate", str(whole)]) == 2
    best = max(scores, key=lambda run: scores[run])
    assert f"name one of them, such as {best}, which has the best score" in capsys.readouterr().err
    with pytest.raises(clipup.ClipUpError, match=r"several seeds.*seed-N"):
        clipup.resume(whole)


def test_a_directory_of_something_else_and_one_in_use_are_refused(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunExists, match="something else"):
        clipup.train_seeds("Pendulum-v1", seeds=2, run=tmp_path)
    with pytest.raises(RunExists, match="clipup resume"):
        clipup.train_seeds("Pendulum-v1", seeds=2, run=whole)
    with pytest.raises(InvalidArgument, match="module:Name"):
        clipup.train_seeds(lambda: None, seeds=2, run=tmp_path / "b")  # type: ignore[arg-type]
    directory = SeedsDirectory(whole)
    with directory.claimed(directory.read(), new=False), pytest.raises(clipup.ClipUpError, match="working on these"):
        clipup.resume_seeds(whole)


@pytest.mark.parametrize("line", ["seeds = 0", 'seeds = "3"', "seeds = 1e9", "", "seeds = true", "seeds = 99999999"])
def test_a_damaged_list_of_seeds_is_one_line(line: str, whole: Path, tmp_path: Path) -> None:
    (tmp_path / "seeds.toml").write_text((whole / "seeds.toml").read_text().replace("seeds = 3", line))
    with pytest.raises(clipup.ClipUpError, match="seeds must be a whole number"):
        clipup.resume_seeds(tmp_path)


RACE = ["train", *SMALL, "--seed", "7", "--seeds", "3", "--best-after", "200", "--generations", "12", "--quiet"]


@pytest.fixture(scope="module")
def race(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three seeds of which the best went on, without interruption."""
    parent = tmp_path_factory.mktemp("race") / "whole"
    assert main([*RACE, "--run", str(parent)]) == 0
    return parent


def test_only_the_best_start_goes_on_and_it_has_the_bytes_of_a_run_alone(
    race: Path, whole: Path, tmp_path: Path
) -> None:
    starts: dict[str, float] = {}
    for seed in (7, 8, 9):
        run = tmp_path / f"seed-{seed}"
        words = ["--seed", str(seed), "--total-interactions", "200", "--run", str(run), "--quiet"]
        assert main(["train", *SMALL, *words]) == 0
        starts[run.name] = read_standing(run / "records.jsonl").best_score or 0.0
    best = max(starts, key=lambda name: starts[name])
    generations = {name: read_standing(race / name / "records.jsonl").generation for name in starts}
    assert generations == {name: 12 if name == best else 5 for name in starts}  # 40 interactions in a generation
    for name in FILES:
        assert (race / best / name).read_bytes() == (whole / best / name).read_bytes()


def test_a_race_that_is_killed_goes_on_with_the_run_it_had_chosen(race: Path, tmp_path: Path) -> None:
    parent = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-m", "clipup", *RACE, "--run", str(parent)], start_new_session=True)
    wait_for(lambda: any(b'total_interactions = "none"' in path.read_bytes() for path in parent.glob("seed-*/*.toml")))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    wait_for(lambda: not is_alive(process.pid))
    assert main(["resume", str(parent), "--quiet"]) == 0
    assert results(parent) == results(race)


def test_the_table_names_the_run_that_went_on(race: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", str(race), "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    chosen = next(run for run in found["runs"] if run["generation"] == 12)
    assert found["chosen"] == chosen["seed"]
    assert main(["resume", str(race), "--quiet"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"seed {chosen['seed']} was the best and went on") and str(race) in last


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--best-after", "200"], "--seeds"),
        (["--seeds", "2", "--best-after", "soon"], "whole number of interactions, at least 1, got 'soon'"),
        (["--seeds", "2", "--best-after", "0"], "at least 1"),
        (["--seeds", "2", "--best-after", "2e3", "--total-interactions", "1e3"], "less than total_interactions (1000)"),
    ],
)
def test_a_race_that_cannot_be_run_is_refused_before_anything_is_written(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "Pendulum-v1", "--run", str(tmp_path / "new"), *words]) == 2
    shown = capsys.readouterr().err.strip()
    assert said in shown and "\n" not in shown and not (tmp_path / "new").exists()


@pytest.mark.parametrize("line", ["best_after = 0", 'best_after = "200"', "best_after = 2e2", "best_after = true"])
def test_a_damaged_end_of_the_starts_is_one_line(line: str, race: Path, tmp_path: Path) -> None:
    (tmp_path / "seeds.toml").write_text((race / "seeds.toml").read_text().replace("best_after = 200", line))
    with pytest.raises(clipup.ClipUpError, match=r"seeds\.toml: best_after must be a whole number"):
        clipup.resume_seeds(tmp_path)
