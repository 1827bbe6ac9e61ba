import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from clipup.errors import FileFault, RunBusy, RunExists
from clipup.runs.config import RunConfig
from clipup.runs.rundir import RunDirectory, Status, find_runs, is_run, next_free, runs_below

CONFIG = RunConfig(env="CartPole-v1", generations=3)


def test_a_new_run_holds_its_configuration(tmp_path):
    run = RunDirectory(tmp_path / "deep" / "run")
    run.create(CONFIG)
    run.close()
    assert run.read_config() == CONFIG
    head = run.config_path.read_text().splitlines()[:2]
    assert head[0].endswith(f"Repeat it: clipup train --config {run.config_path} --run NEW")
    assert re.match(r"# Made with clipup \S+, .*numpy \S+\.$", head[1])


def test_an_existing_run_or_any_other_content_is_refused_and_left_alone(tmp_path):
    first = RunDirectory(tmp_path / "run")
    first.create(CONFIG)
    first.close()
    with pytest.raises(RunExists, match="clipup resume"):
        RunDirectory(tmp_path / "run").create(CONFIG)
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("precious")
    with pytest.raises(RunExists, match="not a run's"):
        RunDirectory(other).create(CONFIG)
    assert [entry.name for entry in other.iterdir()] == ["thesis.txt"]
    with pytest.raises(RunExists, match="not a directory"):
        RunDirectory(other / "thesis.txt").create(CONFIG)
    with pytest.raises((RunExists, FileFault)):
        RunDirectory(other / "thesis.txt" / "run").create(CONFIG)


DIES = """
import os, sys
from clipup.runs.config import RunConfig
from clipup.runs.rundir import RunDirectory

left = int(sys.argv[2])

def die(event, arguments):
    global left
    if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.listdir", "os.scandir"):
        left -= 1
        if left == 0:
            os._exit(9)

sys.addaudithook(die)
RunDirectory(sys.argv[1]).create(RunConfig(env="CartPole-v1", generations=3))
os._exit(0)
"""


def _create_and_die(path: Path, step: int) -> bool:
    """Create a run in a process that ends at its `step`-th touch of the file system; whether it got so far."""
    return subprocess.run([sys.executable, "-c", DIES, path, str(step)], check=False).returncode == 9


def test_killed_at_any_step_of_its_making_a_run_can_be_made_or_opened(tmp_path):
    made = opened = step = 0
    while _create_and_die(tmp_path / f"{step}", step + 1):
        run = RunDirectory(tmp_path / f"{step}")
        if run.config_path.is_file():
            run.open()
            opened += 1
        else:
            run.create(CONFIG)
            made += 1
        run.close()
        assert run.read_config() == CONFIG and run.checkpoints_path.is_dir()
        step += 1
    assert made > 3 and opened > 0


def test_what_a_kill_left_before_the_configuration_was_written_is_no_obstacle(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    (path / "lock").write_text("123\n")
    (path / "config.toml.partial").write_text("env =")
    run = RunDirectory(path)
    run.create(CONFIG)
    run.close()
    assert run.read_config() == CONFIG


def test_a_second_process_is_refused_until_the_first_lets_go(tmp_path):
    first, second = RunDirectory(tmp_path / "run"), RunDirectory(tmp_path / "run")
    first.create(CONFIG)
    assert second.is_busy()
    with pytest.raises(RunBusy, match=str(os.getpid())):
        second.open()
    first.close()
    assert not second.is_busy()
    second.open()
    second.close()


def test_the_state_of_a_run_is_told_truly(tmp_path):
    run = RunDirectory(tmp_path / "run")
    run.create(CONFIG)
    run.write_status(Status("running", generation=2, engine="compiled", arithmetic_changed_at=1))
    assert RunDirectory(tmp_path / "run").read_status().state == "running"
    run.close()
    assert run.read_status() == Status(
        "killed", "stopped without a word", generation=2, engine="compiled", arithmetic_changed_at=1
    )
    run.open()
    run.write_status(Status("finished", "3 generations", 3, 100, 5.0))
    run.close()
    assert run.read_status() == Status("finished", "3 generations", 3, 100, 5.0)
    run.status_path.write_bytes(b"\xff{{{")
    assert run.read_status().state == "unknown"


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(FileFault, match="no such run"):
        RunDirectory(tmp_path / "missing").open()
    with pytest.raises(FileFault, match=r"no config\.toml"):
        RunDirectory(tmp_path).open()
    (tmp_path / "config.toml").write_text('env = "A"\nmax_sped = 3\n')
    with pytest.raises(FileFault, match="max_speed"):
        RunDirectory(tmp_path).read_config()


def test_a_status_of_wrong_types_is_read_as_far_as_it_goes(tmp_path):
    run = RunDirectory(tmp_path)
    for text, status, problems in (
        (None, Status("unknown"), []),
        ("[]", Status("unknown"), ["status.json: cannot be read"]),
        ('{"generation": 3}', Status("unknown"), ["status.json: cannot be read"]),
        ('{"state": "finished", "score": "12", "reason": NaN, "later": 1}', Status("finished"), [
            "status.json: reason, score cannot be read"]),
        ('{"state": "failed", "score": 1%s, "generation": 2.5}' % ("0" * 400), Status("failed"), [
            "status.json: generation, score cannot be read"]),
    ):  # fmt: skip
        if text is not None:
            run.status_path.write_text(text)
        found: list[str] = []
        assert run.read_status(found) == status and found == problems
    run.status_path.unlink()
    run.status_path.symlink_to("/etc/passwd")
    os.mkfifo(run.lock_path)
    found = []
    assert run.read_status(found).state == "unknown" and [text.partition(":")[0] for text in found] == [
        "status.json",
        "lock",
    ]


def test_runs_are_found_in_a_directory_and_below_it_but_not_through_links(tmp_path):
    one, two, begun = tmp_path / "a" / "one", tmp_path / "a" / "deep" / "two", tmp_path / "begun"
    for path in (one, two, begun):
        run = RunDirectory(path)
        run.create(CONFIG)
        run.close()
    (one / "records.jsonl").touch()
    (two / "config.toml").rename(two / "records.jsonl")
    (tmp_path / "a" / "config.toml").write_text("stray = true\n")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "config.toml").touch()
    assert [is_run(path) for path in (one, two, begun, tmp_path)] == [True, True, True, False]
    assert runs_below(tmp_path) == [two, one, begun]
    assert runs_below(one) == [one] and runs_below(tmp_path / "missing") == []
    assert find_runs([one, tmp_path / "a", tmp_path / "missing"]) == [one, two, tmp_path / "missing"]


def test_runs_are_numbered_and_named_by_their_task(tmp_path):
    assert next_free(tmp_path / "runs", "Walker2d-v4").name == "Walker2d-v4-1"
    (tmp_path / "Walker2d-v4-1").mkdir()
    assert next_free(tmp_path, "Walker2d-v4").name == "Walker2d-v4-2"
    assert next_free(tmp_path, "my.module:Odd/Env-v0").name == "Odd-Env-v0-1"
    assert next_free(tmp_path, "../..").name == "run-1"


@pytest.mark.parametrize(
    "name", ["\x1b[2J", "a\nb", "\x7f", "\x85", "\udcff", "\u202e", "# env = 1", "a\rb", "\x0c", '"']
)
def test_whatever_a_directory_is_called_its_configuration_can_be_read(tmp_path, name):
    run = RunDirectory(tmp_path / name)
    run.create(RunConfig(env="A"))
    run.close()
    assert RunDirectory(tmp_path / name).read_config() == RunConfig(env="A")
