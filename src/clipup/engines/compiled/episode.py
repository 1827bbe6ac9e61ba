"""One candidate's episodes from start to end: the loop that all compiled tasks share.

The functions here are the Python that Numba compiles, and run as plain Python too. A task brings two functions, `begin`
and `advance` (see `mujoco_world` and `array_world`). All else is here: normalizer, policy, moments, counting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clipup.compilation.primitives import call_policy, present, take_next
from clipup.policies.compiled import (
    arrange_one,
    bound_one,
    choose_one,
    forward_one,
    normalize_one,
    observe_one,
)
from clipup.policies.stepping import STEP_GOOD, STEP_NAN, STEP_RAISED

NOT_RUN, DONE, BROKEN, RAISED, POLICY_RAISED = range(5)
"""What became of a candidate: not run to its end, complete, stopped by a number that is not finite, or an exception of
the task or of the policy."""

NUMBERS = 11
EPISODES, LIMIT, HAS_BIAS, IS_RELU, RESCALES, START, COLLECTS, FRAME_SKIP, CHOICES, POLICY, WORDS = range(NUMBERS)
"""Places of whole numbers in `KernelJob.numbers`. `POLICY` is 0 for a feed-forward network, which is part of the loop.
Other policies are called by that address (`clipup.policies.stepping.SlotPolicy`)."""

SPREAD = 32
"""Rows from one slot's working memory to the next one's. Threads that write to one cache line slow each other down."""


class KernelJob(NamedTuple):
    """All that an evaluation reads and writes. A slot is what one thread works with at a time.

    Working memory has `SPREAD` rows for each slot, of which the first is used.

    Attributes
    ----------
    stop, following, ready
        One number each: whether to give up, the next candidate to be run, and how many have their starts.
    current
        For each slot the candidate that it runs, or -1.
    taken
        For each slot the steps of that candidate so far (working memory).
    numbers
        Whole numbers about the task and the network (`EPISODES` …).
    parameters, sizes
        The candidates' parameters, and the sizes of the network's layers.
    mean, scale, bounds
        The normalizer, and the bounds of actions (see `bound_one`).
    arranged, values, observation, action, memory, state
        Working memory of each slot; `memory` is the task's, `state` is what the policy remembers.
    totals, steps, status
        Results of each candidate: summed rewards, steps, and what became of it.
    counts, moment_mean, moment_m2
        Observation moments of each candidate (no rows where they are not collected).
    options
        The task's options, a word of eight bytes each.
    seeds, starts
        For each candidate and episode: its seed, and the positions and velocities of a MuJoCo task.
    random
        Random numbers of each slot.
    calls
        Addresses of MuJoCo's functions.
    """

    stop: NDArray[np.int64]
    following: NDArray[np.int64]
    ready: NDArray[np.int64]
    current: NDArray[np.int64]
    taken: NDArray[np.int64]
    numbers: NDArray[np.int64]
    parameters: NDArray[np.float32]
    sizes: NDArray[np.int64]
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    bounds: NDArray[np.float32]
    arranged: NDArray[np.float32]
    values: NDArray[np.float32]
    observation: NDArray[np.float64]
    action: NDArray[np.float32]
    memory: NDArray[np.float64]
    state: NDArray[np.float32]
    totals: NDArray[np.float64]
    steps: NDArray[np.int64]
    status: NDArray[np.int64]
    counts: NDArray[np.float64]
    moment_mean: NDArray[np.float64]
    moment_m2: NDArray[np.float64]
    options: NDArray[np.int64]
    seeds: NDArray[np.int64]
    starts: NDArray[np.float64]
    random: NDArray[np.uint64]
    calls: NDArray[np.int64]


class World(NamedTuple):
    """A task as the loop sees it.

    Attributes
    ----------
    begin
        ``begin(job, slot, row, episode, one, other)`` starts an episode, fills the slot's observation, and returns a
        handle. `one` and `other` are what the simulation works with: a model and its data, or a state.
    advance
        ``advance(job, slot, one, handle, options, memory, observation, action)`` takes a step, and returns the reward,
        whether the episode is over, and whether the simulation is still sound.
    options
        ``options(words)`` returns the task's options.
    discrete
        Whether an action is the index of the largest output.
    """

    begin: Callable[..., Any]
    advance: Callable[..., tuple[float, bool, bool]]
    options: Callable[[Any], Any]
    discrete: bool


def _box_action(outputs: Any, bounds: Any, numbers: Any, action: Any) -> Any:
    bound_one(outputs, bounds, numbers[RESCALES] != 0, action)
    return action


def _discrete_action(outputs: Any, bounds: Any, numbers: Any, action: Any) -> int:
    return choose_one(outputs, numbers[CHOICES]) + numbers[START]


def forget(state: Any) -> None:
    """Empty the memory of a policy."""
    for i in range(state.size):
        state[i] = 0.0


def run_policy(job: Any, slot: int, row: int, arranged: Any, values: Any) -> int:
    """Run the candidate's policy on the slot's observation; return what became of it (`STEP_GOOD` …)."""
    numbers = job.numbers
    if not normalize_one(job.observation[slot], job.mean, job.scale, values[0]):
        return STEP_NAN
    if numbers[POLICY] != 0:
        return call_policy(numbers[POLICY], numbers[WORDS], row, slot)
    good = forward_one(arranged, job.sizes, numbers[HAS_BIAS] != 0, numbers[IS_RELU] != 0, values)
    return STEP_GOOD if good else STEP_NAN


def make_candidate(world: World) -> Callable[..., None]:
    """Return the function that runs all episodes of one candidate: ``(job, slot, row, one, other)``."""
    begin, advance, options_of = world.begin, world.advance, world.options
    action_of = _discrete_action if world.discrete else _box_action

    def candidate(job: Any, slot: int, row: int, one: Any, other: Any) -> None:
        numbers, sizes = job.numbers, job.sizes
        options = options_of(job.options)
        arranged, values = job.arranged[slot], job.values[slot]
        observation, memory = job.observation[slot], job.memory[slot]
        outputs, state, collects = values[sizes.size - 1], job.state[slot], numbers[COLLECTS] != 0
        moment_row = row if collects else 0
        if numbers[POLICY] == 0:
            arrange_one(job.parameters[row], sizes, numbers[HAS_BIAS] != 0, arranged)
        count, summed, status = 0.0, 0.0, DONE
        taken = job.taken
        taken[slot] = 0
        for episode in range(numbers[EPISODES]):
            handle = begin(job, slot, row, episode, one, other)
            forget(state)
            total = 0.0
            steps = 0
            while steps < numbers[LIMIT]:
                if present(job.stop) != 0:
                    return
                result = run_policy(job, slot, row, arranged, values)
                if result == STEP_RAISED:
                    job.status[row] = POLICY_RAISED
                    job.stop[0] = 1
                    return
                if result != STEP_GOOD:
                    status = BROKEN
                    break
                if collects:
                    count += 1.0
                    observe_one(observation, count, job.moment_mean[moment_row], job.moment_m2[moment_row])
                action = action_of(outputs, job.bounds, numbers, job.action[slot])
                reward, over, sound = advance(job, slot, one, handle, options, memory, observation, action)
                steps += 1
                taken[slot] += 1  # at once, so that an error keeps the count
                total += reward
                if not sound:
                    status = BROKEN
                    break
                if over:
                    break
            summed += total
            if status == BROKEN:
                break
        if collects:
            job.counts[moment_row] = count
        job.totals[row] = summed
        job.steps[row] = taken[slot]
        job.status[row] = status

    return candidate


def make_slot(candidate: Callable[..., None]) -> Callable[..., None]:
    """Return the function that runs candidates until none is left: ``(job, slot, one, other)``.

    For machine code alone: it keeps no exception's text, because it cannot.
    """

    def run_slot(job: Any, slot: int, one: Any, other: Any) -> None:
        rows = job.parameters.shape[0]
        while present(job.stop) == 0:
            row = take_next(job.following)
            if row >= rows:
                break
            while present(job.ready) <= row:  # Python is some microseconds behind
                if present(job.stop) != 0:
                    return
            job.current[slot] = row
            try:
                candidate(job, slot * SPREAD, row, one, other)
            except Exception:
                job.steps[row] = job.taken[slot * SPREAD]
                job.status[row] = RAISED
            job.current[slot] = -1

    return run_slot
