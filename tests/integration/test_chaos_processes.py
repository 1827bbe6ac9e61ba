"""Workers die, hang, and are shot at; the run does not show it, or ends with a reason. Nothing is left behind."""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

import clipup
from clipup import PGPE
from clipup.engines import Outcomes, Task
from clipup.errors import EnvironmentFault, InvalidArgument, NoProcesses
from clipup.executors import Executor, make_executor
from clipup.executors.distributed import DistributedExecutor
from clipup.executors.inline import InlineExecutor
from clipup.executors.jobs import Setup
from clipup.policies import Statistics
from clipup.searches import Batch

SOURCE = str(Path(__file__).parents[2] / "src")
ENVIRONMENTS = str(Path(__file__).parents[1] / "environments")


def workers_of(process: psutil.Process) -> list[psutil.Process]:
    return [child for child in process.children() if _is_worker(child)]


def _is_worker(process: psutil.Process) -> bool:
    try:
        return "spawn_main" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # gone since, or dead and not yet collected
        return False


def gone(processes: list[psutil.Process], seconds: float = 20.0) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    return not alive


def shared_memory() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir()}


class Besieged:
    """An executor one of whose workers is shot during each evaluation, at a random moment."""

    def __init__(self, executor: DistributedExecutor, seed: int) -> None:
        self._executor = executor
        self._dice = random.Random(seed)
        self.shots = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._executor, name)

    def evaluate(self, batch: Batch, statistics: Statistics | None, *, following: Batch | None = None) -> Outcomes:
        shooter = threading.Thread(target=self._shoot, args=(self._dice.uniform(0, 0.15),))
        shooter.start()
        try:
            return self._executor.evaluate(batch, statistics, following=following)
        finally:
            shooter.join()

    def _shoot(self, delay: float) -> None:
        time.sleep(delay)
        targets = workers_of(psutil.Process())
        if targets:
            self._dice.choice(targets).kill()
            self.shots += 1


def run_besieged(run: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, object], seed: int) -> int:
    besieged: list[Besieged] = []

    def make(*arguments: object, **options: object) -> Executor:
        executor = make_executor(*arguments, **options)  # type: ignore[arg-type]
        assert isinstance(executor, DistributedExecutor)
        besieged.append(Besieged(executor, seed))
        return besieged[0]  # type: ignore[return-value]

    with monkeypatch.context() as patch:
        patch.setattr("clipup.training.api.make_executor", make)
        clipup.train(run=run, workers=3, **settings)  # type: ignore[arg-type]
    return besieged[0].shots


@pytest.mark.parametrize("search", ["pgpe", "snes", "cma-es"])
def test_a_run_whose_workers_are_killed_twenty_times_has_the_bytes_of_a_quiet_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, search: str
) -> None:
    settings: dict[str, object] = {
        "env": "Pendulum-v1", "engine": "gymnasium", "policy": "mlp:8", "normalize": True, "preset": "none",
        "population": 12, "population_max": 24, "interactions": 1800, "max_episode_steps": 100, "generations": 13,
        "max_speed": 0.1, "seed": 9, "evaluate_every": 5, "evaluation_episodes": 3, "search": search,
    }  # fmt: skip
    memory = shared_memory()
    clipup.train(run=tmp_path / "quiet", workers=1, **settings)  # type: ignore[arg-type]
    shots = run_besieged(tmp_path / "besieged", monkeypatch, settings, seed=1)
    assert shots >= 20
    assert sum("was killed by SIGKILL" in record.message for record in caplog.records) >= 20
    for name in ("records.jsonl", "policy.safetensors"):
        assert (tmp_path / "besieged" / name).read_bytes() == (tmp_path / "quiet" / name).read_bytes()
    assert gone(workers_of(psutil.Process()))
    assert shared_memory() == memory


def evaluate(task: Task, *, timeout: float | None = None, workers: int = 2) -> tuple[Outcomes, Outcomes]:
    """One batch of a one-parameter policy, by processes and in this process."""
    search = PGPE(dimension=1, population_size=24, max_speed=0.2, stdev=1.0, seed=1)
    options = {**task.env_options, "how": "", "above": 1e9}
    own = InlineExecutor(Setup(Task(task.env, env_options=options), "linear", collect_moments=False))
    tested = make_executor(task, "linear", collect_moments=False, workers=workers, episode_timeout=timeout)
    try:
        return tested.evaluate(search.batch(), None), own.evaluate(search.batch(), None)
    finally:
        tested.close()
        own.close()


