"""The Gymnasium engine: any environment, one candidate after the other, in this process."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from clipup.engines import blas
from clipup.engines.environment import actions_of, make_ready, observation_size, own_step_limit
from clipup.engines.ledger import Ledger
from clipup.engines.outcomes import Failure, Outcomes
from clipup.engines.pool import STEP_CAP
from clipup.engines.request import Request
from clipup.engines.seeding import Stream, seed_indices, seed_words, uint32
from clipup.engines.task import Task
from clipup.errors import EnvironmentFault, InvalidArgument, one_line
from clipup.policies.actions import Actions
from clipup.policies.network import Network
from clipup.policies.normalizer import Moments, Normalizer, Statistics

CHUNK = 1024
"""Observations held before they are folded into moments."""

Act = Callable[[NDArray[Any]], Any]


class GymnasiumEngine:
    """Candidates in one Gymnasium environment, reset with its own seed for each episode.

    A candidate whose environment raises, breaks its interface or never ends gets a NaN fitness and a `Failure`; the
    environment is made anew and the others go on.
    """

    name = "gymnasium"

    def __init__(self, task: Task, *, reason: str) -> None:
        self.task = task
        self.reason = reason
        self._environment: Any = make_ready(task)
        try:
            self.observation_size = observation_size(task, self._environment.observation_space)
            self.actions: Actions = actions_of(task, self._environment.action_space)
            if task.reward_terms is not None:
                _check_terms(task, task.reward_terms)
        except BaseException:
            self.close()
            raise
        self._limit = task.max_episode_steps or own_step_limit(self._environment) or STEP_CAP
        self._limited = bool(task.max_episode_steps or own_step_limit(self._environment))

    def close(self) -> None:
        """Close the environment; the next evaluation makes a new one."""
        environment, self._environment = self._environment, None
        if environment is not None:
            environment.close()

    def evaluate(
        self,
        network: Network,
        parameters: NDArray[np.float32],
        *,
        seed: int,
        generation: int,
        first: int = 0,
        statistics: Statistics | None = None,
        collect_moments: bool = False,
        stream: Stream = "training",
    ) -> Outcomes:
        """Evaluate candidates ``first … first + n - 1`` of a generation; see `Engine.evaluate`."""
        request = Request(network, parameters, seed, generation, first, statistics, collect_moments, stream)
        request.check(self.observation_size, self.actions.size)
        ledger = Ledger(
            len(parameters),
            self.observation_size,
            collect_moments=collect_moments,
            own_score=self.task.reward_terms is not None,
        )
        failures: list[Failure] = []
        with blas.single_thread(), np.errstate(all="ignore"):
            for row, seeds in enumerate(self._seeds(request)):
                try:
                    self._candidate(request, row, seeds, ledger)
                except Exception as error:
                    # Whatever an environment raises is that candidate's misfortune, not the population's.
                    ledger.broken[row] = True
                    failures.append(Failure(first + row, one_line(error)))
                    self._abandon()
        return ledger.outcomes(
            episodes=self.task.episodes, reward_offset=self.task.reward_offset, failures=tuple(failures)
        )

    def _seeds(self, request: Request) -> list[list[int]]:
        """Return each candidate's episode seeds."""
        if not len(request.parameters):
            return []
        indices = seed_indices(request.indices, self.task.episode_seeds)
        columns = [
            uint32(
                seed_words(
                    request.seed,
                    "candidate",
                    epoch=request.generation,
                    stream=request.stream,
                    indices=indices,
                    episode=episode,
                )
            )
            for episode in range(self.task.episodes)
        ]
        return [list(seeds) for seeds in zip(*columns, strict=True)]

    def _abandon(self) -> None:
        """Drop an environment that failed, whose own `close` may fail too."""
        environment, self._environment = self._environment, None
        with contextlib.suppress(Exception):
            environment.close()

    def _policy(self, request: Request, row: int) -> Act:
        network, statistics = request.network, request.statistics
        parameters = request.parameters[row : row + 1]
        layers, convert = network.layers, self.actions.converter()
        discrete = self.actions.kind == "discrete"

        def act(observation: NDArray[Any]) -> Any:
            rows = observation[np.newaxis]
            inputs = rows.astype(np.float32) if statistics is None else statistics.normalize(rows)
            outputs = network.forward(parameters, inputs, layers)
            if math.isnan(np.add.reduce(outputs, axis=None)) and np.isnan(outputs).any():
                return None
            actions = convert(outputs)
            return int(actions[0]) if discrete else actions[0]

        return act

    def _candidate(self, request: Request, row: int, seeds: list[int], ledger: Ledger) -> None:
        if self._environment is None:
            self._environment = make_ready(self.task)
        act = self._policy(request, row)
        observer = _Observer(self.observation_size) if ledger.moments is not None else None
        ledger.totals[row] = 0.0
        for seed in seeds:
            self._episode(act, seed, row, ledger, observer)
            if ledger.broken[row]:
                return
        if observer is not None and ledger.moments is not None:
            moments = observer.moments()
            ledger.moments.count[row] = moments.count[0]
            ledger.moments.mean[row] = moments.mean[0]
            ledger.moments.m2[row] = moments.m2[0]

    def _episode(self, act: Act, seed: int, row: int, ledger: Ledger, observer: _Observer | None) -> None:
        """Run one episode, up to its end or to the first number that is not finite."""
        environment, terms = self._environment, self.task.reward_terms
        started = environment.reset(seed=seed)
        if not isinstance(started, tuple) or len(cast("tuple[Any, ...]", started)) != 2:
            raise EnvironmentFault("reset must return (observation, info), as Gymnasium's environments do")
        observation = self._vector(started[0])
        total = scored = 0.0
        steps = 0
        try:
            while steps < self._limit:
                action = act(observation) if _is_finite(observation) else None
                if action is None:
                    ledger.broken[row] = True
                    return
                if observer is not None:
                    observer.see(observation)
                result, reward, terminated, truncated, _ = environment.step(action)
                steps += 1
                total += float(reward)
                if terms is not None:
                    parts = environment.unwrapped.rewards
                    scored += sum(float(parts[term]) for term in terms)
                if terminated or truncated:
                    return
                observation = self._vector(result)
            if not self._limited:
                raise EnvironmentFault(f"no end after {STEP_CAP} steps; set max_episode_steps")
        finally:
            ledger.steps[row] += steps
            ledger.totals[row] += total
            if terms is not None:
                ledger.scored[row] += scored

    def _vector(self, observation: Any) -> NDArray[Any]:
        vector = np.asarray(observation)
        if vector.shape != (self.observation_size,):
            raise EnvironmentFault(
                f"an observation must have shape ({self.observation_size},) as its space says, got {vector.shape}"
            )
        return vector


