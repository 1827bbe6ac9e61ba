"""What a policy scores without any training, and whether trained ones are better."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clipup.engines import Rollout, make_engine
from clipup.evaluation import Summary, summarize
from clipup.policies.named import make_policy
from clipup.runs.config import RunConfig
from clipup.training.setup import make_task
from clipup.tuning.speed_search import Standing

EPISODES = 32
# The 97.5 % quantile of Student's t for 1 to 4 degrees of freedom, and of the normal distribution beyond.
_QUANTILES = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78}
_NORMAL = 1.96


@dataclass(frozen=True)
class Baseline:
    """The scores of policies that were not trained, on the environment's own reward."""

    untrained: Summary
    """The center at the start of a search: for most policies, all parameters are zero."""
    random: Summary
    """Random policies, one episode each, as in the first generation."""

    @property
    def better(self) -> tuple[str, Summary]:
        """The better of the two, with its name."""
        if self.random.mean > self.untrained.mean:
            return "random policies", self.random
        return "the untrained policy", self.untrained


@dataclass(frozen=True)
class Gain:
    """How much better a standing is than the better baseline, with a 95 % interval."""

    name: str
    baseline: float
    difference: float
    half_width: float

    @property
    def learned(self) -> bool:
        """Whether the difference is above zero, beyond luck."""
        return self.difference - self.half_width > 0


def measure_baseline(config: RunConfig) -> Baseline:
    """Evaluate policies without training on the task of `config`."""
    engine = make_engine(make_task(config).for_evaluation(), threads=config.workers)
    try:
        network = make_policy(config.policy, engine.observation_size, engine.actions.size)
        size = network.parameter_count
        radius = config.radius or config.radius_factor * config.max_speed
        noise = np.random.default_rng(config.seed).standard_normal((EPISODES, size), dtype=np.float32)
        scale = np.float32(radius / math.sqrt(size))

        def score(parameters: NDArray[np.float32]) -> Summary:
            return summarize(
                engine.evaluate(
                    Rollout(network, parameters, seed=config.seed, generation=0, stream="evaluation")
                ).returns
            )

        start = network.initial_center(config.seed)
        return Baseline(score(np.tile(start, (EPISODES, 1))), score((start + noise * scale).astype(np.float32)))
    finally:
        engine.close()


def gain_over(baseline: Baseline, standing: Standing, evaluation_error: float) -> Gain:
    """Compare a standing with the better baseline.

    With several seeds, the error is that of their mean. With one seed it is `evaluation_error`, the standard error of
    its evaluations, which leaves the luck of the seed out.
    """
    name, summary = baseline.better
    count = len(standing.values)
    error = standing.standard_error if count > 1 else evaluation_error
    quantile = _QUANTILES.get(count - 1, _NORMAL)
    own = 0.0 if math.isnan(summary.standard_error) else _NORMAL * summary.standard_error
    spread = 0.0 if math.isnan(error) else quantile * error
    return Gain(name, summary.mean, standing.mean - summary.mean, math.hypot(spread, own))
