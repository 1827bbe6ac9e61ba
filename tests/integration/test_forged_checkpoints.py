"""Checkpoints whose digest is right and whose content is not: nothing forged is taken over unseen."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from clipup.cli.main import main
from clipup.export.safetensors import decode, encode

State = dict[str, dict[str, object]]
LARGE = (2**63 - 1, 2**63, 2**64, 10**30, -1)
OTHER = (True, "1", [])


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "run"
    words = ["train", "CartPole-v1", "--population", "8", "--generations", "4", "--evaluate-every", "1", "--quiet",
             "--evaluation-episodes", "2", "--checkpoint-seconds", "0", "--seed", "3"]  # fmt: skip
    assert main([*words, "--run", str(path)]) == 0
    return path


def names(run: Path, part: str) -> list[str]:
    newest = sorted((run / "checkpoints").iterdir())[-1]
    return sorted(json.loads(decode(newest.read_bytes()).metadata["state"])[part])


def forge(run: Path, change: Callable[[State, dict[str, np.ndarray], dict[str, str]], None], *, every: bool) -> None:
    """Change the newest checkpoint, or every one, and give it a right digest."""
    for path in sorted((run / "checkpoints").iterdir())[0 if every else -1 :]:
        file = decode(path.read_bytes())
        tensors, metadata = dict(file.tensors), dict(file.metadata)
        state = json.loads(metadata["state"])
        change(state, tensors, metadata)
        metadata["state"] = json.dumps(state, sort_keys=True)
        path.write_bytes(encode(tensors, metadata))


def resumed(run: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(["resume", str(run), "--generations", "6", "--quiet"])
    return code, capsys.readouterr().err


def content(run: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != "lock"}


@pytest.mark.parametrize("seed", [0, 4, 2**31, 2**63 - 1])
def test_a_forged_seed_is_refused(sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    run = Path(shutil.copytree(sound, tmp_path / "run"))
    forge(run, lambda state, tensors, metadata: state["search"].update(seed=seed), every=True)
    before = content(run)
    code, error = resumed(run, capsys)
    assert code == 2 and "expected seed 3; it is not of this run" in error.splitlines()[-1]
    assert content(run) == before


@pytest.mark.parametrize("generation", [0, 3, 5, 2**40, 2**63 - 1])
def test_a_forged_generation_is_refused(
    sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], generation: int
) -> None:
    for where in ("search", "metadata"):
        run = Path(shutil.copytree(sound, tmp_path / where))
        if where == "search":
            forge(run, lambda state, tensors, metadata: state["search"].update(generation=generation), every=True)
        else:
            forge(run, lambda state, tensors, metadata: metadata.update(generation=str(generation)), every=True)
        # The one that tells the truth by chance is left out.
        (run / "checkpoints" / f"generation-{generation:08d}.safetensors").unlink(missing_ok=True)
        before = content(run)
        code, error = resumed(run, capsys)
        assert code == 2 and len(error.splitlines()[-1]) < 400, error
        assert "it is not of this run" in error or "none of the" in error
        assert content(run) == before


def test_a_forged_setting_is_refused(sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Path(shutil.copytree(sound, tmp_path / "run"))

    def change(state: State, tensors: object, metadata: object) -> None:
        state["counters"]["settings"] = json.dumps({**json.loads(str(state["counters"]["settings"])), "seed": 9})

    forge(run, change, every=True)
    code, error = resumed(run, capsys)
    assert code == 2 and "changed since the run began (seed)" in error


@pytest.mark.parametrize("part", ["search", "normalizer", "counters"])
def test_no_word_of_a_checkpoint_can_be_forged_into_a_traceback(
    sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], part: str
) -> None:
    """Every whole number and word, each with large numbers and other types, in the newest checkpoint alone."""
    for name in names(sound, part):
        for value in (*LARGE, *OTHER):
            run = Path(shutil.copytree(sound, tmp_path / "run"))
            forge(run, lambda state, tensors, metadata: state[part].update({name: value}), every=False)  # noqa: B023
            code, error = resumed(run, capsys)
            assert code in (0, 2), (part, name, value, error)
            assert "Traceback" not in error and len(error.splitlines()) <= 3, (part, name, value, error)
            shutil.rmtree(run)


@pytest.mark.parametrize("value", [np.zeros(3), np.zeros((2, 2), np.float32), np.array(np.nan), np.zeros(0, np.int64)])
def test_no_array_of_a_checkpoint_can_be_forged_into_a_traceback(
    sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], value: np.ndarray
) -> None:
    """Every array, each with others in its place; and arrays in the place of words and counts."""
    newest = sorted((sound / "checkpoints").iterdir())[-1]
    words = [f"{part}.{name}" for part in ("search", "normalizer", "counters") for name in names(sound, part)]
    for name in [*decode(newest.read_bytes()).tensors, *words]:
        run = Path(shutil.copytree(sound, tmp_path / "run"))
        forge(run, lambda state, tensors, metadata: tensors.update({name: value}), every=False)  # noqa: B023
        code, error = resumed(run, capsys)
        assert code in (0, 1, 2), (name, error)
        assert "Traceback" not in error and len(error.splitlines()) <= 3, (name, error)
        shutil.rmtree(run)
