"""Every executor gives the results of this process, to the bit."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from clipup import PGPE
from clipup.engines import Outcomes, Task
from clipup.errors import EnvironmentFault, InvalidArgument, UnknownEnvironment
from clipup.executors import Executor, distributed, make_executor
from clipup.executors.distributed import DistributedExecutor
from clipup.executors.inline import InlineExecutor
from clipup.executors.jobs import Setup
from clipup.executors.processes import ProcessTransport
from clipup.policies import Statistics
from clipup.searches import GaussianBatch

ENVIRONMENTS = Path(__file__).parents[1] / "environments"
sys.path.append(str(ENVIRONMENTS))

TASKS = {
    "gymnasium-linear": (Task("Pendulum-v1", engine="gymnasium", max_episode_steps=30), "linear-bias"),
    "envpool-mlp": (Task("Hopper-v4", engine="envpool", max_episode_steps=60, episodes=2), "mlp:8"),
    "own-robot-by-file": (Task(f"{ENVIRONMENTS / 'own_robots.py'}:Slider", episodes=2), "mlp:4:silu+gru:5"),
    "own-task-by-module": (Task("own_robots:Walk", env_options={"weight": 2}), "own_policies:Leaky(keep=0.25)"),
}
LANES = 16
Make = Callable[[Task, str], Executor]


def inline(task: Task, policy: str) -> Executor:
    return InlineExecutor(Setup(task, policy, collect_moments=True, lanes=LANES), threads=1)


def processes(task: Task, policy: str) -> Executor:
    return DistributedExecutor(ProcessTransport(Setup(task, policy, collect_moments=True, lanes=LANES), 2), task)


def ray(task: Task, policy: str) -> Executor:
    return make_executor(task, policy, collect_moments=True, lanes=LANES, workers=2, cluster="ray")


EXECUTORS: dict[str, Make] = {"inline": inline, "processes": processes, "ray": ray}


@pytest.fixture(scope="module", params=EXECUTORS)
def make(request: pytest.FixtureRequest) -> Make:
    if request.param == "ray":
        request.getfixturevalue("ray_session")
    return EXECUTORS[request.param]


@pytest.fixture(scope="module", params=TASKS)
def pair(request: pytest.FixtureRequest, make: Make) -> Iterator[tuple[Executor, Executor]]:
    """Yield the executor under test, and a new one in this process."""
    task, policy = TASKS[request.param]
    tested, own = make(task, policy), inline(task, policy)
    yield tested, own
    tested.close()
    tested.close()
    own.close()


def search_for(executor: Executor, population: int = 40) -> PGPE:
    return PGPE(
        dimension=executor.description.network.parameter_count, population_size=population, max_speed=0.2, seed=11
    )


def statistics_for(executor: Executor) -> Statistics:
    size = executor.description.network.observation_size
    return Statistics(np.linspace(-0.5, 0.5, size), np.linspace(0.5, 2.0, size))


def same(one: Outcomes, other: Outcomes) -> bool:
    assert one.moments is not None or other.moments is None
    arrays = [(one.fitness, other.fitness), (one.returns, other.returns), (one.interactions, other.interactions)]
    if one.moments is not None and other.moments is not None:
        arrays += [(getattr(one.moments, name), getattr(other.moments, name)) for name in ("count", "mean", "m2")]
    return one.failures == other.failures and all(
        left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
        for left, right in arrays
    )


def test_it_tells_what_it_runs(pair: tuple[Executor, Executor]) -> None:
    tested, own = pair
    assert tested.description == own.description
    assert tested.place


@pytest.mark.parametrize("normalized", [False, True])
def test_a_batch_has_the_bits_of_this_process(pair: tuple[Executor, Executor], normalized: bool) -> None:
    tested, own = pair
    batch = search_for(own).batch()
    statistics = statistics_for(own) if normalized else None
    first = tested.evaluate(batch, statistics)
    assert same(first, own.evaluate(batch, statistics))
    assert same(first, tested.evaluate(batch, statistics)), "asking again gives the same"


def test_a_batch_in_the_middle_of_a_generation_needs_nothing_before_it(pair: tuple[Executor, Executor]) -> None:
    tested, own = pair
    batch = dataclasses.replace(search_for(own).batch(), generation=7, start=22, stop=35)
    assert same(tested.evaluate(batch, None), own.evaluate(batch, None))


def test_the_center_is_evaluated_to_the_same_bits(pair: tuple[Executor, Executor]) -> None:
    own = pair[1]
    center = search_for(own).ask()[0]
    statistics = statistics_for(own)
    results = [each.evaluate_center(center, statistics, seed=3, generation=5, episodes=5) for each in pair]
    assert len(results[0]) == 5
    assert same(*results)


def test_what_is_begun_early_never_shows(pair: tuple[Executor, Executor]) -> None:
    tested, own = pair
    batch = search_for(own, 12).batch()

    def at(generation: int, start: int) -> GaussianBatch:
        return dataclasses.replace(batch, generation=generation, start=start, stop=start + 12)

    for generation, batches in enumerate([3, 1, 2]):
        for number in range(batches):
            asked = at(generation, 12 * number)
            following = asked.until(asked.stop + 12)
            assert same(tested.evaluate(asked, None, following=following), own.evaluate(asked, None))


def test_gradients_are_summed_to_the_same_bits(
    pair: tuple[Executor, Executor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributed, "SUMMED_BY_WORKERS", 0)
    monkeypatch.setattr(distributed, "WINDOW_BYTES", 2000)
    tested, own = pair
    one, other = search_for(own, 700), search_for(own, 700)
    for search, executor in ((one, tested), (other, own)):
        search.batch()
        fitnesses = np.sin(np.arange(700.0))
        assert search.tell(fitnesses, sum_blocks=executor.sum_blocks)
    assert one.center.tobytes() == other.center.tobytes()
    assert one.stdev.tobytes() == other.stdev.tobytes()
    batch = dataclasses.replace(one.batch(), stop=8)
    assert same(tested.evaluate(batch, None), own.evaluate(batch, None)), "and evaluation goes on"


def test_an_unknown_environment_is_refused_as_in_this_process(make: Make) -> None:
    with pytest.raises(UnknownEnvironment, match="Pendulum-v1"):
        make(Task("Pendulun-v1"), "linear")


def test_failures_keep_their_candidates_and_a_batch_that_fails_whole_is_an_error(make: Make, misbehaving: str) -> None:
    task = Task(misbehaving, env_options={"how": "raise", "above": 0.0})
    executor = make(task, "linear")
    search = PGPE(dimension=1, population_size=12, max_speed=0.2, stdev=1.0, seed=1)
    outcomes = executor.evaluate(search.batch(), None)
    failed = np.flatnonzero(search.ask()[:, 0] > 0)
    assert [failure.index for failure in outcomes.failures] == failed.tolist()
    assert np.flatnonzero(np.isnan(outcomes.fitness)).tolist() == failed.tolist()
    search = PGPE(center=[50.0], population_size=12, max_speed=0.2, stdev=1.0, seed=1)
    with pytest.raises(EnvironmentFault, match="failed for all 12 candidates; the first: RuntimeError: action"):
        executor.evaluate(search.batch(), None)
    executor.close()


def test_where_evaluation_runs_is_checked() -> None:
    task = Task("Pendulum-v1", engine="gymnasium")
    for wrong in ({"workers": 0}, {"workers": 0, "cluster": "ray"}, {"workers": 2, "episode_timeout": 0.0}):
        with pytest.raises(
            InvalidArgument, match=r"workers must be at least 1, got 0|episode_timeout must be positive"
        ):
            make_executor(task, "linear", collect_moments=False, **wrong)
