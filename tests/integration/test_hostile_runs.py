"""Run directories from someone else: every reading command, `resume` too, over hundreds of hostile ones.

A case is a seed. It takes a sound run and changes one to three things in it: links, pipes, forged numbers, deep and
huge files. Each command has a limit of time and of memory. None may show a traceback, hang, or change anything outside
the run. Commands run in forked children of one process that imported everything, so that a case takes milliseconds.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import resource
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from clipup.cli.main import main
from clipup.export.safetensors import decode, encode

FILES = (
    "config.toml", "records.jsonl", "clock.jsonl", "status.json", "lock", "policy.safetensors",
    "best-policy.safetensors", "checkpoints/generation-00000003.safetensors",
    "checkpoints/generation-00000002.safetensors",
)  # fmt: skip
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\u2066"
NUMBERS = ("1" + "0" * 400, "-1", "1e999", "NaN", "9223372036854775808", "1.5", "true", "null", '"text"', "[]", "{}")

Change = Callable[[Path, Path, random.Random], str]


def replaced(path: Path) -> Path:
    """Remove what is at a path, so that something else can take its place."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def some_file(run: Path, generator: random.Random) -> Path:
    return run / generator.choice(FILES)


def link_to_victim(run: Path, victim: Path, generator: random.Random) -> str:
    path = replaced(some_file(run, generator))
    path.symlink_to(
        generator.choice([victim / "precious.txt", victim / "missing", Path("/dev/zero"), Path("/dev/null")])
    )
    return f"{path.name} is a link to {path.readlink()}"


def hard_link_to_victim(run: Path, victim: Path, generator: random.Random) -> str:
    names = [*FILES, "policy.safetensors.partial", "config.toml.partial", "status.json.partial"]
    path = replaced(run / generator.choice(names))
    os.link(victim / "precious.txt", path)
    return f"{path.name} is a hard link to the victim"


def linked_directory(run: Path, victim: Path, generator: random.Random) -> str:
    path = replaced(run / generator.choice(["checkpoints", "tensorboard"]))
    path.symlink_to(victim)
    return f"{path.name} is a link to the victim's directory"


def pipe(run: Path, victim: Path, generator: random.Random) -> str:
    path = replaced(some_file(run, generator))
    os.mkfifo(path)
    return f"{path.name} is a pipe"


def unix_socket(run: Path, victim: Path, generator: random.Random) -> str:
    path = replaced(some_file(run, generator))
    where = Path.cwd()
    os.chdir(path.parent)  # the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(where)
    return f"{path.name} is a socket"


def directory_instead(run: Path, victim: Path, generator: random.Random) -> str:
    path = replaced(some_file(run, generator))
    path.mkdir()
    return f"{path.name} is a directory"


def huge(run: Path, victim: Path, generator: random.Random) -> str:
    path = replaced(some_file(run, generator))
    path.touch()
    os.truncate(path, generator.choice([2**21, 2**30, 2**36, 2**40]))
    return f"{path.name} claims {path.stat().st_size} bytes"


def deep(run: Path, victim: Path, generator: random.Random) -> str:
    path = replaced(some_file(run, generator))
    count = generator.choice([10, 900, 30_000])
    text = ("a = " if path.suffix == ".toml" else '{"state": ') + "[" * count + "]" * count
    path.write_text(text + ("\n" if path.suffix == ".toml" else "}\n"))
    return f"{path.name} is {count} deep"


def forged_number(run: Path, victim: Path, generator: random.Random) -> str:
    name = generator.choice(["records.jsonl", "clock.jsonl", "status.json"])
    if not (run / name).is_file():
        return "nothing"
    lines = (run / name).read_text("utf-8", "replace").splitlines()
    place = generator.randrange(len(lines)) if lines else 0
    if not lines:
        return "nothing"
    try:
        key = generator.choice(list(json.loads(lines[place])))
        values = json.loads(lines[place])
    except ValueError:
        return "nothing"
    number = generator.choice(NUMBERS)
    values[key] = "@@"
    lines[place] = json.dumps(values).replace('"@@"', number)
    replaced(run / name).write_text("\n".join(lines) + "\n")
    return f"{name}: {key} is {number[:20]}"