def guilty() -> tuple[int, float]:
    """One candidate, and a threshold that it alone is above."""
    values = PGPE(dimension=1, population_size=24, max_speed=0.2, stdev=1.0, seed=1).ask()[:, 0]
    second, first = np.argsort(values)[-2:]
    return int(first), float(values[first] + values[second]) / 2


@pytest.mark.parametrize(("how", "timeout"), [("kill", None), ("exit", None), ("hang", 0.5)])
def test_what_went_wrong_once_or_twice_is_tried_again(
    misbehaving: str, tmp_path: Path, how: str, timeout: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"how": how, "above": 1.2, "marks": str(tmp_path), "times": 2}
    tested, own = evaluate(Task(misbehaving, env_options=options), timeout=timeout)
    assert tested.fitness.tobytes() == own.fitness.tobytes()
    assert len(list(tmp_path.iterdir())) == 2
    reason = {"kill": "was killed by SIGKILL", "exit": "ended by itself (exit code 3)", "hang": "was ended after 1 s"}
    assert reason[how] in caplog.text
    assert "it is replaced, and they run again" in caplog.text


@pytest.mark.parametrize(("how", "timeout"), [("kill", None), ("hang", 1.0)])
def test_a_candidate_that_ends_every_worker_is_named(misbehaving: str, how: str, timeout: float | None) -> None:
    candidate, above = guilty()
    with pytest.raises(EnvironmentFault, match=rf"^candidate {candidate} ended 3 workers in a row; the last one was "):
        evaluate(Task(misbehaving, env_options={"how": how, "above": above}), timeout=timeout)
    assert gone(workers_of(psutil.Process()))


def test_a_run_whose_candidate_ends_every_worker_ends_with_a_checkpoint(misbehaving: str, tmp_path: Path) -> None:
    _, above = guilty()
    with pytest.raises(EnvironmentFault, match=r"^candidate \d+ ended 3 workers in a row"):
        clipup.train(  # a reward is an action, so that candidates climb towards their end
            misbehaving, run=tmp_path / "run", policy="linear", population=24, radius=1.0, max_speed=0.2, seed=1,
            generations=100, workers=2, normalize=False, preset="none", evaluate_every=0,
            env_options={"how": "kill", "above": above + 1.0},
        )  # fmt: skip
    assert json.loads((tmp_path / "run" / "status.json").read_text())["state"] == "failed"
    assert list((tmp_path / "run" / "checkpoints").iterdir())


def test_workers_that_never_start_end_the_run(misbehaving: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "clipup")
    import misbehaving as module

    with pytest.raises(EnvironmentFault, match=r"while they started; the last one ended by itself \(exit code 7\)"):
        make_executor(Task(module.dies_at_once), "linear", collect_moments=False, workers=2)


def test_an_environment_that_cannot_be_sent_is_refused_or_stays_here(caplog: pytest.LogCaptureFixture) -> None:
    import gymnasium

    task = Task(lambda: gymnasium.make("Pendulum-v1"))
    with pytest.raises(NoProcesses, match="give its id, or a callable defined at the top level of a module"):
        make_executor(task, "linear", collect_moments=False, workers=2)
    assert isinstance(make_executor(task, "linear", collect_moments=False), InlineExecutor)


SCRIPT = """
import clipup
clipup.train("misbehaving:Misbehaving-v0", engine="gymnasium", policy="linear", generations={generations},
             population=8, env_options={{"pause": {pause}}}, preset="none", workers=2, run="run")
print("done")
"""


