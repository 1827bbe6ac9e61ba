"""`clipup zoo` as a user calls it."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from itertools import islice
from pathlib import Path

import pytest

import clipup
from clipup.cli.main import main
from clipup.engines import Task
from clipup.evaluation.video import play
from clipup.runs.records import read_records
from clipup.zoo import Trained, catalog, trained_on


def test_the_list_shows_every_policy_with_its_score(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zoo"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == [entry.name for entry in catalog()]
    assert main(["zoo", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {entry.name for entry in catalog()}


def test_a_policy_plays_and_scores_what_the_catalog_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zoo", "play", "CartPole-v1", "--episodes", "100", "--seed", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mean"] == trained_on("CartPole-v1").score


def test_a_policy_is_recorded(tmp_path: Path) -> None:
    pytest.importorskip("imageio_ffmpeg", reason="videos need imageio (in the video extra)")
    video = tmp_path / "cart.gif"
    assert main(["zoo", "play", "CartPole-v1", "-o", str(video), "--max-seconds", "2", "--quiet"]) == 0
    assert video.read_bytes().startswith(b"GIF")


def test_the_camera_follows_a_robot_unless_the_task_chose_another() -> None:
    policy, name = clipup.load_policy(trained_on("HalfCheetah-v5").path), "HalfCheetah-v5"

    def robot(options: dict[str, object]) -> tuple[int, int]:
        """Return how many pixels have the robot's colour, at the start and after three seconds."""
        frames = [step.frame.astype(int) for step in islice(play(policy, Task(name, options)).steps, 61)]
        first, last = (int((frame[..., 0] - frame[..., 2] > 40).sum()) for frame in (frames[0], frames[-1]))
        return first, last

    first, last = robot({})
    assert last > first / 2 > 100
    first, last = robot({"camera_id": -1})  # a free camera stays where it is
    assert last < first / 2


def test_the_camera_follows_a_robot_of_dm_control(tmp_path: Path) -> None:
    imageio = pytest.importorskip("imageio.v3", reason="videos need imageio (in the video extra)")
    video = tmp_path / "cheetah.gif"
    # Another process: EnvPool draws only where it is imported after OpenGL.
    words = ["zoo", "play", "CheetahRun-v1", "-o", str(video), "--max-seconds", "3", "--quiet"]
    played = subprocess.run([sys.executable, "-m", "clipup", *words], capture_output=True, text=True, check=False)
    if "OpenGL" in played.stderr:
        pytest.skip("no OpenGL here")
    assert played.returncode == 0, played.stderr
    frames = imageio.imread(video).astype(int)
    first, last = (int((frame[..., 0] - frame[..., 2] > 40).sum()) for frame in (frames[0], frames[-1]))
    assert last > first / 2 > 100


def test_a_training_is_repeated_to_the_same_bits(tmp_path: Path) -> None:
    entry, run = trained_on("CartPole-v1"), tmp_path / "run"
    assert main(["zoo", "train", entry.name, "--run", str(run), "--quiet"]) == 0
    assert read_records(run / "records.jsonl")[-1].total_interactions >= entry.interactions
    again, kept = (clipup.load_policy(path) for path in (run / "best-policy.safetensors", entry.path))
    assert again.parameters.tobytes() == kept.parameters.tobytes()


def test_the_settings_of_a_training_can_be_seen_and_are_those_it_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["zoo", "train", "CartPole-v1", "--dry-run"]) == 0
    (tmp_path / "seen.toml").write_text(capsys.readouterr().out)
    assert main(["zoo", "train", "CartPole-v1", "--run", str(tmp_path / "run"), "--quiet"]) == 0
    seen, made = (tomllib.loads((tmp_path / name).read_text()) for name in ("seen.toml", "run/config.toml"))
    assert seen == made


def test_the_robot_of_our_own_learns_alike_on_one_and_on_two_threads() -> None:
    settings = {key: value for key, value in trained_on("Stool").settings.items() if key not in ("population", "seed")}
    few = {**settings, "generations": 12, "population": 20, "evaluate_every": 0}
    one, two = (clipup.train(workers=workers, progress=False, **few) for workers in (1, 2))
    assert one.policy.parameters.tobytes() == two.policy.parameters.tobytes()
    means = [record.fitness_mean for record in one.records]
    assert means == [record.fitness_mean for record in two.records] and means[-1] > means[0]


def test_a_policy_with_a_task_of_the_zoo_s_own_plays(capsys: pytest.CaptureFixture[str]) -> None:
    entry = trained_on("CartPole-hidden-velocities")
    assert entry.imports == ("clipup.zoo.tasks.hidden_velocities",)
    assert main(["zoo", "play", entry.name, "--episodes", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mean"] > 400


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["dance"], "expected play or train, got 'dance'"),
        (["play"], "needs the name of a policy"),
        (["play", "CartPole"], "did you mean"),
        (["play", "CartPole-v1", "--max-seconds", "2"], "give -o FILE"),
        (["CartPole-v1"], "got 'CartPole-v1' (see: clipup zoo play CartPole-v1)"),
        (["--dry-run"], "--dry-run is a flag of clipup zoo train; clipup zoo list has no use for it"),
        (["play", "CartPole-v1", "--run", "x"], "--run is a flag of clipup zoo train"),
        (["train", "CartPole-v1", "--seed", "0"], "--seed is a flag of clipup zoo play; clipup zoo train has no use"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["zoo", *words]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("entry", catalog(), ids=lambda entry: entry.name)
def test_every_score_comes_out_again(entry: Trained) -> None:
    found = clipup.evaluate(entry.path, episodes=entry.episodes, seed=1, imports=entry.imports)
    if found.engine == "compiled":
        assert round(found.summary.mean, 3) == entry.score
    assert abs(found.summary.mean - entry.score) <= 3 * entry.standard_error + 1e-9
