"""Every engine, one promise: a candidate's result depends on its own inputs alone, to the last bit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from clipup.engines import Engine, Outcomes, Task, make_engine
from clipup.policies import Network, Normalizer, Statistics

# Environment, engine, network, size of the parameters, candidates.
CASES = {
    "envpool-LunarLanderContinuous-v3": ("LunarLanderContinuous-v3", "envpool", "linear", 0.5, 30),
    "envpool-Walker2d-v4": ("Walker2d-v4", "envpool", "linear-bias", 0.05, 30),
    "envpool-Humanoid-v4": ("Humanoid-v4", "envpool", "mlp:16", 0.05, 22),
    "envpool-CartPole-v1": ("CartPole-v1", "envpool", "linear-bias", 0.5, 30),
    "gymnasium-LunarLanderContinuous-v3": ("LunarLanderContinuous-v3", "gymnasium", "linear", 0.5, 8),
    "gymnasium-Walker2d-v5": ("Walker2d-v5", "gymnasium", "linear-bias", 0.05, 8),
    "gymnasium-Pendulum-v1": ("Pendulum-v1", "gymnasium", "mlp:8:relu", 0.5, 6),
    "gymnasium-HumanoidBullet": (
        "pybullet_envs_gymnasium:HumanoidBulletEnv-v0", "gymnasium", "mlp:64", 0.05, 6,
    ),
}  # fmt: skip
LANES = 12


class Case:
    """A task, a population, and engines for it."""

    def __init__(self, env: str, engine: Any, network: str, scale: float, count: int, **fields: Any) -> None:
        self.task = Task(env, engine=engine, max_episode_steps=fields.pop("max_episode_steps", 150), **fields)
        self.engines: list[Engine] = []
        first = self.engine()
        self.network = Network.parse(network, first.observation_size, first.actions.size)
        generator = np.random.default_rng(0)
        self.parameters = (scale * generator.standard_normal((count, self.network.parameter_count))).astype(np.float32)
        self.statistics = Statistics(
            generator.normal(0.0, 0.1, first.observation_size), generator.uniform(0.5, 2.0, first.observation_size)
        )

    def engine(self, *, threads: int = 2) -> Engine:
        self.engines.append(make_engine(self.task, lanes=LANES, threads=threads))
        return self.engines[-1]

    def run(self, engine: Engine, start: int = 0, stop: int | None = None, **changes: Any) -> Outcomes:
        arguments: dict[str, Any] = {
            "seed": 5, "generation": 3, "first": start, "statistics": self.statistics, "collect_moments": True,
        }  # fmt: skip
        return engine.evaluate(self.network, self.parameters[start:stop], **{**arguments, **changes})

    def close(self) -> None:
        for engine in self.engines:
            engine.close()


def bits(outcomes: Outcomes) -> tuple[bytes, ...]:
    moments = outcomes.moments
    assert moments is not None
    arrays = (outcomes.fitness, outcomes.returns, outcomes.interactions, moments.count, moments.mean, moments.m2)
    return tuple(array.tobytes() for array in arrays)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    made = Case(*CASES[request.param])
    yield made
    made.close()


def test_same_bits_for_any_threads_any_split_alone_and_twice(case: Case) -> None:
    engine = case.engines[0]
    whole = case.run(engine)
    assert np.isfinite(whole.fitness).all()
    assert whole.moments is not None
    assert whole.moments.count.tolist() == whole.interactions.tolist()
    assert bits(case.run(engine)) == bits(whole), "twice"
    assert bits(case.run(case.engine(threads=1))) == bits(whole), "one thread"
    count = len(case.parameters)
    cuts = [0, 1, count // 3, count // 2 + 1, count]
    ranges = list(itertools.pairwise(cuts))
    split = [case.run(case.engine(), start, stop) for start, stop in ranges]
    assert bits(Outcomes.concatenate(split)) == bits(whole), "split over several engines"
    order = [2, 0, 3, 1]
    shuffled = {index: case.run(engine, *ranges[index]) for index in order}
    assert bits(Outcomes.concatenate([shuffled[index] for index in sorted(order)])) == bits(whole), "out of order"
    for row in (count - 1, 3):
        alone = case.run(case.engine(), row, row + 1)
        assert alone.fitness[0] == whole.fitness[row], "alone"


def test_the_layout_of_the_parameters_in_memory_changes_nothing(case: Case) -> None:
    whole = case.run(case.engines[0])
    case.parameters = np.asfortranarray(case.parameters)
    assert bits(case.run(case.engines[0])) == bits(whole)


def test_other_generations_before_change_nothing(case: Case) -> None:
    fresh = case.run(case.engines[0], generation=6)
    other = case.engine()
    case.run(other, 2, 7, generation=4)
    case.run(other, generation=6, seed=9)
    case.run(other, generation=9, stream="evaluation")
    assert bits(case.run(other, generation=6)) == bits(fresh)


def test_seed_generation_and_stream_change_the_episodes(case: Case) -> None:
    engine = case.engines[0]
    results = [
        case.run(engine, 0, 2, **changes).fitness.tolist()
        for changes in ({}, {"seed": 6}, {"generation": 4}, {"stream": "evaluation"})
    ]
    assert len({tuple(result) for result in results}) == 4


def test_a_callers_arrays_are_left_alone(case: Case) -> None:
    before = case.parameters.tobytes()
    case.run(case.engines[0])
    assert case.parameters.tobytes() == before


@pytest.mark.parametrize(
    ("env", "engine"),
    [("Walker2d-v4", "auto"), ("LunarLanderContinuous-v3", "auto"), ("Pendulum-v1", "gymnasium")],
)
class TestEpisodes:
    """Several episodes, and seeds in common."""

    def test_several_episodes_are_as_pure(self, env: str, engine: str) -> None:
        case = Case(env, engine, "linear-bias", 0.05, 30, episodes=3, max_episode_steps=40)
        whole = case.run(case.engines[0])
        parts = [case.run(case.engine(threads=1), start, stop) for start, stop in [(0, 4), (4, 17), (17, 30)]]
        assert bits(Outcomes.concatenate(parts)) == bits(whole)
        assert whole.interactions.max() <= 120
        assert whole.moments is not None
        assert whole.moments.count.tolist() == whole.interactions.tolist()
        case.close()

    def test_shared_seeds_give_equal_candidates_equal_results(self, env: str, engine: str) -> None:
        fields: dict[str, Any] = {"max_episode_steps": 40, "episodes": 2}
        case = Case(env, engine, "linear-bias", 0.05, 30, episode_seeds="shared", **fields)
        case.parameters[:] = case.parameters[0]
        assert len(set(case.run(case.engines[0]).fitness.tolist())) == 1
        case.close()
        case = Case(env, engine, "linear-bias", 0.05, 30, episode_seeds="pair", **fields)
        case.parameters[:] = case.parameters[0]
        fitness = case.run(case.engines[0]).fitness.reshape(15, 2)
        assert (fitness[:, 0] == fitness[:, 1]).all()
        assert len(set(fitness[:, 0].tolist())) == 15
        case.close()
        case = Case(env, engine, "linear-bias", 0.05, 30, **fields)
        case.parameters[:] = case.parameters[0]
        assert len(set(case.run(case.engines[0]).fitness.tolist())) == 30
        case.close()


@pytest.mark.parametrize("env", ["Walker2d-v4", "LunarLanderContinuous-v3"])
@pytest.mark.parametrize("sharing", ["pair", "shared"])
def test_seeds_in_common_are_so_in_every_episode(env: str, sharing: Any) -> None:
    # One step an episode: what a candidate sees is where its episodes start, whatever its policy does.
    case = Case(env, "auto", "linear-bias", 0.5, 8, episodes=3, episode_seeds=sharing, max_episode_steps=1)
    moments = case.run(case.engines[0]).moments
    case.close()
    assert moments is not None and moments.count.tolist() == [3] * 8
    starts = {moments.mean[row].tobytes() for row in range(8)}
    assert len(starts) == (4 if sharing == "pair" else 1)
    assert (moments.mean[0::2] == moments.mean[1::2]).all()


@pytest.mark.parametrize("engine", ["envpool", "gymnasium"])
def test_interactions_fitness_and_returns_are_exact(engine: Any) -> None:
    # CartPole pays 1 for each step, so the return is the number of steps taken.
    made = make_engine(Task("CartPole-v1", engine=engine, episodes=2, reward_offset=-0.25), lanes=4)
    network = Network(4, 2)
    parameters = np.random.default_rng(0).standard_normal((9, network.parameter_count)).astype(np.float32)
    outcomes = made.evaluate(network, parameters, seed=0, generation=0)
    made.close()
    assert outcomes.moments is None
    np.testing.assert_array_equal(outcomes.returns * 2, outcomes.interactions)
    np.testing.assert_allclose(outcomes.fitness, 0.75 * outcomes.returns)


@pytest.mark.parametrize("engine", ["envpool", "gymnasium"])
def test_a_limit_of_steps_is_kept(engine: Any) -> None:
    made = make_engine(Task("Pendulum-v1", engine=engine, max_episode_steps=13))
    outcomes = made.evaluate(Network(3, 1), np.zeros((3, 4), np.float32), seed=0, generation=0)
    made.close()
    assert outcomes.interactions.tolist() == [13, 13, 13]


@pytest.mark.parametrize("engine", ["envpool", "gymnasium"])
def test_no_candidates_give_no_outcomes(engine: Any) -> None:
    made = make_engine(Task("CartPole-v1", engine=engine))
    outcomes = made.evaluate(Network(4, 2), np.zeros((0, 10), np.float32), seed=0, generation=0, collect_moments=True)
    assert len(outcomes) == 0
    assert outcomes.moments is not None
    assert outcomes.moments.mean.shape == (0, 4)


@pytest.mark.parametrize("engine", ["envpool", "gymnasium"])
def test_moments_are_those_of_the_observations_acted_on(engine: Any) -> None:
    import gymnasium

    task = Task("Pendulum-v1", engine=engine, max_episode_steps=25)
    made = make_engine(task)
    network = Network(3, 1)
    parameters = np.zeros((1, 4), np.float32)
    outcomes = made.evaluate(network, parameters, seed=2, generation=0, collect_moments=True)
    made.close()
    assert outcomes.moments is not None
    assert outcomes.moments.count.tolist() == [25]
    if engine == "gymnasium":
        from clipup.engines.seeding import seed_words, uint32

        words = seed_words(2, "candidate", epoch=0, stream="training", indices=np.array([0]))
        environment = gymnasium.make("Pendulum-v1")
        observation, _ = environment.reset(seed=uint32(words)[0])
        seen = []
        for _ in range(25):
            seen.append(observation)
            observation = environment.step(np.zeros(1, np.float32))[0]
        values = np.array(seen, np.float64)
        np.testing.assert_allclose(outcomes.moments.mean[0], values.mean(axis=0), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(outcomes.moments.m2[0] / 25, values.var(axis=0), rtol=1e-10)


def test_statistics_of_a_generation_follow_from_its_candidates_in_order() -> None:
    case = Case("Walker2d-v4", "envpool", "linear-bias", 0.05, 20)
    whole, parts = Normalizer(17), Normalizer(17)
    outcomes = case.run(case.engines[0])
    assert outcomes.moments is not None
    whole.merge(outcomes.moments)
    for start in range(0, 20, 6):
        part = case.run(case.engine(), start, min(start + 6, 20)).moments
        assert part is not None
        parts.merge(part)
    assert whole.mean.tobytes() == parts.mean.tobytes()
    assert whole.variance.tobytes() == parts.variance.tobytes()
    case.close()