def forged_setting(run: Path, victim: Path, generator: random.Random) -> str:
    path = run / "config.toml"
    if not path.is_file() or path.is_symlink():
        return "nothing"
    added = generator.choice([
        'wandb = "x"', 'mlflow = "http://192.0.2.1:1/"', "workers = 100000", 'cluster = "ray://192.0.2.1:10001"',
        "tensorboard = true", 'env = "os:Evil-v0"', 'env = "pybullet_envs_gymnasium:HopperBulletEnv-v0"',
        f'env = {json.dumps("A" + ESCAPES)}', "seed = 1" + "0" * 400, "max_speed = nan", "policy = 'mlp:1,1,1'",
        "checkpoint_seconds = -1", 'env = "GymV26Environment-v0"', "generations = 9" + "9" * 30, "zero = \"\\u0000\"",
    ])  # fmt: skip
    name = added.partition(" ")[0]
    kept = [line for line in path.read_text("utf-8", "replace").splitlines() if not line.startswith(f"{name} =")]
    head = [line for line in kept if not line.startswith("[")]
    replaced(path).write_text("\n".join([*head[:3], added, *head[3:]]) + "\n")
    return f"config.toml: {added[:40]!r}"


def forged_tensors(run: Path, victim: Path, generator: random.Random) -> str:
    path = run / generator.choice([name for name in FILES if name.endswith(".safetensors")])
    if not path.is_file() or path.is_symlink():
        return "nothing"
    try:
        file = decode(path.read_bytes())
    except ValueError:
        return "nothing"
    tensors, metadata = dict(file.tensors), dict(file.metadata)
    kind = generator.randrange(5)
    if kind == 0:
        name = generator.choice(sorted(tensors))
        tensors[name] = np.full((2, 2), generator.choice([0.0, np.nan, np.inf]))
    elif kind == 1:
        tensors["counters.settings"] = np.zeros(3)
    elif kind == 2:
        name = generator.choice(sorted(metadata))
        metadata[name] = generator.choice([*NUMBERS, ESCAPES, "[" * 900 + "]" * 900, ""])
    elif kind == 3 and "state" in metadata:
        state = json.loads(metadata["state"])
        part = generator.choice([part for part in state if state[part]] or ["search"])
        if state[part]:
            state[part][generator.choice(sorted(state[part]))] = generator.choice([2**63, -1, 2**70, [], {}, ESCAPES])
        metadata["state"] = json.dumps(state)
    else:
        metadata["generation"] = generator.choice(["7", "-1", "9" * 100, ESCAPES])
    replaced(path).write_bytes(encode(tensors, metadata))
    return f"{path.name} is forged ({kind})"


def garbage(run: Path, victim: Path, generator: random.Random) -> str:
    path = some_file(run, generator)
    data = bytearray(path.read_bytes()) if path.is_file() and not path.is_symlink() else bytearray(b"x" * 100)
    for _ in range(generator.choice([1, 3, 50])):
        place = generator.randrange(max(1, len(data)))
        data[place : place + 1] = generator.choice([b"", b"\0", b"\xff", b'"', b"{", b"\n", generator.randbytes(9)])
    replaced(path).write_bytes(bytes(data))
    return f"{path.name} is garbled"


def strange_name(run: Path, victim: Path, generator: random.Random) -> str:
    name = generator.choice([
        "checkpoints/generation-99999999999999999999.safetensors", "checkpoints/generation-0000000９.safetensors",
        f"checkpoints/{ESCAPES}", "journal.log", "config.base.toml", "checkpoints/generation-00000009.safetensors",
    ])  # fmt: skip
    replaced(run / name).write_text(ESCAPES)
    return f"there is a {name!r}"


CHANGES: tuple[Change, ...] = (
    link_to_victim, hard_link_to_victim, linked_directory, pipe, unix_socket, directory_instead, huge, deep,
    forged_number, forged_setting, forged_tensors, garbage, strange_name,
)  # fmt: skip


def make_victim(path: Path) -> None:
    """A tree that nothing may change."""
    path.mkdir()
    (path / "precious.txt").write_text("precious\n")
    for number in range(3):
        (path / f"generation-0000000{number}.safetensors").write_bytes(b"also precious")
    (path / "left.partial").write_bytes(b"someone else's")


def make_hostile(sound: Path, run: Path, victim: Path, seed: int) -> str:
    """Make a hostile copy of the sound run at `run`; return what is wrong with it."""
    generator = random.Random(seed)
    shutil.copytree(sound, run)
    count = generator.choice([1, 1, 2, 3])
    # Each kind of change comes first in its turn, so that every kind is tried.
    chosen = [CHANGES[seed % len(CHANGES)], *generator.sample(CHANGES, count - 1)]
    return "; ".join(change(run, victim, generator) for change in chosen)


