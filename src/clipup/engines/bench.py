"""How near to the simulator's own speed: measured on this machine, in one run.

The simulator alone steps every lane at every round (a lane that ends is reset and goes on), with actions from fixed
policies: no search, no lane idle. Ours is whole generations of training: sampling, making and resetting environments,
stepping, collecting observation moments, ranking, updating.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from clipup.engines import blas
from clipup.engines.engine import Engine, available_threads, make_engine
from clipup.engines.environment import make_ready
from clipup.engines.pool import Pool, pool_layout
from clipup.engines.seeding import seed_words, uint32
from clipup.engines.task import Task
from clipup.errors import EnvironmentFault, InvalidArgument, one_line
from clipup.policies.network import Network
from clipup.policies.normalizer import Moments, Normalizer, Statistics
from clipup.searches.pgpe import PGPE

KNOWN_OBSERVATIONS = 100_000


@dataclass(frozen=True)
class Speed:
    """What `measure` found; steps per second are medians over the repeats, as is the ratio of one repeat's two."""

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
    """The simulator alone and whole training generations, ready to be measured by turns.

    Parameters
    ----------
    task
        What is run.
    network
        The policy, as `Network.parse` takes it.
    population_size, lanes, threads
        As in training; `lanes` is the population size, up to 256, unless given.
    center, stdev, max_speed
        Where the search starts, and its settings. Without a center: the first generations, from zeros.
    normalize, statistics
        Whether observations are normalized, and what is known of them at the start (with the weight of
        `KNOWN_OBSERVATIONS`).
    """

    def __init__(
        self,
        task: Task,
        *,
        network: str = "linear-bias",
        population_size: int = 200,
        lanes: int | None = None,
        threads: int | None = None,
        center: NDArray[np.float32] | None = None,
        stdev: NDArray[np.float32] | None = None,
        max_speed: float = 0.15,
        normalize: bool = True,
        statistics: Statistics | None = None,
    ) -> None:
        self._label = task.label
        self.lanes = lanes or min(256, population_size)
        self.threads = threads or available_threads()
        self.population_size = population_size
        self._engine = make_engine(task, lanes=self.lanes, threads=self.threads)
        self.network = Network.parse(network, self._engine.observation_size, self._engine.actions.size)
        self._center = np.zeros(self.network.parameter_count, np.float32) if center is None else center
        self._stdev, self._max_speed = stdev, max_speed
        self._normalize = normalize
        self._known = self._statistics = statistics
        self.interactions = 0
        # Counted on when the search starts again, as in a long run: pools last for many generations.
        self._generations = 0
        rows = self._search().batch().candidates(0, min(self.lanes, population_size))
        self._simulator = _Simulator(task, self._engine, self.network, rows, self.threads)

    @property
    def engine_name(self) -> str:
        """The engine's name."""
        return self._engine.name

    @property
    def reason(self) -> str:
        """Why that engine."""
        return self._engine.reason

    def close(self) -> None:
        """Let all environments go."""
        self._simulator.close()
        self._engine.close()

    def count_from(self, generation: int) -> None:
        """Give the next generation this number; environments are seeded by it."""
        self._generations = generation

    def simulator(self, seconds: float) -> float:
        """Return the simulator's steps per second, over about `seconds`."""
        return self._simulator.speed(seconds, self._statistics)

    def ours(self, seconds: float) -> float:
        """Return training's steps per second, over whole generations of at least `seconds`, from the center on."""
        search, normalizer = self._search(), self._normalizer()
        start, steps = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - start) < seconds:
            steps += self._generation(search, normalizer)
        self._statistics = normalizer.statistics()
        self.interactions += steps
        return steps / elapsed

    def _normalizer(self) -> Normalizer:
        normalizer = Normalizer(self.network.observation_size)
        if self._known is not None:
            m2 = KNOWN_OBSERVATIONS * np.square(self._known.stdev)
            normalizer.merge(Moments(np.array([KNOWN_OBSERVATIONS]), self._known.mean[np.newaxis], m2[np.newaxis]))
        return normalizer

    def _search(self) -> PGPE:
        return PGPE(
            center=self._center,
            population_size=self.population_size,
            max_speed=self._max_speed,
            stdev=self._stdev,
            stdev_learning_rate=0.1 if self._stdev is None else 0.0,
            seed=1,
        )

    def _generation(self, search: PGPE, normalizer: Normalizer) -> int:
        outcomes = self._engine.evaluate(
            self.network,
            search.ask(),
            seed=search.seed,
            generation=self._generations,
            statistics=normalizer.statistics() if self._normalize else None,
            collect_moments=self._normalize,
        ).check(self._label)
        if outcomes.moments is not None:
            normalizer.merge(outcomes.moments)
        search.tell(outcomes.fitness)
        self._generations += 1
        return int(outcomes.interactions.sum())


