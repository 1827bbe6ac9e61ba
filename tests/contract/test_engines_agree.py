"""EnvPool and Gymnasium run the same tasks: the same policies earn the same, within the noise of their episodes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clipup.policies import Network
from clipup.rollout import Task, make_engine


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "network", "scale"),
    [("LunarLanderContinuous-v3", "linear", 0.3), ("Walker2d-v4", "linear-bias", 0.1)],
)
@pytest.mark.parametrize("policy", range(3))
def test_means_of_200_episodes_lie_within_three_standard_errors(
    env: str, network: str, scale: float, policy: int
) -> None:
    means: list[float] = []
    variances: list[float] = []
    for engine_name in ("envpool", "gymnasium"):
        engine = make_engine(Task(env, engine=engine_name))  # type: ignore[arg-type]
        shape = Network.parse(network, engine.observation_size, engine.actions.size)
        row = scale * np.random.default_rng(policy).standard_normal(shape.parameter_count)
        parameters = np.tile(row.astype(np.float32), (200, 1))
        outcomes = engine.evaluate(shape, parameters, seed=1, generation=0, stream="evaluation")
        engine.close()
        assert not outcomes.failures
        means.append(float(outcomes.returns.mean()))
        variances.append(float(outcomes.returns.var(ddof=1)) / 200)
    assert abs(means[0] - means[1]) < 3.0 * math.sqrt(sum(variances)), means