def manifest(path: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Everything about a tree that a change would show in: names, kinds, times and content."""
    found = {}
    for entry in sorted([path, *path.rglob("*")]):
        state = entry.lstat()
        content = entry.read_bytes() if entry.is_file() else b""
        found[str(entry.relative_to(path))] = (state.st_mode, state.st_ino, state.st_mtime_ns, content)
    return found


# -- the commands ------------------------------------------------------------------------------------------------------

SECONDS = 60
MEMORY = 2 * 1024**3
"""Besides what the test process has already."""
READING = (
    ("runs", "{root}"),
    ("runs", "{root}", "--json"),
    ("diagnose", "{run}"),
    ("report", "{root}", "-o", "{out}/page.html", "--quiet"),
    ("evaluate", "{run}", "--episodes", "1", "--workers", "1"),
    ("evaluate", "{run}", "--best", "--episodes", "1", "--workers", "1"),
    ("export", "{run}", "-o", "{out}/policy.safetensors"),
    ("train", "--config", "{run}/config.toml", "--dry-run"),
    ("resume", "{run}", "--generations", "4", "--quiet"),
)
EXPECTED = {0, 1, 2}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "run"
    words = ["train", "CartPole-v1", "--population", "8", "--generations", "3", "--evaluate-every", "1", "--quiet",
             "--evaluation-episodes", "2", "--workers", "1", "--checkpoint-seconds", "0", "--max-episode-steps", "20",
             "--engine", "gymnasium", "--run", str(path)]  # fmt: skip
    assert main(words) == 0
    return path


def in_child(words: list[str], output: Path) -> int:
    """Run a command in a fork of this process, with limits; return its exit code, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            faulthandler.disable()
            sink = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(sink, 1)
            os.dup2(sink, 2)
            sys.stdout = os.fdopen(1, "w", closefd=False)
            sys.stderr = os.fdopen(2, "w", closefd=False)
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
            code = main(words)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    deadline = time.monotonic() + SECONDS
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -signal.SIGKILL
        time.sleep(0.005)


def attack(sound: Path, root: Path, seed: int) -> None:
    root.mkdir()
    victim, runs, out = root / "victim", root / "runs", root / "out"
    make_victim(victim)
    runs.mkdir()
    out.mkdir()
    wrong = make_hostile(sound, runs / "hostile", victim, seed)
    before = manifest(victim)
    for command in READING:
        words = [word.format(root=runs, run=runs / "hostile", out=out) for word in command]
        code = in_child(words, root / "output")
        shown = (root / "output").read_text("utf-8", "replace")
        about = f"seed {seed} ({wrong}): clipup {' '.join(words)} ended with {code}:\n{shown[-2000:]}"
        assert code in EXPECTED, about
        assert "Traceback" not in shown, about
        assert "\x1b" not in shown and "\x9b" not in shown and "\u202e" not in shown, about
        assert code != 2 or len(shown.splitlines()) <= 6, about
        assert manifest(victim) == before, about


@pytest.mark.parametrize("block", range(4))
def test_no_hostile_run_is_followed_waited_for_or_shown_raw(sound: Path, tmp_path: Path, block: int) -> None:
    for seed in range(block * 26, block * 26 + 26):  # twice each kind of change
        attack(sound, tmp_path / str(seed), seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(40))
def test_no_hostile_run_among_a_thousand_is_followed_waited_for_or_shown_raw(
    sound: Path, tmp_path: Path, block: int
) -> None:
    for seed in range(1000 + block * 26, 1000 + block * 26 + 26):
        attack(sound, tmp_path / str(seed), seed)


def test_one_bad_run_never_hides_the_others(sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_victim(tmp_path / "victim")
    runs = tmp_path / "runs"
    runs.mkdir()
    shutil.copytree(sound, runs / "sound")
    for seed in range(40):
        make_hostile(sound, runs / f"hostile-{seed}", tmp_path / "victim", seed)
    assert main(["runs", str(runs)]) == 0
    shown = capsys.readouterr().out
    assert next(line for line in shown.splitlines() if "runs/sound " in line).endswith("finished")
    assert sum("hostile-" in line for line in shown.splitlines()) >= 35
    assert main(["report", str(runs), "-o", str(tmp_path / "page.html"), "--quiet"]) == 0
    assert main(["diagnose", str(runs), "--json"]) == 0
