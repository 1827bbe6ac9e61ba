"""``clipup.maximize(…, workers=…)``: the executors' guarantees for a Python function."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

import clipup
from clipup.errors import EnvironmentFault, InvalidArgument, InvalidFitness, NoProcesses, ScoreFault

SETTINGS = {"dimension": 7, "max_speed": 0.2, "population_size": 12, "seed": 3, "generations": 4}
MARK = "CLIPUP_TEST_MARK"


def score(candidates):
    """A score whose last bits depend on how many candidates it gets at once, as those of BLAS do."""
    weights = np.linspace(-1.0, 1.0, 7 * 5, dtype=np.float32).reshape(7, 5)
    return -np.tanh(candidates.astype(np.float32) @ weights).sum(axis=1) - 1e-9 * len(candidates)


def dying(candidates):
    """Kills its process once."""
    mark = Path(os.environ[MARK])
    if not mark.exists():
        mark.write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    return score(candidates)


def deadly(candidates):
    """Kills every process that scores a candidate whose first parameter is above 0.5."""
    if candidates[0, 0] > 0.5:
        os.kill(os.getpid(), signal.SIGKILL)
    return score(candidates)


def failing(candidates):
    if candidates[0, 0] > 0.5:
        raise KeyError("no such joint")
    return score(candidates)


def too_many(candidates):
    return np.zeros(len(candidates) + 1)


def texts(candidates):
    return ["x"] * len(candidates)


def bits(result: clipup.OptimizationResult) -> tuple[bytes, bytes, float]:
    return result.center.tobytes(), result.best.tobytes(), result.best_fitness


@pytest.mark.parametrize("more", [{}, {"batch_size": 5}, {"bounds": (-0.3, 0.2)}, {"search": clipup.CMAES}])
def test_the_result_has_the_same_bits_on_any_number_of_workers(more: dict) -> None:
    settings = SETTINGS | more
    if "search" in more:
        settings = {name: value for name, value in settings.items() if name != "max_speed"} | {"stdev": 0.3}
    one, two, three = (clipup.maximize(score, workers=workers, **settings) for workers in (1, 2, 3))
    assert bits(one) == bits(two) == bits(three)
    assert one.history == two.history == three.history


def test_a_worker_that_dies_is_replaced_and_the_result_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(MARK, str(tmp_path / "mark"))
    found = clipup.minimize(dying, workers=2, **SETTINGS)
    assert bits(found) == bits(clipup.minimize(score, workers=1, **SETTINGS))
    assert "it is replaced" in caplog.text


def test_a_candidate_that_ends_every_worker_is_named() -> None:
    with pytest.raises(EnvironmentFault, match=r"candidate \d+ ended 3 workers in a row"):
        clipup.maximize(deadly, workers=2, **{**SETTINGS, "max_speed": 2.0})


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exception_names_its_candidate(workers: int) -> None:
    with pytest.raises(ScoreFault, match=r"at candidate \d+ of generation 0: KeyError: 'no such joint'"):
        clipup.maximize(failing, workers=workers, **{**SETTINGS, "max_speed": 2.0})


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("wrong", [too_many, texts])
def test_scores_of_the_wrong_kind_are_refused(workers: int, wrong) -> None:
    with pytest.raises(InvalidFitness, match="score"):
        clipup.maximize(wrong, workers=workers, **SETTINGS)


def test_a_function_that_other_processes_cannot_import_is_refused_in_words() -> None:
    with pytest.raises(NoProcesses, match=r"the score function cannot be sent.*top level"):
        clipup.maximize(lambda x: x.sum(axis=1), workers=2, **SETTINGS)
    assert clipup.maximize(lambda x: x.sum(axis=1), workers=1, **SETTINGS).stopped == "generations"


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2", True])
def test_a_number_of_workers_that_makes_no_sense_is_refused(workers: object) -> None:
    with pytest.raises(InvalidArgument, match="workers must be a positive whole number"):
        clipup.maximize(score, workers=workers, **SETTINGS)  # type: ignore[arg-type]
