"""A run that was stopped in any way ends with the bytes of one that never was."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

KILLING = Path(__file__).with_name("killing.py")
SOURCE = str(Path(__file__).parents[2] / "src")

SMALL = [
    *("--population", 16, "--max-speed", 0.05, "--evaluate-every", 4, "--evaluation-episodes", 4),
    *("--checkpoint-seconds", 0, "--quiet"),
]
CART_POLE = [
    *("train", "CartPole-v1", *SMALL, "--population-max", 48, "--interactions", 900, "--seed", 5),
    *("--target-score", "none"),
]
HOPPER = ["train", "Hopper-v5", *SMALL, "--engine", "compiled", "--max-episode-steps", 60, "--population", 8]
SCHEDULE = (
    "population: piecewise 1, 2 at 20 generations; max_speed: cosine 1 to 0.2 over 30000 interactions; "
    "radius: linear 1 to 0.5 over 40 generations"
)
GYMNASIUM = [
    *(
        "train",
        "Pendulum-v1",
        *SMALL,
        "--engine",
        "gymnasium",
        "--workers",
        1,
        "--policy",
        "mlp:8",
        "--max-episode-steps",
        20,
    ),
    *("--population", 6, "--evaluate-every", 10, "--evaluation-episodes", 2),
]


def results(run: Path) -> dict[str, bytes]:
    """Everything of a run that may not depend on how it went."""
    names = ["records.jsonl", "policy.safetensors", "best-policy.safetensors"]
    newest = sorted((run / "checkpoints").iterdir())[-1]
    return {name: (run / name).read_bytes() for name in names} | {newest.name: newest.read_bytes()}


def kill_again_and_again(seed: int, kills: int, run: Path, first: list[object]) -> None:
    words = [sys.executable, str(KILLING), seed, kills, run, "--", *first]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, env=environment, timeout=560, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split()[-1] == str(kills), done.stdout


@pytest.mark.parametrize(
    ("command", "generations", "kills"),
    [
        (CART_POLE, 80, 22),
        ([*CART_POLE, "--engine", "envpool"], 25, 3),
        (HOPPER, 25, 4),
        (GYMNASIUM, 60, 10),
        ([*CART_POLE, "--search", "ars", "--top", 4, "--optimizer", "ascent", "--schedule", SCHEDULE], 50, 8),
        ([*CART_POLE, "--search", "cma-es"], 50, 8),
    ],
    ids=["compiled", "envpool", "mujoco", "gymnasium", "ars", "cma-es"],
)
def test_a_run_killed_at_random_instants_ends_with_the_bytes_of_one_never_stopped(
    clipup, tmp_path, command, generations, kills
):
    command = [*command, "--generations", generations]
    whole = clipup(*command, "--run", "whole")
    assert whole.returncode == 0, whole.stderr
    kill_again_and_again(generations, kills, tmp_path / "killed", [*command, "--run", tmp_path / "killed"])
    assert results(tmp_path / "killed") == results(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("workers", "kills"), [(["--workers", 2], 12), (["--workers", 2, "--cluster", "ray"], 5)], ids=["processes", "ray"]
)
def test_a_run_over_workers_killed_at_random_instants_ends_with_the_bytes_of_one_never_stopped(
    clipup, tmp_path, workers, kills
):
    command = [*GYMNASIUM, "--generations", 60]
    whole = clipup(*command, "--run", "whole")
    assert whole.returncode == 0, whole.stderr
    kill_again_and_again(1, kills, tmp_path / "killed", [*command, *workers, "--run", tmp_path / "killed"])
    assert results(tmp_path / "killed") == results(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_a_run_killed_sixty_times_ends_with_the_bytes_of_one_never_stopped(clipup, tmp_path, seed):
    command = [*CART_POLE, "--generations", 250]
    assert clipup(*command, "--run", "whole").returncode == 0
    kill_again_and_again(seed, 60, tmp_path / "killed", [*command, "--run", tmp_path / "killed"])
    assert results(tmp_path / "killed") == results(tmp_path / "whole")


def test_more_generations_give_the_same_bytes_as_asking_for_them_at_once(clipup, tmp_path):
    clipup(*CART_POLE, "--generations", 12, "--run", "whole")
    clipup(*CART_POLE, "--generations", 7, "--run", "parts")
    more = clipup("resume", "parts", "--generations", "+3", "--quiet")
    assert more.returncode == 0 and "10 generations" in more.stdout
    assert clipup("resume", "parts", "--generations", 12, "--quiet").returncode == 0
    assert results(tmp_path / "parts") == results(tmp_path / "whole")


def test_neither_threads_nor_the_checkpoint_interval_change_a_byte_and_the_configuration_repeats_a_run(
    clipup, tmp_path
):
    clipup(*CART_POLE, "--generations", 8, "--run", "one", "--workers", 1, "--checkpoint-seconds", 1000)
    clipup("train", "--config", "one/config.toml", "--run", "two", "--workers", 2, "--quiet")
    assert results(tmp_path / "one") == results(tmp_path / "two")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_run_within_seconds_and_it_resumes_to_the_same_bytes(
    clipup, start_clipup, tmp_path, number, code
):
    # One generation takes minutes: the signal must end it, not wait for it.
    command = ["train", "Pendulum-v1", "--engine", "gymnasium", "--population", 4000, "--generations", 5]
    process = start_clipup(*command, "--run", "long")
    wait_for(tmp_path / "long" / "status.json")
    time.sleep(1.0)
    begun = time.monotonic()
    process.send_signal(number)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == code, errors
    assert time.monotonic() - begun < 15
    assert output.splitlines()[-1].endswith("go on with: clipup resume long")
    assert "Traceback" not in errors

    command = [*CART_POLE, "--generations", 25]
    process = start_clipup(*command, "--run", "stopped")
    wait_for(tmp_path / "stopped" / "policy.safetensors")
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == code
    clipup(*command, "--run", "whole")
    assert clipup("resume", "stopped", "--quiet").returncode == 0
    assert results(tmp_path / "stopped") == results(tmp_path / "whole")


STUCK = """
import time
from clipup.cli import output
from clipup.cli.main import main

