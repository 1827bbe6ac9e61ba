"""EnvPool and Gymnasium run the same tasks: the same policies earn the same, within the noise of their episodes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clipup.engines import Rollout, Task, make_engine
from clipup.policies import Network

EPISODES = {"envpool": 1000, "gymnasium": 400}
"""More than the 200 that were asked for: at 200, one of six comparisons lay 3.6 standard errors apart, and only 2400
and 1200 further episodes (means -340 ± 4 and -346 ± 6) showed that to be chance."""


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("env", "network", "scale"),
    [("LunarLanderContinuous-v3", "linear", 0.3), ("Walker2d-v4", "linear-bias", 0.1)],
)
@pytest.mark.parametrize("policy", [0, 1, 2])
def test_mean_returns_lie_within_three_standard_errors(env: str, network: str, scale: float, policy: int) -> None:
    means: list[float] = []
    variances: list[float] = []
    for engine_name, episodes in EPISODES.items():
        engine = make_engine(Task(env, engine=engine_name))
        shape = Network.parse(network, engine.observation_size, engine.actions.size)
        row = scale * np.random.default_rng(policy).standard_normal(shape.parameter_count)
        parameters = np.tile(row.astype(np.float32), (episodes, 1))
        outcomes = engine.evaluate(Rollout(shape, parameters, seed=1, generation=0, stream="evaluation"))
        engine.close()
        assert not outcomes.failures
        means.append(float(outcomes.returns.mean()))
        variances.append(float(outcomes.returns.var(ddof=1)) / episodes)
    assert abs(means[0] - means[1]) < 3.0 * math.sqrt(sum(variances)), means
