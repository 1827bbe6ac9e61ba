"""The loop itself, with an executor that needs no simulator."""

import importlib
import json
import math
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clipup.engines import EngineDescription, Failure, Outcomes
from clipup.errors import Diverged, EnvironmentFault, FileFault
from clipup.executors.fingerprint import Fingerprint
from clipup.executors.jobs import WorkerDescription
from clipup.policies import Actions, Moments, Network, Statistics
from clipup.runs.checkpoint import Checkpoint
from clipup.runs.config import RunConfig
from clipup.runs.records import read_records
from clipup.runs.rundir import RunDirectory
from clipup.runs.storage import DirectoryStorage, Storage
from clipup.searches import Batch
from clipup.training.setup import make_search
from clipup.training.signals import Interruption
from clipup.training.trainer import Trainer


@dataclass
class Bowl:
    """Fitness is minus the squared distance from ones; each candidate makes as many steps as `steps` says."""

    engine: str = "fake"
    place: str = "here"
    sum_blocks: None = None
    steps: int = 5
    failing: tuple[int, ...] = ()
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    raises: BaseException | None = None
    raise_at: int = -1
    calls: list[tuple[int, int, int, Statistics | None]] = field(default_factory=list)
    centers: list[tuple[int, Statistics | None]] = field(default_factory=list)
    following: list[Batch | None] = field(default_factory=list)

    @property
    def description(self) -> WorkerDescription:
        actions = Actions("box", 1, (-1.0,), (1.0,), (1,))
        engine = EngineDescription(self.engine, "1.0", "asked for", 2, actions)
        return WorkerDescription(engine, Network(2, 1), self.fingerprint)

    def evaluate(self, batch: Batch, statistics: Statistics | None, *, following: Batch | None = None) -> Outcomes:
        self.calls.append((batch.generation, batch.start, batch.stop, statistics))
        self.following.append(following)
        if self.raises is not None and batch.generation == self.raise_at:
            raise self.raises
        fitness = -np.square(batch.candidates().astype(float) - 1).sum(axis=1)
        fitness[[index for index in self.failing if index < len(fitness)]] = math.nan
        moments = Moments.concatenate([Moments.of(np.full((self.steps, 2), float(batch.generation)))] * len(batch))
        failures = tuple(Failure(batch.start + index, "broke") for index in self.failing)
        return Outcomes(fitness, fitness, np.full(len(batch), self.steps), moments, failures).check("Bowl")

    def evaluate_center(self, center, statistics, *, seed, generation, episodes) -> Outcomes:
        self.centers.append((generation, statistics))
        returns = -np.square(center.astype(float) - 1).sum() + np.arange(episodes, dtype=float)
        return Outcomes(returns, returns, np.full(episodes, 1000))

    def close(self) -> None:
        pass


def config(**changes: object) -> RunConfig:
    values: dict[str, object] = {
        "env": "Bowl", "population": 10, "generations": 6, "evaluate_every": 2, "evaluation_episodes": 3,
        "checkpoint_seconds": 0.0,
    }  # fmt: skip
    return RunConfig(**{**values, **changes})  # type: ignore[arg-type]


def trainer_of(settings: RunConfig, bowl: Bowl, *rest: Any, **more: Any) -> Trainer:
    return Trainer(settings, make_search(settings, bowl.description.network.parameter_count), bowl, *rest, **more)


def test_a_generation_is_recorded_with_everything_and_evaluations_are_not_counted():
    bowl = Bowl()
    trainer = trainer_of(config(), bowl, Storage())
    status = trainer.run()
    assert (status.state, status.generation, status.total_interactions) == ("finished", 6, 300)
    assert [record.score is not None for record in trainer.records] == [False, True] * 3
    last = trainer.records[-1]
    assert last.score == pytest.approx(-np.square(trainer.policy.parameters.astype(float) - 1).sum() + 1)
    assert last.score_standard_error == pytest.approx(1 / math.sqrt(3))
    assert last.best == max(record.fitness_best for record in trainer.records)
    assert last.speed <= last.max_speed == 0.05
    assert trainer.records[-1].fitness_mean > trainer.records[0].fitness_mean


def test_statistics_are_those_of_earlier_generations_only():
    bowl = Bowl()
    trainer_of(config(generations=3), bowl, Storage()).run()
    means = [None if statistics is None else statistics.mean.tolist() for _, _, _, statistics in bowl.calls]
    assert means == [None, [0.0, 0.0], [0.5, 0.5]]
    assert bowl.centers[0][0] == 2 and bowl.centers[0][1].mean.tolist() == [0.5, 0.5]
    plain = Bowl()
    trainer_of(config(generations=2, normalize=False), plain, Storage()).run()
    assert [statistics for _, _, _, statistics in plain.calls] == [None, None]


