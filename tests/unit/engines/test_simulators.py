"""How many simulators live, and that none outlives its use, also where something fails."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from clipup.engines import Rollout, Task, check_environment, make_engine
from clipup.engines.envpool import engine as envpool_engine
from clipup.engines.envpool import lanes
from clipup.engines.envpool.lockstep import Lockstep
from clipup.engines.envpool.pool import Pool
from clipup.errors import ClipUpError
from clipup.policies import Network
from tests.unit.engines.conftest import Line


class Census:
    """Counts the environments of all pools."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.alive = self.most = 0
        census = self

        class Counted(Pool):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                self.open = True
                census.alive += len(self.lanes)
                census.most = max(census.most, census.alive)

            def close(self) -> None:
                super().close()
                census.alive -= len(self.lanes) if self.open else 0
                self.open = False

        monkeypatch.setattr(envpool_engine, "Pool", Counted)
        monkeypatch.setattr(lanes, "Pool", Counted)


@pytest.fixture
def census(monkeypatch: pytest.MonkeyPatch) -> Census:
    return Census(monkeypatch)


# A task that is made anew for each candidate, and one whose lanes are used again: those of candidates beyond the lanes
# are other ones.
@pytest.mark.parametrize(("env", "most"), [("CartPole-v1", 8), ("InvertedPendulum-v4", 16)])
def test_a_large_population_does_not_need_as_many_simulators(env: str, most: int, census: Census) -> None:
    engine = make_engine(Task(env, engine="envpool", max_episode_steps=20), lanes=8)
    network = Network(4, engine.actions.size)
    for generation in range(3):
        engine.evaluate(
            Rollout(network, np.zeros((50, network.parameter_count), np.float32), seed=0, generation=generation)
        )
    assert 0 < census.most <= most
    engine.close()
    assert census.alive == 0


@pytest.mark.parametrize("env", ["CartPole-v1", "InvertedPendulum-v4"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_evaluation_that_is_cut_short_leaves_no_simulator(
    env: str, error: type[BaseException], census: Census, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine(Task(env, engine="envpool", max_episode_steps=20), lanes=8)
    network = Network(4, engine.actions.size)
    rows = np.zeros((20, network.parameter_count), np.float32)
    whole = engine.evaluate(Rollout(network, rows, seed=0, generation=0))
    rounds, advance = 0, Lockstep.advance

    def fail(part: Lockstep) -> bool:
        nonlocal rounds
        rounds += 1
        if rounds == 7:
            raise error
        return advance(part)

    with monkeypatch.context() as patch:
        patch.setattr(Lockstep, "advance", fail)
        with pytest.raises(error):
            engine.evaluate(Rollout(network, rows, seed=0, generation=0))
    assert census.alive == 0
    again = engine.evaluate(Rollout(network, rows, seed=0, generation=0))
    assert again.fitness.tobytes() == whole.fitness.tobytes()
    engine.close()


def test_a_lane_that_is_made_anew_replaces_the_old_one(census: Census) -> None:
    engine = make_engine(Task("InvertedPendulum-v4", engine="envpool", max_episode_steps=5), lanes=4)
    network = Network(4, 1)
    rows = np.zeros((4, network.parameter_count), np.float32)
    for _ in range(3):
        engine.evaluate(Rollout(network, rows, seed=0, generation=2))  # again: its lanes are ahead
    assert census.alive == 4
    engine.close()


class Counting(Line):
    """A `Line` that counts how many of it are open."""

    alive = 0

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if options.get("behaviour") == "odd space":
            self.observation_space = gymnasium.spaces.Text(3)  # type: ignore[assignment]
        Counting.alive += 1

    def reset(self, **arguments: Any) -> Any:
        if self.behaviour == "cannot reset":
            raise RuntimeError("stuck")
        return super().reset(**arguments)

    def close(self) -> None:
        Counting.alive -= 1


@pytest.mark.parametrize("behaviour", ["good", "raises", "four values", "wrong shape", "odd space", "cannot reset"])
@pytest.mark.parametrize("how", ["evaluate", "check"])
def test_every_environment_is_closed(behaviour: str, how: str) -> None:
    Counting.alive = 0
    task = Task(Counting, {"behaviour": behaviour})
    try:
        if how == "check":
            check_environment(task)
        else:
            engine = make_engine(task)
            engine.evaluate(Rollout(Network(2, 1), np.ones((3, 3), np.float32), seed=0, generation=0))
            engine.close()
    except ClipUpError:
        pass
    assert Counting.alive == 0
