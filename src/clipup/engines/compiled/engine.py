"""The compiled engine: each thread runs one candidate's whole episodes in machine code, with one simulator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from clipup.compilation import machine_code
from clipup.compilation.random import STATE_WORDS
from clipup.engines.compiled import NAME, episode, simulators, words
from clipup.engines.compiled.episode import KernelJob
from clipup.engines.compiled.task import CompiledTask, MujocoTask
from clipup.engines.inspection import SEEDS, STEPS, Inspection, digest_of
from clipup.engines.outcomes import Failure, Outcomes
from clipup.engines.protocol import Engine, EngineDescription, library_version, registered_score
from clipup.engines.rollout import Rollout, takes_rollout
from clipup.engines.seeding import seed_indices, seed_words, uint32
from clipup.engines.task import Task
from clipup.errors import InvalidArgument
from clipup.policies.actions import Actions
from clipup.policies.compiled import layer_sizes
from clipup.policies.feedforward import Network
from clipup.policies.normalizer import Moments
from clipup.policies.stepping import SlotPolicy


class CompiledEngine(Engine):
    """Candidates of a compiled task, on threads of this process.

    Parameters
    ----------
    task
        How a candidate is scored. Its `env` is only a name here.
    compiled
        What is simulated.
    threads
        How many candidates run at a time. Results do not depend on it.
    reason
        Why this engine was chosen.
    """

    def __init__(self, task: Task, compiled: CompiledTask, *, threads: int, reason: str) -> None:
        if task.reward_terms is not None:
            raise InvalidArgument("the compiled engine does not tell the terms of a reward (reward_terms)")
        self.task = task
        self.compiled = compiled
        plain = machine_code.is_disabled()
        self._simulators: simulators.Simulators
        if isinstance(compiled, MujocoTask):
            self._simulators = simulators.MujocoSimulators(compiled, threads, plain=plain)
        else:
            self._simulators = simulators.ArraySimulators(compiled, threads, plain=plain)
        self.description = describe(task, compiled, self._simulators.actions, reason)
        self._limit = task.max_episode_steps or compiled.max_episode_steps

    def close(self) -> None:
        """End the threads and free their simulators; the next evaluation makes new ones."""
        self._simulators.close()

    def inspect(self) -> Inspection:
        """Run the first steps of a few episodes; see `Engine.inspect`. The seed always decides where they start."""
        network = Network(self.observation_size, self.actions.size)
        random = np.random.Generator(np.random.Philox(1))
        parameters = 0.1 * random.standard_normal((len(SEEDS), network.parameter_count), dtype=np.float32)
        job = self._job(Rollout(network, parameters, seed=SEEDS[0], generation=0, collect_moments=True))
        job.numbers[episode.LIMIT] = min(STEPS, self._limit)
        failures = self._simulators.run(job)
        if failures:
            return Inspection()  # they belong to the candidates that meet them
        return Inspection((), digest_of([job.totals, job.steps, job.moment_mean, job.moment_m2]))

    @takes_rollout
    def evaluate(self, rollout: Rollout) -> Outcomes:
        """Evaluate the candidates of `rollout`; see `Engine.evaluate`."""
        rollout.check(self.observation_size, self.actions.size)
        job = self._job(rollout)
        if not len(rollout.parameters):
            return self._outcomes(rollout, job, {})
        if isinstance(rollout.network, Network):
            return self._outcomes(rollout, job, self._simulators.run(job))
        plain = machine_code.is_disabled()
        policy = SlotPolicy(rollout.network, rollout.parameters, job.values, job.state, plain=plain)
        job.numbers[episode.POLICY], job.numbers[episode.WORDS] = policy.code, policy.words
        try:
            failures = self._simulators.run(job)
        finally:
            policy.close()
        if (job.status == episode.POLICY_RAISED).any():
            raise policy.fault()
        return self._outcomes(rollout, job, failures)

    def _job(self, rollout: Rollout) -> KernelJob:
        task, network, rows = self.task, rollout.network, len(rollout.parameters)
        forward = network if isinstance(network, Network) else Network(network.observation_size, network.action_size)
        size, slots, sizes = self.observation_size, self._simulators.slots, layer_sizes(forward)
        places = slots * episode.SPREAD
        kept = rows if rollout.collect_moments else 1  # rows to point at where no moments are collected
        statistics = rollout.statistics
        numbers = np.zeros(episode.NUMBERS, np.int64)
        numbers[episode.EPISODES] = task.episodes
        numbers[episode.LIMIT] = self._limit
        numbers[episode.HAS_BIAS] = forward.bias
        numbers[episode.IS_RELU] = forward.activation == "relu"
        numbers[episode.RESCALES] = self.actions.rescale
        numbers[episode.START] = self.actions.start
        numbers[episode.COLLECTS] = rollout.collect_moments
        numbers[episode.FRAME_SKIP] = getattr(self.compiled, "frame_skip", 1)
        numbers[episode.CHOICES] = self.actions.size
        return KernelJob(
            stop=np.zeros(1, np.int64),
            following=np.zeros(1, np.int64),
            ready=np.zeros(1, np.int64),
            current=np.full(slots, -1, np.int64),
            taken=np.zeros(places, np.int64),
            numbers=numbers,
            parameters=rollout.parameters,
            sizes=sizes,
            mean=np.zeros(size) if statistics is None else np.ascontiguousarray(statistics.mean),
            scale=np.ones(size) if statistics is None else np.ascontiguousarray(statistics.scale),
            bounds=_bounds(self.actions),
            arranged=np.zeros((places, forward.parameter_count), np.float32),
            values=np.zeros((places, len(sizes), int(sizes.max())), np.float32),
            observation=np.zeros((places, size)),
            action=np.zeros((places, self.actions.size), np.float32),
            memory=np.zeros((places, self._simulators.memory_size)),
            state=np.zeros((places, max(network.state_size, 1)), np.float32),
            totals=np.full(rows, np.nan),
            steps=np.zeros(rows, np.int64),
            status=np.zeros(rows, np.int64),
            counts=np.zeros(kept),
            moment_mean=np.zeros((kept, size)),
            moment_m2=np.zeros((kept, size)),
            options=words.option_words(self.compiled.options),
            seeds=self._seeds(rollout),
            starts=np.zeros((rows, task.episodes, self._simulators.start_size)),
            random=np.zeros((places, STATE_WORDS), np.uint64),
            calls=self._simulators.calls,
        )

    def _seeds(self, rollout: Rollout) -> NDArray[np.int64]:
        """Return each candidate's episode seeds, of shape (candidates, episodes)."""
        seeds = np.zeros((len(rollout.parameters), self.task.episodes), np.int64)
        if len(seeds):
            indices = seed_indices(rollout.indices, self.task.episode_seeds)
            for number in range(self.task.episodes):
                seeds[:, number] = uint32(
                    seed_words(
                        rollout.seed,
                        "candidate",
                        epoch=rollout.generation,
                        stream=rollout.stream,
                        indices=indices,
                        episode=number,
                    )
                )
        return seeds

    def _outcomes(self, rollout: Rollout, job: KernelJob, failed: dict[int, str]) -> Outcomes:
        broken = (job.status != episode.DONE) | ~np.isfinite(job.totals)
        fitness = self.task.fitness(job.totals, job.steps)
        returns = job.totals / self.task.episodes
        fitness[broken] = returns[broken] = np.nan
        moments = None
        if rollout.collect_moments:
            moments = Moments(job.counts.astype(np.int64), job.moment_mean, job.moment_m2)
            moments.count[broken] = 0
            moments.mean[broken] = moments.m2[broken] = 0.0
        failures = tuple(Failure(rollout.first + row, message) for row, message in sorted(failed.items()))
        return Outcomes(fitness, returns, job.steps, moments, failures)


def describe(task: Task, compiled: CompiledTask, actions: Actions, reason: str) -> EngineDescription:
    """Return what the engine says of itself for a task."""
    version = library_version("mujoco" if isinstance(compiled, MujocoTask) else "clipup")
    if task.rescale_actions:
        actions = replace(actions, rescale=True)
    solved = registered_score(task.env) if isinstance(task.env, str) else None
    return EngineDescription(NAME, version, reason, compiled.observation_size, actions, solved_score=solved)


def _bounds(actions: Actions) -> NDArray[np.float32]:
    """Return low ends, high ends, middles and half widths, as `Actions.converter` computes them."""
    bounds = np.zeros((4, actions.size), np.float32)
    if actions.kind == "box":
        bounds[0], bounds[1] = actions.low, actions.high
        if actions.rescale:
            bounds[2], bounds[3] = (bounds[1] + bounds[0]) / 2, (bounds[1] - bounds[0]) / 2
    return bounds
