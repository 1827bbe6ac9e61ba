import math

import numpy as np
import pytest

from clipup.engines import Task
from clipup.errors import InvalidArgument
from clipup.evaluation import evaluate, summarize
from clipup.evaluation.video import play, record_video
from clipup.policies import Actions, Network, Policy


def cart_pole_policy() -> Policy:
    network = Network(4, 2)
    parameters = np.zeros(10)
    parameters[[6, 7]] = 1.0  # right where the pole leans or turns right
    return Policy(network, parameters, None, Actions.discrete(2))


def test_a_summary_holds_the_usual_statistics():
    summary = summarize([1.0, 2.0, 3.0, 6.0])
    assert (summary.episodes, summary.mean, summary.median, summary.min, summary.max) == (4, 3.0, 2.5, 1.0, 6.0)
    assert summary.standard_error == pytest.approx(np.std([1, 2, 3, 6], ddof=1) / 2)
    assert math.isnan(summarize([1.0]).standard_error)
    assert math.isnan(summarize([1.0, math.nan]).mean)
    with pytest.raises(InvalidArgument):
        summarize([])


@pytest.mark.parametrize("engine", ["envpool", "gymnasium"])
def test_an_episode_depends_on_its_seed_and_number_alone(engine):
    task = Task("CartPole-v1", engine=engine, reward_offset=-1.0, max_episode_steps=3)
    policy = cart_pole_policy()
    few, many = (evaluate(policy, task, episodes=number, seed=4) for number in (3, 6))
    assert few.returns == many.returns[:3]
    assert few.summary.mean > 30  # the environment's own reward and length, whatever training saw
    assert evaluate(policy, task, episodes=3, seed=5).returns != few.returns


@pytest.mark.parametrize("engine", ["envpool", "gymnasium"])
def test_the_episode_that_is_shown_is_the_one_that_was_evaluated(engine):
    task = Task("CartPole-v1", engine=engine)
    policy = cart_pole_policy()
    returns = evaluate(policy, task, episodes=3, seed=9).returns
    for number in (0, 2):
        episode = play(policy, task, seed=9, episode=number)
        steps = list(episode.steps)
        assert episode.engine == engine and episode.rate == 50.0
        assert sum(step.reward for step in steps) == returns[number]
        assert steps[0].frame.shape == (400, 600, 3)


def test_a_policy_for_another_task_is_refused(tmp_path):
    policy = cart_pole_policy()
    with pytest.raises(InvalidArgument, match="takes 4 observations"):
        evaluate(policy, Task("Pendulum-v1"))
    with pytest.raises(InvalidArgument, match="takes 4 observations"):
        record_video(policy, Task("Pendulum-v1"), tmp_path / "x.gif")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidArgument, match="at least 1"):
        evaluate(policy, Task("CartPole-v1"), episodes=0)
