"""Files from someone else: every command that reads any, over hundreds of hostile directories.

A case is a seed. It takes a sound run, runs of several seeds, a search of ``clipup tune`` or a reproduction, and
changes one to three things in it: links, pipes, forged numbers, crafted journals, deep and huge files. Each command has
a limit of time and of memory. None may show a traceback, hang, or change anything outside. Commands run in forked
children of one process that imported everything, so that a case takes milliseconds.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from clipup.cli.main import main
from clipup.cli.registry import COMMANDS
from clipup.export.policy import encode_policy, policy_file, read_policy
from clipup.export.safetensors import decode, encode
from clipup.runs.rundir import RunDirectory
from clipup.runs.seeds import Seeds, SeedsDirectory

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
    if not path.parent.is_dir():  # an earlier change may have put anything there
        replaced(path.parent).mkdir()
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    return path


def some_file(run: Path, generator: random.Random) -> Path:
    """One of the files of a run, there or not; of another directory, one that is there."""
    if (run / "checkpoints").exists():
        return run / generator.choice(FILES)
    return generator.choice(sorted(path for path in run.rglob("*") if path.is_file() or path.is_symlink()))


def some_like(run: Path, generator: random.Random, *patterns: str) -> Path | None:
    """A regular file whose name fits, anywhere below."""
    found = [path for pattern in patterns for path in sorted(run.rglob(pattern))]
    found = [path for path in found if is_small(path)]
    return generator.choice(found) if found else None


def is_small(path: Path) -> bool:
    """Whether it is a regular file that no change before made huge."""
    return path.is_file() and not path.is_symlink() and path.stat().st_size < 2**23


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
    found = [path.relative_to(run).as_posix() for path in sorted(run.rglob("*")) if path.is_dir()]
    path = run / generator.choice([*found, "checkpoints", "tensorboard", "trials", "policies"])
    target = victim / generator.choice([".", "empty", "missing", "moved"])
    if target.name == "moved" and path.is_dir() and not path.is_symlink() and not target.exists():
        shutil.move(path, target)  # what was sound stays so, outside
    replaced(path).symlink_to(target)
    return f"{path.name} is a link to {target}"


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


def many_lines(run: Path, victim: Path, generator: random.Random) -> str:
    path = some_like(run, generator, "*.jsonl", "journal.log", "lock") or some_file(run, generator)
    line = generator.choice([b"\n", b"{}\n", b"[]\n", b'{"generation": 1}\n', b'"\\u001b[2J"\n', b"0\n"])
    replaced(path).write_bytes(line * (2**19 // len(line)))
    return f"{path.name} is many times {line!r}"


def deep(run: Path, victim: Path, generator: random.Random) -> str:
    path = replaced(some_file(run, generator))
    count = generator.choice([10, 900, 30_000])
    text = ("a = " if path.suffix == ".toml" else '{"state": ') + "[" * count + "]" * count
    path.write_text(text + ("\n" if path.suffix == ".toml" else "}\n"))
    return f"{path.name} is {count} deep"


def forged_number(run: Path, victim: Path, generator: random.Random) -> str:
    path = some_like(run, generator, "*.jsonl", "status.json", "journal.log", "fitness-scale.json")
    lines = path.read_text("utf-8", "replace").splitlines() if path is not None else []
    if path is None or not lines:
        return "nothing"
    place = generator.randrange(len(lines)) if path.suffix != ".json" else 0
    try:
        values = whole = json.loads(lines[place] if path.suffix != ".json" else path.read_text())
        while generator.random() < 0.7 and isinstance(below := generator.choice(list(values.values())), dict) and below:
            values = below
        key = generator.choice(list(values))
    except (ValueError, TypeError, AttributeError, IndexError):
        return "nothing"
    number = generator.choice(NUMBERS)
    values[key] = "@@"
    lines[place] = json.dumps(whole).replace('"@@"', number)
    replaced(path).write_text("\n".join(lines if path.suffix != ".json" else lines[:1]) + "\n")
    return f"{path.name}: {key} is {number[:20]}"


def crafted_journal(run: Path, victim: Path, generator: random.Random) -> str:
    """Entries of an Optuna journal that no search wrote: of other trials, studies, kinds and types."""
    path = some_like(run, generator, "journal.log")
    if path is None:
        return forged_number(run, victim, generator)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for _ in range(generator.choice([1, 2, 5])):
        entry = dict(generator.choice(lines))
        for key in generator.sample(sorted(entry), generator.randint(0, min(2, len(entry)))):
            entry[key] = generator.choice([-1, 99, 2**62, 1.5, None, "x", [], {}, True, "NaN", ESCAPES])
        if generator.random() < 0.3:
            entry.pop(generator.choice(sorted(entry)))
        if generator.random() < 0.5:
            entry["op_code"] = generator.randint(-1, 12)
        lines.insert(generator.randint(0, len(lines)), entry)
    if generator.random() < 0.3:
        del lines[generator.randrange(len(lines))]
    replaced(path).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return "a crafted journal.log"


def forged_setting(run: Path, victim: Path, generator: random.Random) -> str:
    path = some_like(run, generator, "config.toml", "config.base.toml", "best.toml", "seeds.toml")
    if path is None:
        return "nothing"
    added = generator.choice([
        'wandb = "x"', 'mlflow = "http://192.0.2.1:1/"', "workers = 100000", 'cluster = "ray://192.0.2.1:10001"',
        "tensorboard = true", 'env = "os:Evil-v0"', 'env = "pybullet_envs_gymnasium:HopperBulletEnv-v0"',
        f'env = {json.dumps("A" + ESCAPES)}', "seed = 1" + "0" * 400, "max_speed = nan", "policy = 'mlp:1,1,1'",
        "checkpoint_seconds = -1", 'env = "GymV26Environment-v0"', "generations = 9" + "9" * 30, "zero = \"\\u0000\"",
        'env = "CartPole-v1\\u0000"', 'policy = "\\u0000"', 'schedule = "\\u0000"', 'init = "\\u0000"',
        'policy = "this:Evil"', 'wrapper = "this:Evil"', 'env = "this:Evil"', 'init = "/etc/passwd"',
        'cluster = "\\u0000"', "population = 9223372036854775808", "mixed_arithmetic = 2",
    ])  # fmt: skip
    name = added.partition(" ")[0]
    kept = [line for line in path.read_text("utf-8", "replace").splitlines() if not line.startswith(f"{name} =")]
    head = [line for line in kept if not line.startswith("[")]
    replaced(path).write_text("\n".join([*head[:3], added, *head[3:]]) + "\n")
    return f"{path.name}: {added[:40]!r}"


def forged_tensors(run: Path, victim: Path, generator: random.Random) -> str:
    path = some_like(run, generator, "*.safetensors")
    if path is None:
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
        metadata[name] = generator.choice([*NUMBERS, ESCAPES, "[" * 900 + "]" * 900, "", "\0"])
    elif kind == 3 and "state" in metadata:
        state = json.loads(metadata["state"])
        part = generator.choice([part for part in state if state[part]] or ["search"])
        if state[part]:
            values = [2**63, 2**64, -1, 2**70, [], {}, ESCAPES, "\0", 10**19]
            state[part][generator.choice(sorted(state[part]))] = generator.choice(values)
        metadata["state"] = json.dumps(state)
    else:
        metadata["generation"] = generator.choice(["7", "-1", "9" * 100, ESCAPES, "9223372036854775808"])
    replaced(path).write_bytes(encode(tensors, metadata))
    return f"{path.name} is forged ({kind})"


def garbage(run: Path, victim: Path, generator: random.Random) -> str:
    path = some_file(run, generator)
    data = bytearray(path.read_bytes()) if is_small(path) else bytearray(b"x" * 100)
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
    link_to_victim, hard_link_to_victim, linked_directory, pipe, unix_socket, directory_instead, huge, many_lines, deep,
    forged_number, forged_setting, forged_tensors, garbage, strange_name, crafted_journal,
)  # fmt: skip


def make_victim(path: Path) -> None:
    """A tree that nothing may change."""
    path.mkdir()
    (path / "precious.txt").write_text("precious\n")
    for number in range(3):
        (path / f"generation-0000000{number}.safetensors").write_bytes(b"also precious")
    (path / "empty").mkdir()
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

TUNE = ["tune", "CartPole-v1", "--generations", "2", "--population", "4", "--evaluation-episodes", "1", "--points", "3",
        "--budget", "4", "--low", "0.1", "--high", "3", "--policy", "mlp:2", "--max-episode-steps", "20",
        "--engine", "gymnasium", "--workers", "1", "--also", "radius_factor"]  # fmt: skip
REPRODUCE = ["reproduce", "fitness-scale", "--runs", "1", "--generations", "2", "--group", "clipup-raw", "--no-figures",
             "--jobs", "1", "--set", "population=4"]  # fmt: skip
READING = {
    "run": (
        ("runs", "{root}"),
        ("runs", "{root}", "--json"),
        ("diagnose", "{run}"),
        ("report", "{root}", "-o", "{out}/page.html", "--quiet"),
        ("watch", "{root}", "--no-browser"),
        ("evaluate", "{run}", "--episodes", "1", "--workers", "1"),
        ("evaluate", "{run}", "--best", "--episodes", "1", "--workers", "1"),
        ("export", "{run}", "-o", "{out}/policy.safetensors"),
        ("train", "--config", "{run}/config.toml", "--dry-run"),
        ("resume", "{run}", "--generations", "4", "--quiet"),
    ),
    "search": (
        ("runs", "{root}"),
        ("train", "--config", "{run}/best.toml", "--dry-run"),
        ("report", "{run}/trials", "-o", "{out}/page.html", "--quiet"),
        ("watch", "{run}", "--no-browser"),
        (*TUNE, "--run", "{run}", "--quiet"),
    ),
    "seeds": (
        ("runs", "{root}"),
        ("diagnose", "{run}"),
        ("report", "{run}", "-o", "{out}/page.html", "--quiet"),
        ("watch", "{run}", "--no-browser"),
        ("evaluate", "{run}/seed-0", "--episodes", "1", "--workers", "1"),
        ("resume", "{run}", "--generations", "4", "--quiet"),
    ),
    "reproduction": (
        ("reproduce", "--page", "{out}/page.md", "--results", "{run}"),
        (*REPRODUCE, "--out", "{run}", "--results", "{out}", "--collect", "--quiet"),
    ),
}
SLOWER = (
    ("record", "{run}", "-o", "{out}/video.gif", "--max-seconds", "0.05"),
    ("report", "{run}", "-o", "{out}/page.html", "--video", "--quiet"),
    ("export", "{run}", "-o", "{out}/policy.onnx"),
    ("train", "CartPole-v1", "--init", "{run}", "--run", "{out}/new", "--generations", "1", "--population", "4",
     "--evaluation-episodes", "1", "--max-episode-steps", "5", "--engine", "gymnasium", "--workers", "1", "--quiet"),
)  # fmt: skip
"""One of them in each case of a run, in turns."""
SLOWEST = ("report", "{run}", "-o", "{out}/page.html", "--figures", "{out}/figures", "--quiet")
GOING_ON = (*REPRODUCE, "--generations", "3", "--out", "{run}", "--results", "{out}", "--quiet")
"""These two in every tenth case of the slow tests."""
EXPECTED = {0, 1, 2}
NOTHING_TO_READ = {"envs", "bench", "zoo"}  # but for files of clipup itself


def test_every_command_that_reads_files_is_attacked() -> None:
    attacked = {command[0] for commands in (*READING.values(), SLOWER) for command in commands}
    assert attacked == set(COMMANDS) - NOTHING_TO_READ


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Something sound of each kind. The run exists twice, made by a compiled task and by Gymnasium."""
    for module in ("imageio", "matplotlib.figure", "onnx", "pygame"):  # once, and not in every child
        importlib.import_module(module)
    place = tmp_path_factory.mktemp("sound")
    for engine in ("gymnasium", "compiled"):
        words = ["train", "CartPole-v1", "--population", "8", "--generations", "3", "--evaluate-every", "1", "--quiet",
                 "--evaluation-episodes", "2", "--workers", "1", "--checkpoint-seconds", "0", "--engine", engine,
                 "--max-episode-steps", "20", "--run", str(place / engine)]  # fmt: skip
        assert main(words) == 0
    assert main([*TUNE, "--run", str(place / "search"), "--quiet"]) == 0
    assert main([*REPRODUCE, "--out", str(place / "reproduction"), "--quiet"]) == 0
    # As two runs side by side leave it, without the time that their processes take to start.
    config = RunDirectory(place / "gymnasium").read_config()
    with SeedsDirectory(place / "seeds").claimed(Seeds(config, 2), new=True):
        shutil.copytree(place / "gymnasium", place / "seeds" / "seed-0")
    return {path.name: path for path in place.iterdir()}