def test_an_adaptive_population_grows_in_batches_up_to_its_bound_and_says_what_may_come_next():
    bowl = Bowl()
    trainer = trainer_of(config(interactions=120, population_max=44, generations=1), bowl, Storage())
    trainer.run()
    assert [(start, stop) for _, start, stop, _ in bowl.calls] == [(0, 10), (10, 20), (20, 30)]
    assert [(batch.start, batch.stop) for batch in bowl.following if batch] == [(10, 20), (20, 30), (30, 40)]
    assert trainer.records[0].population == 30 and not trainer.records[0].population_bound
    bounded = trainer_of(config(interactions=1000, population_max=44, generations=1), Bowl(), Storage())
    bounded.run()
    assert bounded.records[0].population == 44 and bounded.records[0].population_bound


def test_ranks_make_the_scale_of_the_fitness_irrelevant_and_the_records_show_it_unscaled():
    plain, scaled = (trainer_of(config(fitness_scale=scale), Bowl(), Storage()) for scale in (1.0, 1024.0))
    plain.run()
    scaled.run()
    assert plain.records == scaled.records
    raw = trainer_of(config(fitness_scale=1024.0, fitness_shaping="raw"), Bowl(), Storage())
    raw.run()
    assert raw.records[0].fitness_mean == plain.records[0].fitness_mean
    assert raw.records[0].gradient_norm > 100 * plain.records[0].gradient_norm


def test_some_failing_candidates_are_ranked_last_and_all_of_them_end_the_run():
    trainer = trainer_of(config(), Bowl(failing=(3, 4)), Storage())
    trainer.run()
    assert trainer.records[0].nonfinite == 2 and trainer.records[0].fitness_mean is not None
    with pytest.raises(EnvironmentFault, match="Bowl failed for all 10 candidates; the first: broke"):
        trainer_of(config(), Bowl(failing=tuple(range(10))), Storage()).run()


@pytest.mark.parametrize("error", [Diverged("too far"), RuntimeError("bug"), KeyboardInterrupt()])
def test_whatever_ends_a_run_the_last_whole_generation_is_kept(tmp_path, error):
    directory = RunDirectory(tmp_path / "run")
    directory.create(config())
    storage = DirectoryStorage(directory, config(), warn=pytest.fail)
    trainer = trainer_of(config(), Bowl(raises=error, raise_at=3), storage)
    with pytest.raises(type(error)):
        trainer.run()
    status = json.loads(directory.status_path.read_text())
    assert status["generation"] == 3
    assert status["state"] == ("interrupted" if isinstance(error, KeyboardInterrupt) else "failed")
    directory.close()

    directory.open()
    resumed = trainer_of(config(), Bowl(), DirectoryStorage(directory, config(), warn=pytest.fail))
    assert resumed.generation == 3
    resumed.run()
    directory.close()
    whole = trainer_of(config(), Bowl(), Storage())
    whole.run()
    assert resumed.policy.parameters.tolist() == whole.policy.parameters.tolist()
    assert read_records(directory.records_path) == whole.records


def test_a_stop_that_was_asked_for_ends_before_the_next_evaluation():
    interruption = Interruption()
    interruption.signal = signal.SIGINT
    trainer = trainer_of(config(), Bowl(), Storage(), interruption=interruption)
    assert trainer.run().state == "interrupted" and trainer.generation == 0


class Failing:
    """A tracker whose service is gone from some moment on."""

    def __init__(self, moment):
        self.moment, self.told = moment, []

    def begin(self, info):
        self.told.append("begin")

    def generation(self, record, clock):
        self._tell("generation")

    def message(self, text):
        self._tell(text)

    def end(self, status):
        self._tell("end")

    def _tell(self, what):
        self.told.append(what)
        if what == self.moment:
            raise ConnectionError("refused")


@pytest.mark.parametrize("moment", ["generation", "end"])
def test_a_tracker_that_fails_is_left_out_and_the_run_goes_on(moment):
    failing, witness = Failing(moment), Failing("never")
    status = trainer_of(config(), Bowl(), Storage(), [failing, witness]).run()
    assert (status.state, status.generation) == ("finished", 6)
    assert failing.told.count("generation") == (1 if moment == "generation" else 6)
    assert witness.told.count("generation") == 6 and witness.told[-1] == "end"
    assert any("Failing failed and is left out" in told for told in witness.told)


def test_episodes_that_fail_in_an_evaluation_are_told():
    class Fragile(Bowl):
        def evaluate_center(self, center, statistics, *, seed, generation, episodes):
            returns = np.full(episodes, np.nan)
            return Outcomes(returns, returns, np.ones(episodes), None, (Failure(1, "broke"),))

    witness = Failing("never")
    status = trainer_of(config(), Fragile(), Storage(), [witness]).run()
    assert status.score is None
    assert any("1 of 3 evaluation episodes failed, evaluation episode 1: broke" in told for told in witness.told)


