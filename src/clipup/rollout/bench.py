"""How near to the simulator's own speed: measured on this machine, in one run.

The simulator alone steps every lane at every round (a lane that ends is reset and goes on), with actions from fixed
policies: no search, no lane idle. Ours is whole generations of training: sampling, making and resetting environments,
stepping, collecting observation moments, ranking, updating.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from clipup.policies.network import Network
from clipup.policies.normalizer import Normalizer
from clipup.rollout import blas
from clipup.rollout.engine import Engine, available_threads, make_engine
from clipup.rollout.environment import make_ready
from clipup.rollout.pool import Pool, pool_layout
from clipup.rollout.seeding import seed_words, uint32
from clipup.rollout.task import Task
from clipup.search.pgpe import PGPE

Side = Literal["simulator", "ours"]


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


def measure(
    task: Task,
    *,
    network: str = "linear-bias",
    population_size: int = 200,
    lanes: int | None = None,
    threads: int | None = None,
    center: NDArray[np.float32] | None = None,
    max_speed: float = 0.15,
    radius: float | None = None,
    normalize: bool = True,
    normalizer: Normalizer | None = None,
    seconds: float = 4.0,
    repeats: int = 3,
) -> Speed:
    """Measure the simulator alone and whole training generations by turns, and return both with their ratio.

    Parameters
    ----------
    task
        What is run.
    network
        The policy, as `Network.parse` takes it.
    population_size, lanes, threads
        As in training; `lanes` is the population size, up to 256, unless given.
    center, max_speed, radius
        Where the search starts, and its settings. Without a center: the first generations.
    normalize, normalizer
        Whether observations are normalized, and statistics to begin with.
    seconds, repeats
        How long each side runs at least, and how often.
    """
    lanes = lanes or min(256, population_size)
    threads = threads or available_threads()
    engine = make_engine(task, lanes=lanes, threads=threads)
    shape = Network.parse(network, engine.observation_size, engine.actions.size)
    running = normalizer or Normalizer(shape.observation_size)
    search = PGPE(
        center=np.zeros(shape.parameter_count, np.float32) if center is None else center,
        population_size=population_size,
        max_speed=max_speed,
        radius=radius,
        seed=1,
    )
    simulator = _Simulator(task, engine, shape, search.batch().candidates(0, min(lanes, population_size)), threads)
    trainer = _Trainer(engine, search, shape, running, normalize=normalize)
    pairs: list[tuple[float, float]] = []
    try:
        for repeat in range(repeats + 1):
            pair = simulator.speed(seconds, running if normalize else None), trainer.speed(seconds)
            if repeat:  # the first round warms both up
                pairs.append(pair)
    finally:
        simulator.close()
        engine.close()
    return Speed(
        task.label,
        engine.name,
        engine.reason,
        shape.describe(),
        shape.parameter_count,
        population_size,
        lanes,
        threads,
        statistics.median(pair[0] for pair in pairs),
        statistics.median(pair[1] for pair in pairs),
        statistics.median(pair[1] / pair[0] for pair in pairs),
        repeats,
        trainer.interactions,
    )


class _Trainer:
    """Whole generations of training."""

    def __init__(
        self, engine: Engine, search: PGPE, network: Network, normalizer: Normalizer, *, normalize: bool
    ) -> None:
        self._engine, self._search, self._network = engine, search, network
        self._normalizer, self._normalize = normalizer, normalize
        self.interactions = 0

    def speed(self, seconds: float) -> float:
        """Return steps per second over as many generations as fit in about `seconds`."""
        start, steps = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - start) < seconds:
            steps += self.generation()
        self.interactions += steps
        return steps / elapsed

    def generation(self) -> int:
        """Run one batch, and return its interactions."""
        search = self._search
        outcomes = self._engine.evaluate(
            self._network,
            search.ask(),
            seed=search.seed,
            generation=search.generation,
            first=search.batch().start,
            statistics=self._normalizer.statistics() if self._normalize else None,
            collect_moments=self._normalize,
        )
        if outcomes.moments is not None:
            self._normalizer.merge(outcomes.moments)
        search.tell(outcomes.fitness)
        return int(outcomes.interactions.sum())


class _Simulator:
    """The simulator alone: all lanes at every round, actions from fixed policies."""

    def __init__(
        self, task: Task, engine: Engine, network: Network, parameters: NDArray[np.float32], threads: int
    ) -> None:
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

    def speed(self, seconds: float, normalizer: Normalizer | None) -> float:
        """Return steps per second over about `seconds`."""
        statistics = normalizer.statistics() if normalizer is not None else None

        def act(parameters: NDArray[np.float32], observations: NDArray[Any]) -> NDArray[Any]:
            if statistics is not None:
                inputs = statistics.normalize(observations)
            else:
                inputs = observations.astype(np.float32, copy=False)
            return cast("NDArray[Any]", self._convert(self._network.forward(parameters, inputs)))

        with blas.single_thread(), np.errstate(all="ignore"):
            return self._pool_speed(seconds, act) if self._pool is not None else self._single_speed(seconds, act)

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
