"""What goes wrong for one candidate is reported as that candidate's, and the others' results stay."""

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

from clipup.engines import Outcomes, Rollout, Task, make_engine
from clipup.engines.envpool import pool
from clipup.engines.gymnasium import engine as gymnasium_engine
from clipup.errors import EnvironmentFault, InvalidArgument
from clipup.policies import Network, Statistics

Maker = Callable[..., object]
NETWORK = Network(2, 1)
# The weights are zero: the bias alone is the action. Row 1 runs off to the right, the others stay near the start.
ROWS = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, -0.1]], np.float32)


def evaluate(maker: Maker, behaviour: str, rows: np.ndarray = ROWS, **fields: object) -> Outcomes:
    engine = make_engine(Task(maker, {"behaviour": behaviour}, **fields))  # type: ignore[arg-type]
    try:
        return engine.evaluate(Rollout(NETWORK, rows, seed=1, generation=0, first=10, collect_moments=True))
    finally:
        engine.close()


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("raises", "RuntimeError: the point fell off"),
        ("nan reward", None),
        ("nan observation", None),
    ],
)
def test_one_candidates_trouble_leaves_the_others_alone(line: Maker, behaviour: str, message: str | None) -> None:
    good, bad = evaluate(line, "good"), evaluate(line, behaviour)
    assert np.isnan(bad.fitness).tolist() == [False, True, False]
    for row in (0, 2):
        assert bad.fitness[row] == good.fitness[row]
        assert bad.interactions[row] == good.interactions[row] == 20
    assert bad.moments is not None
    assert bad.moments.count.tolist() == [20, 0, 20]
    assert [(failure.index, failure.message) for failure in bad.failures] == ([(11, message)] if message else [])


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("four values", "values to unpack"),
        ("wrong shape", "must have shape"),
        ("never ends", "no end after"),
    ],
)
def test_trouble_of_every_candidate_is_one_error(
    line: Maker, behaviour: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gymnasium_engine, "STEP_CAP", 500)
    outcomes = evaluate(line, behaviour)
    assert [failure.index for failure in outcomes.failures] == [10, 11, 12]
    with pytest.raises(EnvironmentFault, match=words) as caught:
        outcomes.check("Line")
    assert "\n" not in str(caught.value)


def test_numbers_that_are_large_but_finite_are_finite(line: Maker) -> None:
    assert np.isfinite(evaluate(line, "huge").fitness).all()


def test_an_environment_of_the_old_kind_is_told_what_reset_returns(line: Maker) -> None:
    outcomes = evaluate(line, "old reset")
    assert "(observation, info)" in outcomes.failures[0].message


def test_envpool_s_endless_episodes_are_stopped_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "STEP_CAP", 15)
    engine = make_engine(Task("CartPole-v1", engine="envpool", episodes=4))
    network = Network(4, 2)
    falls, stands = np.zeros((2, 10), np.float32)
    falls[8] = 1.0  # pushes left whatever comes
    stands[4:8] = 0.0, 0.5, 5.0, 2.0  # pushes to where the pole leans
    outcomes = engine.evaluate(Rollout(network, np.stack([falls, stands]), seed=0, generation=0))
    engine.close()
    assert [(failure.index, failure.message) for failure in outcomes.failures] == [
        (1, "no end after 15 steps; set max_episode_steps")
    ]
    assert np.isnan(outcomes.fitness).tolist() == [False, True]
    assert outcomes.interactions[0] > 15, "in all its episodes"


def test_a_limit_ends_what_never_ends(line: Maker) -> None:
    assert evaluate(line, "never ends", max_episode_steps=7).interactions.tolist() == [7, 7, 7]


def test_reward_terms_replace_the_reward_in_the_fitness_alone(line: Maker) -> None:
    own, terms = evaluate(line, "good"), evaluate(line, "good", reward_terms=(1,))
    np.testing.assert_allclose(terms.fitness, own.fitness - 10.0 * 20)
    assert terms.returns.tolist() == own.returns.tolist()