def measure(
    task: Task,
    *,
    network: str = "linear-bias",
    population_size: int = 200,
    lanes: int | None = None,
    threads: int | None = None,
    max_speed: float = 0.15,
    normalize: bool = True,
    seconds: float = 4.0,
    repeats: int = 3,
) -> Speed:
    """Measure both sides by turns, `repeats` times for about `seconds` each; see `Contest` for the other arguments."""
    if not 0.0 < seconds < math.inf:
        raise InvalidArgument(f"seconds must be a number above 0, got {seconds}")
    contest = Contest(
        task,
        network=network,
        population_size=population_size,
        lanes=lanes,
        threads=threads,
        max_speed=max_speed,
        normalize=normalize,
    )
    try:
        pairs = [(contest.simulator(seconds), contest.ours(seconds)) for _ in range(repeats + 1)][1:]  # one to warm up
    finally:
        contest.close()
    return Speed(
        task.label,
        contest.engine_name,
        contest.reason,
        contest.network.describe(),
        contest.network.parameter_count,
        population_size,
        contest.lanes,
        contest.threads,
        statistics.median(pair[0] for pair in pairs),
        statistics.median(pair[1] for pair in pairs),
        statistics.median(pair[1] / pair[0] for pair in pairs),
        repeats,
        contest.interactions,
    )


class _Simulator:
    """The simulator alone: all lanes at every round, actions from fixed policies."""

    def __init__(
        self, task: Task, engine: Engine, network: Network, parameters: NDArray[np.float32], threads: int
    ) -> None:
        self._label = task.label
        self._network, self._parameters = network, parameters
        self._convert = engine.actions.converter()
        self._discrete = engine.actions.kind == "discrete"
        self._environment: Any = None
        self._pool: Pool | None = None
        words = seed_words(0, "candidate", epoch=0, stream="evaluation", indices=np.arange(len(parameters)))
        self._seeds = uint32(words >> np.uint64(1))
        if engine.name == "envpool":
            self._pool = Pool(pool_layout(task), np.arange(len(parameters)), self._seeds, threads)
        else:
            self._environment = make_ready(task)

    def close(self) -> None:
        """Let the environments go."""
        if self._pool is not None:
            self._pool.close()
        if self._environment is not None:
            self._environment.close()

    def speed(self, seconds: float, statistics: Statistics | None) -> float:
        """Return steps per second over about `seconds`."""

        def act(parameters: NDArray[np.float32], observations: NDArray[Any]) -> NDArray[Any]:
            if statistics is not None:
                inputs = statistics.normalize(observations)
            else:
                inputs = observations.astype(np.float32, copy=False)
            return cast("NDArray[Any]", self._convert(self._network.forward(parameters, inputs)))

        with blas.single_thread(), np.errstate(all="ignore"):
            if self._pool is not None:
                return self._pool_speed(seconds, act)
            try:
                return self._single_speed(seconds, act)
            except Exception as error:
                raise EnvironmentFault(f"{self._label} failed: {one_line(error)}") from error

    def _pool_speed(self, seconds: float, act: Any) -> float:
        pool = cast(Pool, self._pool)
        where, ended = pool.layout.observation_index, pool.layout.done_index
        slots = np.arange(len(self._parameters), dtype=np.int32)
        pool.reset(slots)
        states = pool.receive()
        start, steps = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - start) < seconds:
            for _ in range(16):
                steps += len(slots) - int(np.count_nonzero(states[ended]))  # an ended lane is reset: not a step
                pool.send(slots, act(self._parameters, states[where]))
                states = pool.receive()
        return steps / elapsed

    def _single_speed(self, seconds: float, act: Any) -> float:
        environment = self._environment
        start, steps, episode = time.perf_counter(), 0, 0
        elapsed = 0.0
        while elapsed < seconds:
            row = episode % len(self._parameters)
            observation, _ = environment.reset(seed=self._seeds[row])
            episode += 1
            ended = False
            while not ended and elapsed < seconds:
                action = act(self._parameters[row : row + 1], np.asarray(observation)[np.newaxis])[0]
                observation, _, terminated, truncated, _ = environment.step(int(action) if self._discrete else action)
                ended = terminated or truncated
                steps += 1
                elapsed = time.perf_counter() - start
        return steps / elapsed
