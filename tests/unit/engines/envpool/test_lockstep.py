"""The hot loop against a pool whose every number is known."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from clipup.engines.accumulator import Accumulator
from clipup.engines.envpool.lockstep import Lockstep
from clipup.engines.envpool.pool import Layout, Pool
from clipup.engines.task import Task
from clipup.policies import Actions, Network
from clipup.policies.act import Actor

SIZE, LANES, ROWS, EPISODES = 3, 4, 10, 2
NETWORK = Network(SIZE, 2)
ACTIONS = Actions.box(np.full(2, -1.0, np.float32), np.ones(2, np.float32))


@dataclass
class Episode:
    """What an environment gives back in one episode, step by step; the last observation is never acted on."""

    observations: NDArray[np.float64]
    rewards: NDArray[np.float64]


def make_episode(slot: int, number: int) -> Episode:
    generator = np.random.default_rng([slot, number])
    steps = int(generator.integers(1, 9))
    return Episode(1e3 + generator.normal(size=(steps + 1, SIZE)), generator.normal(size=steps))


@dataclass
class ScriptedPool:
    """Stands for EnvPool: a lane that has ended is reset by the next send, with a reward that must not count."""

    layout: Layout
    episodes: dict[tuple[int, int], Episode] = field(default_factory=dict)
    resets: NDArray[np.int64] = field(default_factory=lambda: np.zeros(LANES, np.int64))
    actions: list[NDArray[np.float32]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.number = [-1] * LANES
        self.step = [0] * LANES
        self.waiting: list[tuple[NDArray[np.float64], float, bool]] = []

    def episode(self, slot: int) -> Episode:
        return self.episodes.setdefault((slot, self.number[slot]), make_episode(slot, self.number[slot]))

    def reset(self, slots: NDArray[np.int32]) -> None:
        self.waiting = [self.start(int(slot)) for slot in slots]

    def start(self, slot: int) -> tuple[NDArray[np.float64], float, bool]:
        self.number[slot] += 1
        self.step[slot] = 0
        return self.episode(slot).observations[0], 0.0, False

    def send(self, slots: NDArray[np.int32], actions: NDArray[np.float32]) -> None:
        self.actions.append(actions.copy())
        self.waiting = [self.advance(int(slot)) for slot in slots]

    def advance(self, slot: int) -> tuple[NDArray[np.float64], float, bool]:
        episode = self.episode(slot)
        if self.step[slot] == len(episode.rewards):
            observation, _, done = self.start(slot)
            return observation, 99.0, done
        reward = float(episode.rewards[self.step[slot]])
        self.step[slot] += 1
        return episode.observations[self.step[slot]], reward, self.step[slot] == len(episode.rewards)

    def receive(self) -> list[NDArray[Any]]:
        observations, rewards, done = zip(*self.waiting, strict=True)
        return [np.array(observations), np.array(rewards), np.array(done)]


def run(
    parameters: NDArray[np.float32], episodes: dict[tuple[int, int], Episode] | None = None, **layout: Any
) -> tuple[Accumulator, ScriptedPool]:
    task = Task("CartPole-v1", episodes=EPISODES)
    fields: dict[str, Any] = {"step_limit": 100, "endless": False, "replayable": True, **layout}
    pool = ScriptedPool(Layout(task, SIZE, ACTIONS, (0,), 1, 2, **fields), dict(episodes or {}))
    accumulator = Accumulator(len(parameters), SIZE, collect_moments=True)
    slots, rows = np.arange(LANES, dtype=np.int32), np.arange(LANES)
    actor = Actor(NETWORK, None, ACTIONS)
    lockstep = Lockstep(cast(Pool, pool), slots, rows, LANES, actor, actor.arrange(parameters), accumulator)
    with np.errstate(all="ignore"):
        while lockstep.advance():
            pass
    return accumulator, pool


def population(rows: int = ROWS) -> NDArray[np.float32]:
    return np.random.default_rng(0).normal(size=(rows, NETWORK.parameter_count)).astype(np.float32)


def places(row: int) -> list[tuple[int, int]]:
    """The slot and the episode numbers of a candidate."""
    turn, slot = divmod(row, LANES)
    return [(slot, turn * EPISODES + episode) for episode in range(EPISODES)]


def test_sums_steps_and_moments_are_those_of_each_candidate_s_own_episodes() -> None:
    accumulator, pool = run(population())
    assert accumulator.moments is not None
    for row in range(ROWS):
        mine = [pool.episodes[place] for place in places(row)]
        seen = np.concatenate([episode.observations[:-1] for episode in mine])
        assert accumulator.steps[row] == len(seen) == accumulator.moments.count[row]
        np.testing.assert_allclose(accumulator.totals[row], sum(episode.rewards.sum() for episode in mine), rtol=1e-12)
        np.testing.assert_allclose(accumulator.moments.mean[row], seen.mean(axis=0), rtol=1e-13)
        np.testing.assert_allclose(accumulator.moments.m2[row] / len(seen), seen.var(axis=0), rtol=1e-10, atol=1e-10)
    assert not accumulator.broken.any() and not accumulator.endless.any()


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("where", ["observations", "rewards"])
def test_what_is_not_finite_spoils_the_candidate_that_saw_it_and_no_other(where: str, value: float) -> None:
    clean, pool = run(population())
    episodes = copy.deepcopy(pool.episodes)
    getattr(episodes[places(6)[1]], where).flat[0] = value
    accumulator, _ = run(population(), episodes)
    outcomes = accumulator.outcomes(Task("CartPole-v1", episodes=EPISODES))
    expected = clean.outcomes(Task("CartPole-v1", episodes=EPISODES))
    others = [row for row in range(ROWS) if row != 6]
    assert np.isnan(outcomes.fitness[6])
    assert outcomes.fitness[others].tobytes() == expected.fitness[others].tobytes()


def test_simulators_see_no_nan_and_other_rows_keep_their_infinities() -> None:
    parameters = population()
    parameters[1] = np.nan
    parameters[2] = 0.0
    parameters[2, -2:] = np.inf, -np.inf  # the bias: its outputs are infinite, and clipped to the bounds
    accumulator, pool = run(parameters)
    assert np.flatnonzero(accumulator.broken).tolist() == [1]
    assert all(np.isfinite(actions).all() for actions in pool.actions)
    assert pool.actions[0][2].tolist() == [1.0, -1.0]


@pytest.mark.parametrize("endless", [True, False])
def test_an_episode_counts_as_endless_by_its_own_steps(endless: bool) -> None:
    lengths = {(slot, number): make_episode(slot, number) for slot in range(LANES) for number in range(6)}
    limit = max(len(episode.rewards) for episode in lengths.values())
    accumulator, _ = run(population(), lengths, endless=endless, step_limit=limit)
    long = [row for row in range(ROWS) if any(len(lengths[place].rewards) == limit for place in places(row))]
    assert 0 < len(long) < ROWS
    assert np.flatnonzero(accumulator.endless).tolist() == (long if endless else [])
    assert (accumulator.steps[[row for row in range(ROWS) if row not in long]] >= limit).any(), (
        "more steps, shorter episodes"
    )
