"""Every engine, one promise: a candidate's result depends on its own inputs alone, to the last bit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clipup
from clipup.engines import Engine, EngineDescription, Outcomes, Rollout, Task, make_engine, registry
from clipup.engines.accumulator import Accumulator
from clipup.engines.protocol import EngineEntry
from clipup.engines.seeding import seed_indices, seed_words, uint32
from clipup.errors import ClipUpError, InvalidArgument, UnknownEnvironment
from clipup.evaluation.video import play
from clipup.policies import Actions, Moments, Network, Normalizer, Statistics, parse_policy
from clipup.policies.act import Actor

# Environment, engine, network, size of the parameters, candidates.
CASES = {
    "compiled-Walker2d-v5": ("Walker2d-v5", "compiled", "linear-bias", 0.05, 30),
    "compiled-Humanoid-v4": ("Humanoid-v4", "compiled", "mlp:16", 0.05, 22),
    "compiled-CartPole-v1": ("CartPole-v1", "compiled", "linear-bias", 0.5, 30),
    "compiled-Pendulum-v1": ("Pendulum-v1", "compiled", "gru:8", 0.5, 8),
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
    "toy-Toy-v0": ("Toy-v0", "toy", "gru:4", 0.5, 8),
}  # fmt: skip
LANES = 12


# -- an engine to copy: the smallest that keeps the promise ------------------------------------------------------------


class ToyEngine(Engine):
    """A point on a line that the policy pushes; the reward is its place, and an episode has at most 30 steps."""

    def __init__(self, task: Task, reason: str) -> None:
        self.task = task
        bound = np.ones(1, np.float32)
        self.description = EngineDescription("toy", "1.0", reason, 2, Actions.box(-bound, bound))

    def evaluate(self, rollout: Rollout) -> Outcomes:
        rollout.check(self.observation_size, self.actions.size)
        task, rows = self.task, rollout.parameters
        results = Accumulator(len(rows), self.observation_size, collect_moments=rollout.collect_moments)
        actor = Actor(rollout.network, rollout.statistics, self.actions)
        arranged = actor.arrange(rows)
        for row, index in enumerate(rollout.indices):
            results.totals[row], seen = 0.0, []
            for episode in range(task.episodes):
                words = seed_words(
                    rollout.seed, "candidate", epoch=rollout.generation, stream=rollout.stream, episode=episode,
                    indices=seed_indices(np.array([index]), task.episode_seeds),
                )  # fmt: skip
                place, state = np.random.default_rng(uint32(words)).normal(size=2), actor.initial_state(1)
                for _ in range(min(task.max_episode_steps or 30, 30)):
                    seen.append(place)
                    actions, broken = actor.act_without_nan(arranged[row : row + 1], place[np.newaxis], state)
                    results.broken[row] |= broken is not None
                    place = np.array([place[0] + 0.1 * actions[0, 0], place[0]])
                    results.totals[row] += place[0]
            results.steps[row] = len(seen)
            if results.moments is not None:
                moments = Moments.of(np.array(seen))
                results.moments.count[row], results.moments.mean[row] = len(seen), moments.mean[0]
                results.moments.m2[row] = moments.m2[0]
        return results.outcomes(task)

    def close(self) -> None:
        pass


class ToyEntry(EngineEntry):
    name = "toy"
    title = "The toy"
    own_threads = True  # so that nothing starts processes, which would not know it

    def ids(self) -> tuple[str, ...]:
        return ("Toy-v0",)

    def refusal(self, task: Task) -> ClipUpError | None:
        return None if task.env == "Toy-v0" else UnknownEnvironment(f"The toy has no {task.label}")

    def make(self, task: Task, *, lanes: int, threads: int | None, reason: str) -> Engine:
        return ToyEngine(task, reason)


@pytest.fixture(autouse=True)
def _a_third_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "ENTRIES", (ToyEntry(), *registry.ENTRIES))


# -- every engine ------------------------------------------------------------------------------------------------------


class Case:
    """A task, a population, and engines for it."""

    def __init__(self, env: str, engine: Any, network: str, scale: float, count: int, **fields: Any) -> None:
        self.task = Task(env, engine=engine, max_episode_steps=fields.pop("max_episode_steps", 150), **fields)
        self.engines: list[Engine] = []
        first = self.engine()
        self.network = parse_policy(network, first.observation_size, first.actions.size)
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
        return engine.evaluate(Rollout(self.network, self.parameters[start:stop], **{**arguments, **changes}))

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
    [
        ("Walker2d-v4", "compiled"),
        ("Pendulum-v1", "compiled"),
        ("Walker2d-v4", "envpool"),
        ("LunarLanderContinuous-v3", "auto"),
        ("Pendulum-v1", "gymnasium"),
        ("Toy-v0", "toy"),
    ],
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


@pytest.mark.parametrize(
    ("env", "engine"), [("Walker2d-v4", "compiled"), ("Walker2d-v4", "envpool"), ("LunarLanderContinuous-v3", "auto")]
)
@pytest.mark.parametrize("sharing", ["pair", "shared"])
def test_seeds_in_common_are_so_in_every_episode(env: str, engine: str, sharing: Any) -> None:
    # One step an episode: what a candidate sees is where its episodes start, whatever its policy does.
    case = Case(env, engine, "linear-bias", 0.5, 8, episodes=3, episode_seeds=sharing, max_episode_steps=1)
    moments = case.run(case.engines[0]).moments
    case.close()
    assert moments is not None and moments.count.tolist() == [3] * 8
    starts = {moments.mean[row].tobytes() for row in range(8)}
    assert len(starts) == (4 if sharing == "pair" else 1)
    assert (moments.mean[0::2] == moments.mean[1::2]).all()


@pytest.mark.parametrize("engine", ["compiled", "envpool", "gymnasium"])
def test_interactions_fitness_and_returns_are_exact(engine: Any) -> None:
    # CartPole pays 1 for each step, so the return is the number of steps taken.
    made = make_engine(Task("CartPole-v1", engine=engine, episodes=2, reward_offset=-0.25), lanes=4)
    network = Network(4, 2)
    parameters = np.random.default_rng(0).standard_normal((9, network.parameter_count)).astype(np.float32)
    outcomes = made.evaluate(Rollout(network, parameters, seed=0, generation=0))
    made.close()
    assert outcomes.moments is None
    np.testing.assert_array_equal(outcomes.returns * 2, outcomes.interactions)
    np.testing.assert_allclose(outcomes.fitness, 0.75 * outcomes.returns)


@pytest.mark.parametrize("engine", ["compiled", "envpool", "gymnasium"])
def test_a_cap_bounds_what_a_step_counts_on_average_and_leaves_the_returns(engine: Any) -> None:
    # With the offset, some of these candidates get more than -6.8 for a step on average, some less.
    plain = Task("Pendulum-v1", engine=engine, episodes=2, reward_offset=1.0)
    parameters = np.random.default_rng(0).standard_normal((9, 4)).astype(np.float32)
    outcomes: list[Outcomes] = []
    for task in (plain, replace(plain, reward_cap=-6.8)):
        made = make_engine(task, lanes=4)
        outcomes.append(made.evaluate(Rollout(Network(3, 1), parameters, seed=0, generation=0)))
        made.close()
    free, capped = outcomes
    bound = -6.8 * free.interactions / 2
    assert (free.fitness > bound).any() and (free.fitness < bound).any()
    np.testing.assert_array_equal(capped.fitness, np.minimum(free.fitness, bound))
    np.testing.assert_array_equal(capped.returns, free.returns)


@pytest.mark.parametrize("engine", ["compiled", "envpool", "gymnasium"])
def test_a_limit_of_steps_is_kept(engine: Any) -> None:
    made = make_engine(Task("Pendulum-v1", engine=engine, max_episode_steps=13))
    outcomes = made.evaluate(Rollout(Network(3, 1), np.zeros((3, 4), np.float32), seed=0, generation=0))
    made.close()
    assert outcomes.interactions.tolist() == [13, 13, 13]


@pytest.mark.parametrize("engine", ["compiled", "envpool", "gymnasium"])
def test_no_candidates_give_no_outcomes(engine: Any) -> None:
    made = make_engine(Task("CartPole-v1", engine=engine))
    outcomes = made.evaluate(
        Rollout(Network(4, 2), np.zeros((0, 10), np.float32), seed=0, generation=0, collect_moments=True)
    )
    assert len(outcomes) == 0
    assert outcomes.moments is not None
    assert outcomes.moments.mean.shape == (0, 4)


@pytest.mark.parametrize("engine", ["compiled", "envpool", "gymnasium"])
def test_moments_are_those_of_the_observations_acted_on(engine: Any) -> None:
    import gymnasium

    task = Task("Pendulum-v1", engine=engine, max_episode_steps=25)
    made = make_engine(task)
    network = Network(3, 1)
    parameters = np.zeros((1, 4), np.float32)
    outcomes = made.evaluate(Rollout(network, parameters, seed=2, generation=0, collect_moments=True))
    made.close()
    assert outcomes.moments is not None
    assert outcomes.moments.count.tolist() == [25]
    if engine != "envpool":
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


def test_an_engine_says_what_it_is(case: Case) -> None:
    engine = case.engines[0]
    description = engine.description
    assert description == EngineDescription(
        engine.name,
        description.version,
        engine.reason,
        engine.observation_size,
        engine.actions,
        solved_score={"LunarLanderContinuous-v3": 200.0, "CartPole-v1": 475.0}.get(str(case.task.env)),
    )
    assert description.name == case.task.engine == registry.entry(engine.name).name
    assert description.version[0].isdecimal()


def test_each_entry_answers_what_others_ask() -> None:
    for entry in registry.ENTRIES:
        assert entry.parallelism in ("threads", "processes")
        assert entry.preferred_candidates >= 1
        assert all(entry.has(env) for env in list(entry.ids())[:3])
        refusal = entry.refusal(Task("Nonsense-v0", reward_terms=(0,)))
        assert refusal is None or "\n" not in str(refusal)


def test_an_engine_in_the_registry_trains_evaluates_and_is_refused_what_it_lacks(tmp_path: Path) -> None:
    result = clipup.train("Toy-v0", generations=3, population=8, run=tmp_path / "run")
    assert result.generation == 3
    policy = clipup.load_policy(tmp_path / "run")
    assert clipup.evaluate(policy, Task("Toy-v0"), episodes=2).engine == "toy"
    with pytest.raises(UnknownEnvironment, match="did you mean Toy-v0"):
        make_engine(Task("Toyy-v0"))
    with pytest.raises(InvalidArgument, match="The toy cannot render"):
        play(policy, Task("Toy-v0", engine="toy"))
    with pytest.raises(InvalidArgument, match="The toy cannot be measured"):
        registry.entry("toy").bare_simulator(Task("Toy-v0"), count=1, threads=1)


def test_a_description_is_the_same_without_making_the_engine(case: Case) -> None:
    assert registry.describe(case.task) == case.engines[0].description