class Stuck:
    def begin(self, info): pass
    def message(self, text): pass
    def end(self, status): pass
    def generation(self, record, clock):
        if record.generation == 3:
            print("stuck", flush=True)
            time.sleep(100)  # a first Ctrl-C is noted, and waits for this

output.displays = lambda **_: [Stuck()]
from clipup.cli import running
running.displays = output.displays
import sys
raise SystemExit(main(sys.argv[1:]))
"""


def test_a_second_interrupt_stops_at_once_and_loses_nothing_but_a_generation(clipup, tmp_path):
    command = [*CART_POLE, "--generations", 25]
    words = [sys.executable, "-c", STUCK, *map(str, command), "--run", "stopped"]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    process = subprocess.Popen(
        words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "stuck\n"
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=1)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in errors and "all saved" not in output
    clipup(*command, "--run", "whole")
    assert clipup("resume", "stopped", "--quiet").returncode == 0
    assert results(tmp_path / "stopped") == results(tmp_path / "whole")


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A run of six generations, and what it would be after nine."""
    root = tmp_path_factory.mktemp("finished")
    for name, generations in (("six", 6), ("nine", 9)):
        command = [*CART_POLE, "--generations", generations, "--run", root / name]
        words = [sys.executable, "-m", "clipup", *map(str, command)]
        subprocess.run(words, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": SOURCE})
    return root


def damaged_copy(finished: Path, tmp_path: Path, generation: int, change) -> Path:
    run = tmp_path / "run"
    if not run.exists():
        shutil.copytree(finished / "six", run)
    path = run / "checkpoints" / f"generation-{generation:08d}.safetensors"
    path.write_bytes(change(bytearray(path.read_bytes())))
    return run


def flipped(data: bytearray) -> bytearray:
    data[len(data) // 3] ^= 0x10
    return data


def cut(data: bytearray) -> bytearray:
    return data[: len(data) // 2]


def emptied(data: bytearray) -> bytearray:
    return bytearray()


@pytest.mark.parametrize("change", [flipped, cut, emptied])
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_leads_to_the_same_bytes(
    clipup, finished, tmp_path, change
):
    run = damaged_copy(finished, tmp_path, 6, change)
    done = clipup("resume", run, "--generations", 9, "--quiet")
    assert done.returncode == 0
    assert "generation-00000006" in done.stderr and "trying the one before" in done.stderr
    assert results(run) == results(finished / "nine")


def snapshot(run: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != "lock"}


def test_when_no_checkpoint_is_usable_nothing_is_touched(clipup, finished, tmp_path):
    for generation in (4, 5, 6):
        run = damaged_copy(finished, tmp_path, generation, flipped)
    before = snapshot(run)
    done = clipup("resume", run, "--generations", 9)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("clipup: ") and "nothing was changed" in done.stderr
    assert "Traceback" not in done.stderr
    assert snapshot(run) == before


def test_a_checkpoint_of_a_newer_format_is_refused_and_nothing_is_touched(clipup, finished, tmp_path):
    from clipup.export.safetensors import decode, encode

    def newer(data: bytearray) -> bytes:
        file = decode(bytes(data))
        return encode(file.tensors, {**file.metadata, "version": "99"})

    run = damaged_copy(finished, tmp_path, 6, newer)
    before = snapshot(run)
    done = clipup("resume", run, "--generations", 9)
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and "version 99" in done.stderr
    assert snapshot(run) == before


def test_records_that_lost_lines_make_an_older_checkpoint_be_used(clipup, finished, tmp_path):
    run = damaged_copy(finished, tmp_path, 6, bytes)
    records = run / "records.jsonl"
    lines = records.read_bytes().splitlines(keepends=True)
    records.write_bytes(b"".join(lines[:5]) + lines[5][:40])
    done = clipup("resume", run, "--generations", 9, "--quiet")
    assert done.returncode == 0 and "records" in done.stderr
    assert results(run) == results(finished / "nine")


def changed_digit(lines: list[bytes], number: int) -> list[bytes]:
    digit = lines[number].replace(b'"speed": 0.', b'"speed": 1.', 1)
    assert digit != lines[number]
    return [*lines[:number], digit, *lines[number + 1 :]]


def zeros(lines: list[bytes], number: int) -> list[bytes]:
    return [*lines[:number], bytes(len(lines[number]) - 1) + b"\n", *lines[number + 1 :]]


def swapped(lines: list[bytes], number: int) -> list[bytes]:
    return [*lines[: number - 1], lines[number], lines[number - 1], *lines[number + 1 :]]


@pytest.mark.parametrize("damage", [changed_digit, zeros, swapped])
def test_records_that_were_changed_are_noticed_first_and_an_older_checkpoint_leads_to_the_same_bytes(
    clipup, finished, tmp_path, damage
):
    run = Path(shutil.copytree(finished / "six", tmp_path / "run"))
    lines = (run / "records.jsonl").read_bytes().splitlines(keepends=True)
    (run / "records.jsonl").write_bytes(b"".join(damage(lines, 5)))
    done = clipup("resume", run, "--generations", 9, "--quiet")
    assert done.returncode == 0, done.stderr
    assert "the records of its 6 generations were changed in records.jsonl" in done.stderr
    assert results(run) == results(finished / "nine")


@pytest.mark.parametrize("number", [0, 2])
def test_records_that_no_checkpoint_finds_whole_are_refused_before_anything_is_changed(
    clipup, finished, tmp_path, number
):
    run = Path(shutil.copytree(finished / "six", tmp_path / "run"))
    lines = (run / "records.jsonl").read_bytes().splitlines(keepends=True)
    (run / "records.jsonl").write_bytes(b"".join(changed_digit(lines, number)))
    before = snapshot(run)
    done = clipup("resume", run, "--generations", 9)
    assert done.returncode == 2 and "nothing was changed" in done.stderr and snapshot(run) == before


def test_a_checkpoint_of_an_older_version_without_a_digest_still_resumes_to_the_same_records(
    clipup, finished, tmp_path
):
    import json

    from clipup.export.safetensors import decode, encode

    run = Path(shutil.copytree(finished / "six", tmp_path / "run"))
    for path in (run / "checkpoints").iterdir():
        file = decode(path.read_bytes())
        state = json.loads(file.metadata["state"])
        del state["counters"]["records_sha256"]
        path.write_bytes(encode(file.tensors, {**file.metadata, "state": json.dumps(state, sort_keys=True)}))
    assert clipup("resume", run, "--generations", 9, "--quiet").returncode == 0
    assert results(run) == results(finished / "nine")


def test_a_clock_that_was_changed_is_named_and_stops_nothing(clipup, finished, tmp_path):
    run = Path(shutil.copytree(finished / "six", tmp_path / "run"))
    lines = (run / "clock.jsonl").read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"seconds": ', b'"seconds": 9')
    (run / "clock.jsonl").write_bytes(b"".join(lines))
    done = clipup("resume", run, "--generations", 9, "--quiet")
    assert done.returncode == 0 and "clock.jsonl: line 3: it, or one before it, was changed" in done.stderr
    assert results(run) == results(finished / "nine")


def test_records_removed_while_a_run_goes_on_are_written_again(clipup, start_clipup, tmp_path):
    command = [*CART_POLE, "--generations", 60]
    process = start_clipup(*command, "--run", "robbed")
    wait_for(tmp_path / "robbed" / "policy.safetensors")
    (tmp_path / "robbed" / "records.jsonl").unlink()
    (tmp_path / "robbed" / "lock").unlink()
    second = clipup("resume", "robbed")
    if process.poll() is None:
        assert second.returncode == 2 and "is working on this run" in second.stderr
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0 and "was removed or replaced while the run goes on" in errors, errors
    clipup(*command, "--run", "whole")
    assert results(tmp_path / "robbed") == results(tmp_path / "whole")


def test_records_cut_while_a_run_goes_on_end_it_at_the_next_write(start_clipup, tmp_path):
    process = start_clipup(*CART_POLE, "--generations", 4000, "--run", "cut")
    wait_for(tmp_path / "cut" / "policy.safetensors")
    os.truncate(tmp_path / "cut" / "records.jsonl", 10)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2 and "it was changed" in errors and "Traceback" not in errors, errors


def wait_for(path: Path, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.02)
