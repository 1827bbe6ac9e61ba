"""One candidate after the other, in a Gymnasium environment in this process."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from clipup.engines.accumulator import Accumulator
from clipup.engines.gymnasium import NAME
from clipup.engines.gymnasium.environment import (
    has_own_limit,
    make_ready,
    named_maker,
    own_step_limit,
    solved_score,
)
from clipup.engines.gymnasium.spaces import action_maker, actions_of, observations_of
from clipup.engines.inspection import LONGEST, SEEDS, STEPS, Inspection, compared, endless
from clipup.engines.outcomes import Failure, Outcomes
from clipup.engines.protocol import Engine, EngineDescription, library_version
from clipup.engines.rollout import Rollout, takes_rollout
from clipup.engines.seeding import seed_indices, seed_words, uint32
from clipup.engines.task import STEP_CAP, Task
from clipup.errors import EnvironmentFault, InvalidArgument, PolicyFault, one_line
from clipup.policies.act import Actor
from clipup.policies.compiled import observe_rows

Act = Callable[[NDArray[Any]], Any]


class GymnasiumEngine(Engine):
    """Candidates in one Gymnasium environment, reset with a seed of its own for each episode.

    A candidate whose environment raises, breaks its interface or never ends gets a NaN fitness and a `Failure`. The
    next candidate then gets a new environment.
    """

    def __init__(self, task: Task, *, reason: str) -> None:
        self.task = task
        self._environment: Any = make_ready(task)
        try:
            size, layout = observations_of(task, self._environment.observation_space)
            space = self._environment.action_space
            actions = actions_of(task, space)
            by_id = isinstance(task.env, str) and named_maker(task.env) is None
            own = has_own_limit(str(task.env)) if by_id else _limit_inside(self._environment) is not None
            version, solved = library_version("gymnasium"), solved_score(self._environment)
            self.description = EngineDescription(NAME, version, reason, size, actions, own, solved, layout)
            if task.reward_terms is not None:
                _check_terms(task, task.reward_terms)
        except BaseException:
            self.close()
            raise
        self._shape = (self.observation_size,)
        self._layout = layout
        self._make_action = action_maker(space, actions)
        self._limit = task.max_episode_steps or own_step_limit(self._environment)
        if self._limit is None and not own:
            self._limit = task.fallback_steps

    def close(self) -> None:
        """Close the environment; the next evaluation makes a new one."""
        environment, self._environment = self._environment, None
        if environment is not None:
            environment.close()

    def inspect(self) -> Inspection:
        """Compare the starts of a few seeds; see `Engine.inspect`."""
        if self._environment is None:
            self._environment = make_ready(self.task)
        environment = self._environment
        action = self._make_action(self.actions.apply(np.zeros((1, self.actions.size), np.float32))[0])
        try:
            *starts, again = [self._start(environment, action, seed) for seed in (*SEEDS, SEEDS[0])]
            ended = self._limit is not None or _ends(environment, action)
        except Exception:
            self._abandon()
            return Inspection()  # the failures of an environment belong to the candidates that meet them
        if not ended:
            raise endless(self.task.label)
        return compared(self.task.label, starts, again)

    def _start(self, environment: Any, action: Any, seed: int) -> list[NDArray[Any]]:
        observation, _ = environment.reset(seed=seed)
        found = [self._vector(observation).copy()]
        for _ in range(STEPS):
            observation, reward, terminated, truncated, _ = environment.step(action)
            found += [self._vector(observation).copy(), np.array([float(reward)])]
            if terminated or truncated:
                break
        return found

    @takes_rollout
    def evaluate(self, rollout: Rollout) -> Outcomes:
        """Evaluate the candidates of `rollout`; see `Engine.evaluate`."""
        rollout.check(self.observation_size, self.actions.size)
        accumulator = Accumulator(
            len(rollout.parameters),
            self.observation_size,
            collect_moments=rollout.collect_moments,
            own_score=self.task.reward_terms is not None,
        )
        actor = Actor(rollout.network, rollout.statistics, self.actions)
        failures: list[Failure] = []
        with np.errstate(all="ignore"):
            for row, seeds in enumerate(self._seeds(rollout)):
                try:
                    self._candidate(actor, rollout.parameters[row : row + 1], seeds, row, accumulator)
                except PolicyFault:
                    self._abandon()
                    raise
                except Exception as error:
                    # An environment may raise anything; the other candidates must not suffer from it.
                    accumulator.broken[row] = True
                    failures.append(Failure(rollout.first + row, one_line(error)))
                    self._abandon()
        return accumulator.outcomes(self.task, tuple(failures))

    def _seeds(self, rollout: Rollout) -> list[tuple[int, ...]]:
        """Return the episode seeds of each candidate."""
        if not len(rollout.parameters):
            return []
        words = partial(
            seed_words,
            rollout.seed,
            "candidate",
            epoch=rollout.generation,
            stream=rollout.stream,
            indices=seed_indices(rollout.indices, self.task.episode_seeds),
        )
        return list(zip(*(uint32(words(episode=episode)) for episode in range(self.task.episodes)), strict=True))

    def _abandon(self) -> None:
        """Drop an environment that failed, whose own `close` may fail too."""
        environment, self._environment = self._environment, None
        with contextlib.suppress(Exception):
            environment.close()

    def _candidate(
        self, actor: Actor, parameters: NDArray[np.float32], seeds: tuple[int, ...], row: int, accumulator: Accumulator
    ) -> None:
        if self._environment is None:
            self._environment = make_ready(self.task)
        make, arranged = self._make_action, actor.arrange(parameters)
        state = actor.initial_state(1)

        def act(observation: NDArray[Any]) -> Any:
            actions, broken = actor.act_without_nan(arranged, observation[np.newaxis], state)
            if broken is not None:
                return None
            return make(actions[0])

        observer = _Observer(self.observation_size) if accumulator.moments is not None else None
        accumulator.totals[row] = 0.0
        for seed in seeds:
            state[:] = 0.0
            self._episode(act, seed, row, accumulator, observer)
            if accumulator.broken[row]:
                return
        if observer is not None and accumulator.moments is not None:
            accumulator.moments.count[row] = int(observer.count[0, 0])
            accumulator.moments.mean[row] = observer.mean[0]
            accumulator.moments.m2[row] = observer.m2[0]

    def _episode(self, act: Act, seed: int, row: int, accumulator: Accumulator, observer: _Observer | None) -> None:
        """Run one episode, up to its end or to the first number that is not finite."""
        environment, terms = self._environment, self.task.reward_terms
        started = environment.reset(seed=seed)
        if not isinstance(started, tuple) or len(cast("tuple[Any, ...]", started)) != 2:
            raise EnvironmentFault("reset must return (observation, info), as Gymnasium's environments do")
        observation = self._vector(started[0])
        total = scored = 0.0
        steps, limit = 0, self._limit or STEP_CAP
        try:
            while steps < limit:
                action = act(observation) if _is_finite(observation) else None
                if action is None:
                    accumulator.broken[row] = True
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
            if self._limit is None:
                raise EnvironmentFault(f"no end after {STEP_CAP} steps; set max_episode_steps")
        finally:
            accumulator.steps[row] += steps
            accumulator.totals[row] += total
            if terms is not None:
                accumulator.scored[row] += scored

    def _vector(self, observation: Any) -> NDArray[Any]:
        if self._layout is not None:
            return self._layout.flatten(observation)
        vector = np.asarray(observation)
        if vector.shape != self._shape:
            raise EnvironmentFault(
                f"an observation must have shape {self._shape} as its space says, got {vector.shape}"
            )
        return vector


def _limit_inside(environment: Any) -> int | None:
    """Return the limit that a callable's environment has of itself, below the one that the task adds."""
    from gymnasium.wrappers import TimeLimit

    inner = environment.env if type(environment) is TimeLimit and environment.spec is None else environment
    return own_step_limit(inner)


def _ends(environment: Any, action: Any) -> bool:
    """Return whether an episode of doing nothing ends."""
    environment.reset(seed=SEEDS[0])
    for _ in range(LONGEST):
        _, _, terminated, truncated, _ = environment.step(action)
        if terminated or truncated:
            return True
    return False


def _check_terms(task: Task, terms: tuple[int, ...]) -> None:
    """Refuse terms that the environment does not have. It has them after a step, which another environment takes."""
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
    # A finite sum proves that all are finite, and is the cheapest such test. A sum that overflows proves nothing.
    return math.isfinite(np.add.reduce(values, axis=None)) or bool(np.isfinite(values).all())


class _Observer:
    """The moments of one candidate's observations."""

    def __init__(self, size: int) -> None:
        self.count, self.mean, self.m2 = np.zeros((1, 1)), np.zeros((1, size)), np.zeros((1, size))

    def see(self, observation: NDArray[Any]) -> None:
        """Take in one observation."""
        self.count += 1.0
        observe_rows(observation[np.newaxis], self.count, self.mean, self.m2)