def _check_terms(task: Task, terms: tuple[int, ...]) -> None:
    """Refuse terms that the environment does not have; they are there after a step, made in an environment apart."""
    environment = make_ready(task)
    try:
        environment.step(environment.action_space.sample())
        there = len(getattr(environment.unwrapped, "rewards", ()))
    except Exception as error:
        raise EnvironmentFault(f"{task.label} failed in its first step: {one_line(error)}") from error
    finally:
        environment.close()
    if max(terms) >= there:
        raise InvalidArgument(
            f"reward_terms name term {max(terms)} of the reward, but {task.label} has {there} of them"
        )


def _is_finite(values: NDArray[Any]) -> bool:
    # A finite sum proves all finite and is the cheapest such test; one that overflows proves nothing.
    return math.isfinite(np.add.reduce(values, axis=None)) or bool(np.isfinite(values).all())


class _Observer:
    """The moments of one candidate's observations, folded in a chunk at a time."""

    def __init__(self, size: int) -> None:
        self._held: list[NDArray[Any]] = []
        self._folded = Normalizer(size)

    def see(self, observation: NDArray[Any]) -> None:
        """Take in one observation."""
        self._held.append(observation.copy())
        if len(self._held) == CHUNK:
            self._fold()

    def _fold(self) -> None:
        if self._held:
            self._folded.merge(Moments.of(np.stack(self._held)))
            self._held.clear()

    def moments(self) -> Moments:
        """Return the moments of everything seen."""
        self._fold()
        return self._folded.moments()