def start(tmp_path: Path, script: str) -> subprocess.Popen[str]:
    path = tmp_path / "script.py"
    path.write_text(script)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([SOURCE, ENVIRONMENTS])}
    return subprocess.Popen(
        [sys.executable, str(path)], env=environment, cwd=tmp_path,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_script_without_a_guard_is_told_so_in_one_line(tmp_path: Path) -> None:
    output, errors = start(tmp_path, SCRIPT.format(generations=1, pause=0)).communicate(timeout=120)
    assert output == ""
    assert errors.count("Traceback") == 1
    assert errors.strip().splitlines()[-1].endswith("must do its work under `if __name__ == '__main__':`")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_worker_outlives_the_trainer(tmp_path: Path, number: signal.Signals) -> None:
    guarded = "if __name__ == '__main__':\n" + "\n".join(f"    {line}" for line in SCRIPT.splitlines())
    memory = shared_memory()
    trainer = start(tmp_path, guarded.format(generations=10**6, pause=0.05))
    process = psutil.Process(trainer.pid)
    records = tmp_path / "run" / "records.jsonl"
    while not (records.exists() and records.stat().st_size):
        assert trainer.poll() is None
        time.sleep(0.05)
    family = process.children(recursive=True)
    trainer.send_signal(number)
    trainer.communicate(timeout=60)
    assert len(family) >= 2
    assert gone(family)
    assert shared_memory() == memory


def test_a_second_interrupt_ends_workers_that_hang(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    script = SCRIPT.format(generations=1, pause=0).replace(
        '"pause": 0', f'"how": "hang", "above": -1e9, "marks": "{marks}"'
    )
    trainer = start(tmp_path, "if __name__ == '__main__':\n" + "\n".join(f"    {line}" for line in script.splitlines()))
    while len(list(marks.iterdir())) < 2:
        assert trainer.poll() is None
        time.sleep(0.05)
    family = psutil.Process(trainer.pid).children(recursive=True)
    trainer.send_signal(signal.SIGINT)
    time.sleep(0.4)  # it waits a second for its workers
    trainer.send_signal(signal.SIGINT)
    trainer.communicate(timeout=10)
    assert gone(family)


def test_making_an_environment_is_no_episode(misbehaving: str) -> None:
    task = Task(misbehaving.replace("Misbehaving", "SlowToMake"), max_episode_steps=2)
    executor = make_executor(task, "linear", collect_moments=False, workers=1, episode_timeout=0.4)
    search = PGPE(dimension=1, population_size=4, max_speed=0.2, stdev=1.0, seed=1)
    try:
        assert np.isfinite(executor.evaluate(search.batch(), None).fitness).all()
        center = executor.evaluate_center(search.center, None, seed=0, generation=0, episodes=2)
        assert np.isfinite(center.fitness).all()
    finally:
        executor.close()


def test_an_environment_may_have_a_process_of_its_own(misbehaving: str) -> None:
    task = Task(misbehaving.replace("Misbehaving", "WithProcess"))
    executor = make_executor(task, "linear", collect_moments=False, workers=2)
    search = PGPE(dimension=1, population_size=4, max_speed=0.2, stdev=1.0, seed=1)
    try:
        assert np.isfinite(executor.evaluate(search.batch(), None).fitness).all()
    finally:
        executor.close()
    assert gone(workers_of(psutil.Process()))


FROM_STDIN = """
import clipup
if __name__ == "__main__":
    result = clipup.train("Pendulum-v1", generations=1, population=4, engine="gymnasium", max_speed=0.1)
    print("trained", len(result.records))
"""
IN_POOL = """
import multiprocessing, clipup

def train(_):
    result = clipup.train("Pendulum-v1", generations=1, population=4, engine="gymnasium", max_speed=0.1)
    return len(result.records)

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print("trained", pool.map(train, [0])[0])
"""


@pytest.mark.parametrize("how", ["stdin", "pool"])
def test_where_workers_cannot_be_started_one_process_does(how: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(IN_POOL)
    words = ["-"] if how == "stdin" else ["script.py"]
    done = subprocess.run(
        [sys.executable, *words],
        input=FROM_STDIN,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        timeout=120,
    )
    assert "trained 1" in done.stdout, done.stderr
    assert "running in one process" in done.stderr


def test_a_time_limit_is_refused_if_episodes_run_in_threads() -> None:
    with pytest.raises(InvalidArgument, match="environments run in threads"):
        make_executor(Task("CartPole-v1"), "linear", collect_moments=False, episode_timeout=1.0)