def ask_the_page(output: Path) -> Callable[[int], None]:
    """Return what is done while a page is served: its address is waited for, the page and its data are fetched."""

    def ask(child: int) -> None:
        deadline = time.monotonic() + 30
        try:
            while not (found := re.search(r"http://127\.0\.0\.1:[0-9]+/", output.read_text("utf-8", "replace"))):
                if time.monotonic() > deadline or os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                    return
                time.sleep(0.002)
            for path in ("", "data"):
                with urllib.request.urlopen(found[0] + path, timeout=30) as answer:
                    content = answer.read()
            assert json.loads(content)["changed"] is True
        finally:
            os.kill(child, signal.SIGINT)

    return ask


def attack(forked: Callable[..., int], sound: dict[str, Path], root: Path, seed: int, kind: str = "run") -> None:
    root.mkdir()
    victim, runs, out = root / "victim", root / "runs", root / "out"
    make_victim(victim)
    runs.mkdir()
    out.mkdir()
    run, output = runs / "hostile", root / "output"
    source = sound[kind] if kind != "run" else sound[("gymnasium", "compiled")[seed // len(CHANGES) % 2]]
    wrong = make_hostile(source, run, victim, seed)
    before = manifest(victim)
    commands = [*READING[kind]]
    tenth = seed >= 1000 and seed % 10 == 0
    if kind == "run":
        commands.append(SLOWEST if tenth else SLOWER[seed % len(SLOWER)])
    elif kind == "reproduction" and tenth:
        commands.append(GOING_ON)
    for command in commands:
        words = [word.format(root=runs, run=run, out=out) for word in command]
        output.write_bytes(b"")
        code = forked(words, output, meanwhile=ask_the_page(output) if command[0] == "watch" else None)
        check(code, output, f"seed {seed} ({wrong}): clipup {' '.join(words)}")
        assert manifest(victim) == before, f"seed {seed} ({wrong}): clipup {' '.join(words)} changed the victim"
        assert {path.name for path in runs.iterdir()} == {"hostile"}, f"seed {seed} ({wrong}): {words}"


def check(code: int, output: Path, what: str) -> None:
    shown = output.read_text("utf-8", "replace")
    about = f"{what} ended with {code}:\n{shown[-2000:]}"
    assert code in EXPECTED, about
    assert "Traceback" not in shown, about
    assert "\x1b" not in shown and "\x9b" not in shown and "\u202e" not in shown, about
    assert code != 2 or len(shown.splitlines()) <= 6, about


CASES = len(CHANGES)
"""Cases in which each kind of change comes first once."""


@pytest.mark.parametrize("block", range(7))
def test_no_hostile_run_is_followed_waited_for_or_shown_raw(
    forked: Callable[..., int], sound: dict[str, Path], tmp_path: Path, block: int
) -> None:
    for seed in range(block * CASES, (block + 1) * CASES):
        attack(forked, sound, tmp_path / str(seed), seed)


@pytest.mark.parametrize("kind", ["search", "reproduction"])
def test_no_hostile_search_or_reproduction_is_followed_waited_for_or_shown_raw(
    forked: Callable[..., int], sound: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    for seed in range(CASES):
        attack(forked, sound, tmp_path / str(seed), seed, kind)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", READING)
@pytest.mark.parametrize("block", range(30))
def test_nothing_hostile_among_a_thousand_is_followed_waited_for_or_shown_raw(
    forked: Callable[..., int], sound: dict[str, Path], tmp_path: Path, block: int, kind: str
) -> None:
    count = {"run": 3 * CASES, "seeds": 2}.get(kind, CASES)  # each run of several seeds is a process
    for seed in range(1000 + block * count, 1000 + (block + 1) * count):
        attack(forked, sound, tmp_path / str(seed), seed, kind)
        shutil.rmtree(tmp_path / str(seed))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("place", "count"),
    [(["--workers", "2"], 40), (["--workers", "2", "--cluster", "ray"], CASES)],
    ids=["processes", "ray"],
)
def test_no_hostile_run_is_resumed_wrongly_by_workers(
    sound: dict[str, Path], tmp_path: Path, place: list[str], count: int
) -> None:
    for seed in range(5000, 5000 + count):
        root = tmp_path / str(seed)
        root.mkdir()
        make_victim(root / "victim")
        wrong = make_hostile(sound["gymnasium"], root / "run", root / "victim", seed)
        before = manifest(root / "victim")
        words = [sys.executable, "-m", "clipup", "resume", str(root / "run"), "--generations", "4", "--quiet", *place]
        with (root / "output").open("wb") as output:
            code = subprocess.run(words, stdout=output, stderr=output, timeout=120, check=False).returncode
        check(code, root / "output", f"seed {seed} ({wrong}): {' '.join(words[2:])}")
        assert manifest(root / "victim") == before, f"seed {seed} ({wrong})"


@pytest.mark.parametrize("target", ["moved", "empty", "missing"])
@pytest.mark.parametrize("kind", ["seeds", "search", "reproduction"])
def test_a_run_inside_a_directory_is_not_gone_on_with_behind_a_link(
    kind: str, target: str, sound: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The link is in the place of each directory below, down to the runs. What it leads to is sound, or could begin."""
    below = {"seeds": ["seed-0", "seed-1"], "search": ["trials", "trials/*"], "reproduction": ["runs", "runs/*"]}[kind]
    for place, pattern in enumerate(below):
        directory, victim = tmp_path / f"{place}", tmp_path / f"victim-{place}"
        shutil.copytree(sound[kind], directory)
        (victim / "empty").mkdir(parents=True)
        path = sorted(directory.glob(pattern))[0] if "*" in pattern else directory / pattern
        if target == "moved" and path.exists():
            shutil.move(path, victim / target)
        replaced(path).symlink_to(victim / target)
        before = manifest(victim)
        words = {
            "seeds": ["resume", str(directory), "--generations", "9"],
            "search": [*TUNE, "--run", str(directory)],
            "reproduction": [*REPRODUCE, "--generations", "9", "--out", str(directory), "--results", str(victim)],
        }[kind]
        capsys.readouterr()
        assert main([*words, "--quiet"]) == 2
        assert capsys.readouterr().err.splitlines()[-1].endswith("a link, or not a directory")
        assert manifest(victim) == before


def test_the_best_policy_of_a_run_is_not_read_behind_a_link(
    sound: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(sound["gymnasium"], tmp_path / "run"))
    better = tmp_path / "better.safetensors"
    policy, task = read_policy(run / "policy.safetensors")
    better.write_bytes(encode_policy(policy, dataclasses.replace(task, score=1e9)))
    replaced(run / "policy.safetensors").symlink_to(better)
    assert policy_file(run, best=True).name == "best-policy.safetensors"
    for name in ("policy.safetensors", "best-policy.safetensors"):
        replaced(run / name).symlink_to(better)
    for words in ([], ["--best"]):
        assert main(["evaluate", str(run), "--episodes", "1", *words]) == 2
        assert "a link, or not a regular file" in capsys.readouterr().err


def test_one_bad_run_never_hides_the_others(
    sound: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_victim(tmp_path / "victim")
    runs = tmp_path / "runs"
    runs.mkdir()
    shutil.copytree(sound["gymnasium"], runs / "sound")
    for seed in range(40):
        make_hostile(sound["gymnasium"], runs / f"hostile-{seed}", tmp_path / "victim", seed)
    assert main(["runs", str(runs)]) == 0
    shown = capsys.readouterr().out
    assert next(line for line in shown.splitlines() if "runs/sound " in line).endswith("finished")
    assert sum("hostile-" in line for line in shown.splitlines()) >= 35
    assert main(["report", str(runs), "-o", str(tmp_path / "page.html"), "--quiet"]) == 0
    assert main(["diagnose", str(runs), "--json"]) == 0