def test_reward_terms_need_an_environment_that_has_them() -> None:
    with pytest.raises(InvalidArgument, match="reward_terms name term 0 of the reward, but Pendulum-v1 has 0 of them"):
        make_engine(Task("Pendulum-v1", reward_terms=(0,)))


class Broken(gymnasium.Env[Any, Any]):
    """Cannot be stepped."""

    observation_space = action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[Any, dict[str, object]]:
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, object]]:
        raise RuntimeError("out of order")


def test_looking_for_terms_in_an_environment_that_raises_is_one_line() -> None:
    with pytest.raises(EnvironmentFault, match="failed in its first step: RuntimeError: out of order"):
        make_engine(Task(Broken, reward_terms=(0,)))


@pytest.mark.parametrize("env", ["Walker2d-v4", "CartPole-v1"])
def test_parameters_that_are_not_finite_spoil_their_own_candidate_only(env: str) -> None:
    engine = make_engine(Task(env, max_episode_steps=30), lanes=4)
    network = Network(engine.observation_size, engine.actions.size)
    good = 0.01 * np.ones((6, network.parameter_count), np.float32)
    bad = good.copy()
    bad[2] = np.nan
    bad[5, 0] = np.inf
    clean = engine.evaluate(Rollout(network, good, seed=1, generation=0, collect_moments=True))
    spoilt = engine.evaluate(Rollout(network, bad, seed=1, generation=0, collect_moments=True))
    engine.close()
    assert np.isnan(spoilt.fitness[2])
    assert np.isfinite(spoilt.fitness[5]), "an infinite output is clipped, or the choice"
    assert spoilt.moments is not None
    assert spoilt.moments.count[2] == 0
    assert spoilt.fitness[[0, 1, 3, 4]].tobytes() == clean.fitness[[0, 1, 3, 4]].tobytes()


@pytest.mark.parametrize("name", ["compiled", "envpool"])
def test_no_thread_is_left_behind(name: str) -> None:
    before = threads()
    engine = make_engine(Task("CartPole-v1", engine=name), threads=2)
    network = Network(4, 2)
    engine.evaluate(Rollout(network, np.zeros((8, network.parameter_count), np.float32), seed=0, generation=0))
    engine.close()
    engine = make_engine(Task("Walker2d-v4", engine=name, max_episode_steps=3), threads=2, lanes=4)
    network = Network(17, 6)
    engine.evaluate(Rollout(network, np.zeros((8, network.parameter_count), np.float32), seed=0, generation=0))
    engine.close()
    deadline = time.monotonic() + 5.0  # a thread that has ended stays for an instant
    while threads() - before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not threads() - before, "those of earlier tests may end meanwhile"


def threads() -> set[str]:
    """Return the numbers of this process's threads, whoever made them."""
    from pathlib import Path

    return {task.name for task in Path("/proc/self/task").iterdir()}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parameters": np.zeros((2, 9), np.float32)}, "shape"),
        ({"network": Network(5, 2)}, "4 observations"),
        ({"seed": -1}, "seed"),
        ({"generation": -1}, "negative"),
        ({"first": -1}, "negative"),
        ({"stream": "other"}, "stream"),
        ({"statistics": Statistics(np.zeros(3), np.ones(3))}, "4 observations"),
    ],
)
@pytest.mark.parametrize("engine_name", ["envpool", "gymnasium"])
def test_a_request_that_cannot_be_met_is_refused(engine_name: str, changes: dict[str, object], words: str) -> None:
    engine = make_engine(Task("CartPole-v1", engine=engine_name))  # type: ignore[arg-type]
    network = changes.get("network", Network(4, 2, bias=False))
    request = {
        "network": network,
        "parameters": np.zeros((2, network.parameter_count), np.float32),  # type: ignore[attr-defined]
        "seed": 0,
        "generation": 0,
        **changes,
    }
    with pytest.raises(InvalidArgument, match=words):
        engine.evaluate(Rollout(**request))  # type: ignore[arg-type]
    engine.close()
