"""The programs in examples/ run as they stand, in a process of their own. (optimize.py has its own tests.)"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments],
        cwd=directory, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_every_example_explains_itself(name: str, tmp_path: Path) -> None:
    found = run(name, "--help", directory=tmp_path)
    assert found.returncode == 0, found.stderr
    assert "--generations" in found.stdout


def test_a_trained_policy_balances_the_pole_better_than_chance(tmp_path: Path) -> None:
    found = run("train_and_evaluate.py", "--generations", "8", directory=tmp_path)
    assert found.returncode == 0, found.stderr
    assert "trained for 8 generations" in found.stdout
    mean = re.search(r"16 new episodes: mean ([\d.]+)", found.stdout)
    assert mean is not None and float(mean[1]) > 40  # a policy that does not look gets about 10 to 20
    assert (tmp_path / "runs/example/policy.safetensors").is_file()


def test_a_directory_that_is_a_run_already_ends_the_example_with_one_line(tmp_path: Path) -> None:
    small = ("--generations", "1", "--population", "4")
    assert run("train_and_evaluate.py", *small, directory=tmp_path).returncode == 0
    again = run("train_and_evaluate.py", *small, directory=tmp_path)
    assert again.returncode == 2
    assert "runs/example" in again.stderr.splitlines()[-1]
    assert "Traceback" not in again.stderr


def test_an_environment_of_one_s_own_gives_the_same_result_on_one_and_on_two_workers(tmp_path: Path) -> None:
    printed = []
    for workers in ("1", "2"):
        found = run("custom_environment.py", "--generations", "5", "--workers", workers, directory=tmp_path)
        assert found.returncode == 0, found.stderr
        printed.append(found.stdout)
    assert printed[0] == printed[1]
    first, last = map(float, re.findall(r"(-[\d.]+) at", printed[0]))
    assert last > first


def test_a_transformer_learns_in_its_own_weights(tmp_path: Path) -> None:
    found = run("in_place_transformer.py", "--generations", "120", directory=tmp_path)
    assert found.returncode == 0, found.stderr
    losses = [float(line.split()[-1]) for line in found.stdout.splitlines()]
    assert losses[0] > 1.9  # guessing gives log(8), about 2.08
    assert losses[-1] < 0.5


def test_the_search_is_the_same_for_any_number_of_processes(tmp_path: Path) -> None:
    small = ("--generations", "20", "--dimension", "50")
    printed = [
        run("ask_tell_processes.py", *small, "--workers", workers, directory=tmp_path).stdout for workers in ("1", "3")
    ]
    assert printed[0] == printed[1]
    distances = [float(line.split()[-1]) for line in printed[0].splitlines()]
    assert len(distances) == 5
    assert distances[-1] < distances[0] / 2


def test_a_task_of_one_s_own_learns_alike_on_one_and_on_two_threads(tmp_path: Path) -> None:
    small = ("--generations", "20", "--population", "20", "--quiet")
    left = []
    for workers in ("1", "2"):
        found = run("own_task.py", *small, "--workers", workers, "--run", workers, directory=tmp_path)
        assert found.returncode == 0, found.stderr
        left.append([(tmp_path / workers / file).read_bytes() for file in ("policy.safetensors", "records.jsonl")])
    assert left[0] == left[1]
    means = [json.loads(line)["fitness_mean"] for line in left[0][1].splitlines()]
    assert means[-1] > means[0]


def test_a_randomized_robot_is_trained_twice_and_compared(tmp_path: Path) -> None:
    found = run("randomized_robot.py", "--generations", "3", "--population", "20", directory=tmp_path)
    assert found.returncode == 0, found.stderr
    assert len(re.findall(r"trained with spread [\d.]+: mean [\d.]+", found.stdout)) == 2


def test_callbacks_add_figures_stop_a_run_and_a_new_run_goes_on_from_it(tmp_path: Path) -> None:
    found = run("callbacks.py", directory=tmp_path)
    assert found.returncode == 0, found.stderr
    assert re.search(r"first: score -\d+\.\d, a callback; weights grew from", found.stdout)
    assert "second, from there: score -" in found.stdout


def test_every_search_comes_nearer_than_it_started(tmp_path: Path) -> None:
    found = run("compare_searches.py", "--seeds", "2", "--generations", "100", directory=tmp_path)
    assert found.returncode == 0, found.stderr
    medians = [float(line[24:].split()[0]) for line in found.stdout.splitlines()[1:]]
    assert len(medians) == 5 and max(medians) < 3.0 * 30**0.5


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("CartPole", "CartPole-v1"), ("DoublePendulum", "InvertedDoublePendulum-v5"), ("Hopper", "Hopper-v5"),
     ("Walker2d", "Walker2d-v5")],
)  # fmt: skip
def test_tasks_without_velocities_are_gymnasium_s_in_all_but_what_is_observed(ours: str, theirs: str) -> None:
    import gymnasium
    import numpy as np

    from clipup.importing import load_place

    task = getattr(load_place(str(EXAMPLES / "hidden_velocities.py"), ours), ours)
    environment: Any = gymnasium.make(theirs).unwrapped
    environment.action_space.seed(1)
    seen, ended, memory = np.empty(task.observation_size), 0, np.zeros(1)
    environment.reset(seed=1)
    for _ in range(80):
        action = environment.action_space.sample()
        if ours == "CartPole":
            state = np.array(environment.state)
            _, expected, terminated, _, _ = environment.step(action)
            reward, over = task.step(state, action, None, task.options)
            task.observe(state, task.options, seen)
            positions = np.array(environment.state)[[0, 2]]
        else:
            world = environment.model, environment.data, task.options
            if task.before is not None:
                task.before(*world, memory)
            _, expected, terminated, _, _ = environment.step(action)
            reward, over = task.reward(*world, memory, action), task.terminated(*world, seen)
            task.observe(*world, seen)
            positions = environment.data.qpos[-task.observation_size :]
        assert reward == pytest.approx(expected, rel=1e-6) and over == terminated
        assert seen == pytest.approx(positions, rel=1e-12)
        if terminated:
            environment.reset()
            ended += 1
    assert ended
    environment.close()


def test_every_example_is_in_the_list_of_the_documentation() -> None:
    page = (EXAMPLES.parent / "docs/tutorials/index.md").read_text("utf-8")
    assert [path.name for path in EXAMPLES.glob("*.py") if f"](../../examples/{path.name})" not in page] == []