def test_a_run_does_not_go_on_in_another_simulator(tmp_path: Path):
    directory = RunDirectory(tmp_path / "run")
    directory.create(config(generations=2))
    trainer_of(config(generations=2), Bowl(), DirectoryStorage(directory, config(generations=2), print)).run()
    before = {path: path.read_bytes() for path in directory.path.rglob("*") if path.is_file()}
    again = DirectoryStorage(directory, config(generations=4), print)
    with pytest.raises(FileFault, match=r"made with fake, and would go on here with other \(asked for\)"):
        trainer_of(config(generations=4), Bowl(engine="other"), again)
    assert {path: path.read_bytes() for path in directory.path.rglob("*") if path.is_file()} == before
    trainer_of(config(generations=4), Bowl(), again).run()
    directory.close()


def test_a_run_does_not_go_on_with_other_roundings_unless_that_is_accepted_and_recorded(tmp_path: Path):
    directory = RunDirectory(tmp_path / "run")
    settings = config(generations=2)
    directory.create(settings)
    trainer_of(settings, Bowl(fingerprint=Fingerprint("aa", "bb")), DirectoryStorage(directory, settings, print)).run()
    longer = config(generations=4)
    for other, words in ((Fingerprint("cc", "bb"), "the policy"), (Fingerprint("aa", "cc"), "the simulator")):
        with pytest.raises(
            FileFault, match=rf"rounds differently .* bits in {words} \(..+--mixed-arithmetic"
        ) as caught:
            trainer_of(longer, Bowl(fingerprint=other), DirectoryStorage(directory, longer, print))
        assert "\n" not in str(caught.value)
    # A machine that does not know its own arithmetic, because episodes have a time limit, keeps what was known.
    unknown = trainer_of(longer, Bowl(fingerprint=Fingerprint("aa")), DirectoryStorage(directory, longer, print)).run()
    assert (unknown.state, unknown.arithmetic_changed_at) == ("finished", 0)
    accepting = config(generations=6, mixed_arithmetic=True)
    witness = Failing("never")
    other = Bowl(fingerprint=Fingerprint("aa", "cc"))
    status = trainer_of(accepting, other, DirectoryStorage(directory, accepting, print), [witness]).run()
    assert (status.state, status.generation, status.arithmetic_changed_at) == ("finished", 6, 4)
    assert any("another machine made the first 4 generations" in told for told in witness.told)
    directory.close()


def kept(path: Path) -> dict[str, bytes]:
    return {
        name: (path / name).read_bytes() for name in ("records.jsonl", "policy.safetensors", "best-policy.safetensors")
    }


def trained(path: Path, **changes: object) -> None:
    directory = RunDirectory(path)
    if directory.exists():
        directory.open()
    else:
        directory.create(config(**changes))
    try:
        trainer_of(config(**changes), Bowl(), DirectoryStorage(directory, config(**changes), print)).run()
    finally:
        directory.close()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(5, "input/output error")])
def test_a_best_policy_whose_writing_was_cut_off_is_written_on_resuming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
):
    trained(tmp_path / "whole")
    real = DirectoryStorage.keep_best

    def failing(storage: DirectoryStorage, whole: Checkpoint, *rest: object) -> None:
        if whole.generation == 4:
            raise error
        real(storage, whole, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patched, pytest.raises(type(error)):
        patched.setattr(DirectoryStorage, "keep_best", failing)
        trained(tmp_path / "cut")
    status = RunDirectory(tmp_path / "cut").read_status()
    records = read_records(tmp_path / "cut" / "records.jsonl")
    assert status.generation == 3
    assert status.total_interactions == records[2].total_interactions, "of the generations that count"
    trained(tmp_path / "cut")
    assert kept(tmp_path / "cut") == kept(tmp_path / "whole")


sys.path.append(str(Path(__file__).parents[2] / "environments"))
HillClimber = importlib.import_module("hill_climber").HillClimber


def climber() -> Any:
    return HillClimber(np.zeros(3), stdev=0.3, population_size=10, interactions=120, population_max=44, seed=2)


def climbed(path: Path, generations: int) -> RunDirectory:
    settings, directory = config(interactions=120, generations=generations), RunDirectory(path)
    if directory.exists():
        directory.open()
    else:
        directory.create(settings)
    try:
        Trainer(settings, climber(), Bowl(), DirectoryStorage(directory, settings, pytest.fail)).run()
    finally:
        directory.close()
    return directory


def test_any_search_can_be_trained_recorded_and_resumed_to_the_same_bytes(tmp_path: Path):
    climbed(tmp_path / "resumed", 3)
    resumed, whole = climbed(tmp_path / "resumed", 6), climbed(tmp_path / "whole", 6)
    assert kept(resumed.path) == kept(whole.path)
    records = read_records(whole.records_path)
    assert [record.population for record in records] == [30] * 6
    last = records[-1]
    assert last.max_speed is None and last.gradient_agreement is None and math.isnan(last.gradient_norm)
    assert last.fitness_mean > records[0].fitness_mean
