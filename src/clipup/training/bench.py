"""Measures how close training comes to the simulator's own speed, on this machine and in one run.

The simulator alone steps without pause, with actions from fixed policies: there is no search, and no lane is idle (one
that ends is reset and goes on). Training means whole generations: sampling, making and resetting environments,
stepping, collecting observation moments, ranking, updating.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from clipup.engines import Rollout, Task, registry
from clipup.engines.protocol import DEFAULT_LANES
from clipup.errors import InvalidArgument
from clipup.policies import Moments, Normalizer, Statistics
from clipup.policies.act import Actor
from clipup.policies.named import make_policy
from clipup.processors import available_threads
from clipup.runs.config import RunConfig
from clipup.searches import Search
from clipup.training.setup import make_search

KNOWN_OBSERVATIONS = 10_000_000


@dataclass(frozen=True)
class Speed:
    """What `measure` found. Speeds are medians over the repeats; so is the ratio, which is taken within each repeat."""

    environment: str
    engine: str
    reason: str
    network: str
    parameters: int
    population_size: int
    lanes: int
    threads: int
    simulator_steps_per_second: float
    our_steps_per_second: float
    ratio: float
    repeats: int
    interactions: int


class Contest:
    """The simulator alone and whole generations of training, to be measured in turns.

    The arguments are those of training. `network` is as `clipup.policies.named.make_policy` takes it. `lanes` defaults
    to the population size, at most `DEFAULT_LANES`. `search` makes another search than the usual one, for this many
    parameters.
    Normalization starts from `statistics`, which count as `KNOWN_OBSERVATIONS` observations.
    """

    def __init__(
        self,
        task: Task,
        *,
        network: object = "linear-bias",
        population_size: int = 200,
        lanes: int | None = None,
        threads: int | None = None,
        search: Callable[[int], Search] | None = None,
        normalize: bool = True,
        statistics: Statistics | None = None,
    ) -> None:
        self.label = task.label
        self.lanes = lanes or min(DEFAULT_LANES, population_size)
        self.threads = threads or available_threads()
        self.population_size = population_size
        self._engine = registry.make_engine(task, lanes=self.lanes, threads=self.threads)
        self.engine = self._engine.description
        self.network = make_policy(network, self.engine.observation_size, self.engine.actions.size)
        own = RunConfig(env=self.label, population=population_size, max_speed=0.15, seed=1)
        self._make_search = search or partial(make_search, own)
        self._normalize = normalize
        self._known = self._statistics = statistics
        self.interactions = 0
        self.steps_of_an_episode = math.nan
        # Keeps counting when the search starts again, as in a long run: pools last for many generations.
        self._generations = 0
        self._rows = (
            self._make_search(self.network.parameter_count).batch().candidates(0, min(self.lanes, population_size))
        )
        entry = registry.entry(self.engine.name)
        self._simulator = entry.bare_simulator(task, count=len(self._rows), threads=self.threads)

    def close(self) -> None:
        """Free all environments."""
        self._simulator.close()
        self._engine.close()

    def count_from(self, generation: int) -> None:
        """Give the next generation this number, which environments are seeded by."""
        self._generations = generation

    def simulator(self, seconds: float) -> float:
        """Return the simulator's steps per second, over about `seconds`."""
        actor = Actor(self.network, self._statistics, self.engine.actions)
        with np.errstate(all="ignore"):
            return self._simulator.steps_per_second(actor, self._rows, seconds)

    def ours(self, seconds: float) -> float:
        """Return training's steps per second, over whole generations that take at least `seconds`."""
        search, normalizer = self._make_search(self.network.parameter_count), self._normalizer()
        start, steps, candidates = time.perf_counter(), 0, 0
        while (elapsed := time.perf_counter() - start) < seconds:
            steps += self._generation(search, normalizer)
            candidates += self.population_size
        self.steps_of_an_episode = steps / candidates
        self._statistics = normalizer.statistics()
        self.interactions += steps
        return steps / elapsed

    def _normalizer(self) -> Normalizer:
        normalizer = Normalizer(self.network.observation_size)
        if self._known is not None:
            m2 = KNOWN_OBSERVATIONS * np.square(self._known.stdev)
            normalizer.merge(Moments(np.array([KNOWN_OBSERVATIONS]), self._known.mean[np.newaxis], m2[np.newaxis]))
        return normalizer

    def _generation(self, search: Search, normalizer: Normalizer) -> int:
        rollout = Rollout(
            self.network,
            search.ask(),
            seed=search.seed,
            generation=self._generations,
            statistics=normalizer.statistics() if self._normalize else None,
            collect_moments=self._normalize,
        )
        outcomes = self._engine.evaluate(rollout).check(self.label)
        if outcomes.moments is not None:
            normalizer.merge(outcomes.moments)
        search.tell(outcomes.fitness)
        self._generations += 1
        return int(outcomes.interactions.sum())


def measure(contest: Contest, *, seconds: float = 4.0, repeats: int = 3) -> Speed:
    """Measure both sides of `contest` in turns, `repeats` times for about `seconds` each, and close it."""
    try:
        if not 0.0 < seconds < math.inf:
            raise InvalidArgument(f"seconds must be a number above 0, got {seconds}")
        pairs = [(contest.simulator(seconds), contest.ours(seconds)) for _ in range(repeats + 1)][1:]  # one to warm up
    finally:
        contest.close()
    engine = (contest.engine.name, contest.engine.reason)
    policy = (contest.network.describe(), contest.network.parameter_count)
    sizes = (contest.population_size, contest.lanes, contest.threads)
    simulator, ours = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
    ratio = statistics.median(pair[1] / pair[0] for pair in pairs)
    return Speed(contest.label, *engine, *policy, *sizes, simulator, ours, ratio, repeats, contest.interactions)
