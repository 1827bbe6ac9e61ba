"""The commands on a real run, from start to video."""

import gc
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import clipup as library
from clipup.cli.main import main

SOURCE = Path(__file__).parents[2] / "src"
QUICK = ["train", "CartPole-v1", "--preset", "none", "--population", 16, "--generations", 6, "--evaluation-episodes", 4]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A finished run."""
    path = tmp_path_factory.mktemp("runs") / "first"
    words = [sys.executable, "-m", "clipup", *map(str, QUICK), "--run", str(path), "--json"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=True)
    result = json.loads(done.stdout)
    assert result["state"] == "finished" and result["generation"] == 6 and result["episodes"] == 4
    assert "generation 5/6" in done.stderr  # progress stays off standard output
    return path


def test_a_run_leaves_everything_that_was_promised(run):
    names = {path.name for path in run.iterdir()}
    assert names == {
        "best-policy.safetensors", "checkpoints", "clock.jsonl", "config.toml", "lock", "policy.safetensors",
        "records.jsonl", "status.json",
    }  # fmt: skip
    lines = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    assert [line["generation"] for line in lines] == [1, 2, 3, 4, 5, 6, 6]  # the last is the final evaluation
    assert lines[4]["score"] is not None and lines[3]["score"] is None
    assert lines[-1]["total_interactions"] == sum(line["interactions"] for line in lines[:-1])
    assert not {"seconds", "steps_per_second"} & set(lines[0])
    clock = [json.loads(line) for line in (run / "clock.jsonl").read_text().splitlines()]
    assert [line["generation"] for line in clock] == [1, 2, 3, 4, 5, 6]


def test_the_environments_own_reward_is_evaluated_and_the_same_twice(clipup, run):
    first, second = (json.loads(clipup("evaluate", run, "--json", "--episodes", 5, "--seed", 3).stdout) for _ in "ab")
    assert first == second
    assert set(first) >= {"mean", "median", "min", "max", "standard_error", "episodes", "env", "returns"}
    assert first["episodes"] == 5 == len(first["returns"])
    assert first["mean"] == pytest.approx(np.mean(first["returns"]))
    assert first["standard_error"] == pytest.approx(np.std(first["returns"], ddof=1) / 5**0.5)
    plain = clipup("evaluate", run / "policy.safetensors", "--episodes", 5, "--seed", 3)
    assert f"mean {first['mean']:.2f}" in plain.stdout


def frames_of(path: Path) -> list[np.ndarray]:
    import imageio.v2 as imageio

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # its reader leaves pipes to ffmpeg open
        with imageio.get_reader(path) as reader:
            frames = [np.asarray(frame) for frame in reader]
        del reader
        gc.collect()
    return frames


def test_a_policy_is_exported_and_recorded(clipup, run, tmp_path):
    assert clipup("export", run, "-o", "copy.safetensors").returncode == 0
    assert (tmp_path / "copy.safetensors").read_bytes() == (run / "policy.safetensors").read_bytes()
    assert clipup("export", run, "-o", "policy.onnx", "--quiet").stdout == ""
    assert clipup("export", run, "-o", "policy.txt").returncode == 2

    evaluated = json.loads(clipup("evaluate", run, "--json", "--episodes", 2).stdout)["returns"]
    for name in ("video.mp4", "video.gif"):
        done = clipup("record", run, "-o", name, "--json", "--episodes", 2)
        assert done.returncode == 0, done.stderr
        described = json.loads(done.stdout)
        assert described["returns"] == evaluated  # the very episodes that evaluate runs
        frames = frames_of(tmp_path / name)
        assert 2 < len(frames) <= described["frames"]  # a gif holds equal frames once, for longer
        assert frames[0].std() > 5 and np.abs(frames[0].astype(int) - frames[-1]).max() > 50
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("copy.safetensors", "policy.onnx", "video.gif", "video.mp4"),
    ]


@pytest.mark.parametrize("name", ["video.mp4", "video.gif"])
def test_a_video_that_does_not_fit_is_one_line_and_leaves_nothing(run, tmp_path, name):
    words = f"ulimit -f 1 && exec {sys.executable} -m clipup record {run} -o {tmp_path / name}"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("clipup: ") and len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_runs_are_listed_damaged_ones_too(clipup, run, tmp_path):
    shutil.copytree(run, tmp_path / "runs" / "good")
    shutil.copytree(run, tmp_path / "runs" / "bad")
    (tmp_path / "runs" / "bad" / "config.toml").write_text("env = ")
    rows = json.loads(clipup("runs", "--json").stdout)["runs"]
    assert [row["state"] for row in rows] == ["damaged", "finished"]
    table = clipup("runs").stdout
    assert "CartPole-v1" in table and "6/6" in table and "not valid TOML" in table


def test_training_from_python_gives_the_policy(tmp_path):
    result = library.train("CartPole-v1", population=16, generations=6, evaluation_episodes=4)
    assert result.state == "finished" and result.path is None and len(result.records) == 6
    assert int(result.policy(np.zeros(4))) in (0, 1)
    kept = library.train("CartPole-v1", run=tmp_path / "run", population=16, generations=4, evaluation_episodes=4)
    assert library.load_policy(tmp_path / "run").parameters.tolist() == kept.policy.parameters.tolist()
    more = library.resume(tmp_path / "run", generations=6)
    assert more.records == result.records
    assert more.policy.parameters.tolist() == result.policy.parameters.tolist()
    with pytest.raises(ValueError, match="cannot change within a run"):
        library.resume(tmp_path / "run", max_speed=1.0)


def test_limits_of_every_kind_end_a_run(tmp_path):
    common = {"population": 8, "evaluate_every": 1, "evaluation_episodes": 2, "generations": 50}
    assert library.train("CartPole-v1", **common, target_score=1.0).generation == 1
    assert library.train("CartPole-v1", **common, total_interactions=1).generation == 1
    assert library.train("CartPole-v1", **common, time_limit=1e-6).generation == 1
    assert library.train("CartPole-v1", **{**common, "generations": 0}).score is None


def test_the_score_of_the_last_generation_is_known_and_recorded_even_off_schedule(tmp_path):
    result = library.train("CartPole-v1", population=8, generations=2, evaluate_every=0, evaluation_episodes=2)
    assert result.score is not None and [record.score for record in result.records] == [None, result.score]


def test_a_second_process_is_refused(start_clipup, tmp_path, capsys):
    process = start_clipup("train", "CartPole-v1", "--preset", "none", "--generations", 100_000, "--run", "busy")
    deadline = time.monotonic() + 60
    while not (tmp_path / "busy" / "policy.safetensors").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    for words, expected in ((["resume"], "working on this run"), (["train", "CartPole-v1", "--run"], "already exists")):
        assert main([*words, str(tmp_path / "busy")]) == 2
        errors = capsys.readouterr().err
        assert expected in errors and len(errors.splitlines()) == 1
    assert main(["runs", str(tmp_path / "busy"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["state"] == "running"
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143


def test_a_full_disk_is_reported_and_loses_nothing(clipup, tmp_path):
    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))  # records grow beyond it after a few generations

    command = [*QUICK, "--checkpoint-seconds", 0, "--generations", 20, "--quiet"]
    full = clipup(*command, "--run", "full", preexec_fn=small_files)
    assert full.returncode == 2, full.stderr
    assert len(full.stderr.splitlines()) == 1 and "cannot be written" in full.stderr
    assert clipup("resume", "full", "--quiet").returncode == 0
    clipup(*command, "--run", "whole")
    for name in ("records.jsonl", "policy.safetensors"):
        assert (tmp_path / "full" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_file_system_without_space_is_reported_and_loses_nothing(clipup, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("tmpfs cannot be mounted here")
    try:
        command = [*QUICK, "--checkpoint-seconds", 0, "--generations", 120, "--evaluate-every", 100, "--quiet"]
        full = clipup(*command, "--max-episode-steps", 5, "--population", 4, "--run", disk / "run")
        assert full.returncode == 2 and "No space left" in full.stderr and len(full.stderr.splitlines()) == 1
        subprocess.run(["mount", "-o", "remount,size=10m", disk], check=True)
        assert clipup("resume", disk / "run", "--quiet").returncode == 0
        clipup(*command, "--max-episode-steps", 5, "--population", 4, "--run", "whole")
        for name in ("records.jsonl", "policy.safetensors"):
            assert (disk / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_run_that_fails_ends_with_one_line_and_exit_code_1(misbehaving, tmp_path, capsys):
    words = ["train", "--population", "4", "--generations", "3", "--workers", "1", "--quiet"]
    fails = [misbehaving, "--env.how", "raise", "--env.above", "-1e9", "--run", str(tmp_path / "fails")]
    diverges = ["Pendulum-v1", "--fitness-shaping", "raw", "--fitness-scale", "1e300", "--optimizer", "ascent"]
    for more, words_of_error in ((fails, "failed for all 4 candidates"), (diverges, "leave the range of float32")):
        assert main([*words, *more, *(() if "--run" in more else ("--run", str(tmp_path / "diverges")))]) == 1
        errors = capsys.readouterr().err
        assert words_of_error in errors and len(errors.splitlines()) == 1, errors
        name = "fails" if more is fails else "diverges"
        assert json.loads((tmp_path / name / "status.json").read_text())["state"] == "failed"


def test_a_directory_that_cannot_be_written_is_reported(clipup, tmp_path):
    (tmp_path / "file").write_text("")
    for place in ("/proc/nowhere/run", "file/run"):
        done = clipup(*QUICK, "--run", place)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


@pytest.fixture
def read_only_source(tmp_path):
    """The source tree where nobody, root included, can write."""
    source = tmp_path / "source"
    if os.geteuid() == 0:
        source.mkdir()
        if subprocess.run(["mount", "--bind", SOURCE, source], capture_output=True, check=False).returncode:
            pytest.skip("nothing can be mounted here")
        subprocess.run(["mount", "-o", "remount,bind,ro", source], check=True)
        yield source
        subprocess.run(["umount", "--lazy", source], check=True)
        return
    shutil.copytree(SOURCE, source)
    for path in [source, *source.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield source


def test_works_without_home_terminal_and_with_a_read_only_source_tree(read_only_source, tmp_path):
    words = [sys.executable, "-m", "clipup", *map(str, QUICK), "--run", "run"]
    environment = {"PYTHONPATH": str(read_only_source), "PATH": "/usr/bin:/bin"}
    with pytest.raises(OSError, match=r"Read-only|denied"):
        (read_only_source / "file").write_text("")
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, start_new_session=True, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert any(line.startswith("finished (6 generations)") for line in done.stdout.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("number", range(25))
def test_commands_survive_damaged_files(clipup, run, tmp_path, number):
    """The command line on damaged files; the 200 corruptions themselves are tried in tests/unit."""
    import random

    generator = random.Random(number)
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    for path in [copy / "policy.safetensors", *(copy / "checkpoints").iterdir()]:
        data = bytearray(path.read_bytes())
        for _ in range(generator.randint(1, 5)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        path.write_bytes(data[: generator.randint(len(data) // 2, len(data))])
    for words in (["evaluate", copy], ["resume", copy, "--generations", 8], ["export", copy, "-o", "x.onnx"]):
        done = clipup(*words)
        assert done.returncode == 2 and "Traceback" not in done.stderr
        assert done.stderr.splitlines()[-1].startswith("clipup: ")


@pytest.mark.parametrize("name", ["clipup", "multiprocessing", "numpy"])
def test_nothing_is_imported_from_the_directory_that_one_is_in(run, tmp_path, name):
    (tmp_path / f"{name}.py").write_text(f"open('{tmp_path / 'ran'}', 'w')")
    start = [sys.executable, "-P", "-m", "clipup"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    training = [*map(str, QUICK), "--engine", "gymnasium", "--workers", "2", "--run", str(tmp_path / "run")]
    done = subprocess.run(
        [*start, *training], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    probe = "from clipup.engines.envpool import rendering; rendering.draws_elsewhere('Ant-v4')"
    subprocess.run([sys.executable, "-P", "-c", probe], cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert not (tmp_path / "ran").exists()


def test_more_generations_are_counted_from_those_that_were_made(clipup, start_clipup, tmp_path):
    words = [
        *QUICK,
        "--generations",
        "none",
        "--total-interactions",
        10**9,
        "--checkpoint-seconds",
        0,
        "--run",
        "endless",
    ]
    process = start_clipup(*words)
    while len(list((tmp_path / "endless" / "checkpoints").glob("*"))) < 3:
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert clipup("resume", "endless", "--generations", "+2", "--quiet").returncode == 0
