"""A whole search in one call."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from clipup.errors import InvalidArgument, InvalidFitness
from clipup.optimizers.protocol import Optimizer, as_floats, check_number
from clipup.searches.fitness import FitnessArray
from clipup.searches.pgpe import PGPE
from clipup.searches.sampling import FloatArray
from clipup.searches.settings import is_whole

Score = Callable[[FloatArray], ArrayLike]
StopReason = Literal["generations", "target", "interrupted"]


class SearchSettings(TypedDict, total=False):
    """The arguments of :class:`PGPE` that a search in one call takes: all but those of an adaptive population."""

    dimension: int | None
    center: ArrayLike | None
    population_size: int | None
    max_speed: float | None
    step_size: float | None
    momentum: float | None
    radius: float | None
    stdev: ArrayLike | None
    stdev_learning_rate: float
    stdev_max_change: float | None
    fitness_shaping: str
    fitness_max: float | None
    optimizer: Optimizer | None
    seed: int | None


@dataclass(frozen=True)
class GenerationSummary:
    """What one generation brought; `best` and `mean` are over its candidates."""

    generation: int
    best: float
    mean: float
    speed: float
    clipped: bool
    gradient_norm: float
    stdev_norm: float
    nonfinite: int


@dataclass(frozen=True, eq=False)
class OptimizationResult:
    """Where a search ended, what it saw on the way, and why it stopped.

    `center` is the solution that the search stands for; `best` the single candidate of highest (for `minimize`: lowest)
    fitness that it met, which under noise owes part of its `best_fitness` to luck. `search` can be gone on with.
    """

    center: FloatArray
    best: FloatArray
    best_fitness: float
    history: tuple[GenerationSummary, ...]
    stopped: StopReason
    search: PGPE


def maximize(
    score: Score,
    *,
    generations: int = 100,
    target: float | None = None,
    callback: Callable[[GenerationSummary], None] | None = None,
    **settings: Unpack[SearchSettings],
) -> OptimizationResult:
    """Search for the parameters of highest score.

    Parameters
    ----------
    score
        Takes the candidates, of shape ``(n, dimension)``, and returns their n fitnesses; higher is better.
    generations
        How many updates to make at most.
    target
        Stop once a candidate reaches this fitness.
    callback
        Called with each generation's summary, for progress.
    **settings
        The keyword arguments of :class:`PGPE` but `interactions` and `population_max`: at least ``dimension=`` or
        ``center=``, and ``max_speed=``.

    Ctrl-C ends the search early and returns what was found, with ``stopped == "interrupted"``.

    >>> result = maximize(lambda x: -np.square(x - 1.0).sum(axis=1), dimension=2, max_speed=0.3, seed=1)
    >>> bool(np.abs(result.center - 1.0).max() < 0.3), result.stopped
    (True, 'generations')
    """
    return _optimize(score, 1.0, generations, target, callback, settings)


def minimize(
    score: Score,
    *,
    generations: int = 100,
    target: float | None = None,
    callback: Callable[[GenerationSummary], None] | None = None,
    **settings: Unpack[SearchSettings],
) -> OptimizationResult:
    """Search for the parameters of lowest score: :func:`maximize` with the sign turned, also in what it reports.

    `target` and `fitness_max` are scores too: the one to get down to, and the lowest possible.

    >>> result = minimize(lambda x: np.square(x).sum(axis=1), center=[2.0, 2.0], max_speed=0.3, target=0.01, seed=1)
    >>> result.stopped, bool(result.best_fitness <= 0.01)
    ('target', True)
    """
    return _optimize(score, -1.0, generations, target, callback, settings)


def _optimize(
    score: Score,
    sign: float,
    generations: int,
    target: float | None,
    callback: Callable[[GenerationSummary], None] | None,
    settings: SearchSettings,
) -> OptimizationResult:
    if not is_whole(generations) or generations < 1:
        raise InvalidArgument(f"generations must be a positive whole number, got {generations!r}")
    goal = math.inf if target is None else sign * check_number("target", target)
    for name in settings.keys() - SearchSettings.__annotations__.keys():
        known = ", ".join(SearchSettings.__annotations__)
        raise InvalidArgument(f"{name!r} is not an argument of this search; it takes {known}")
    fitness_max = settings.get("fitness_max")
    if fitness_max is not None:
        settings = {**settings, "fitness_max": sign * check_number("fitness_max", fitness_max)}
    search = PGPE(**settings)
    best, best_fitness = search.center, -math.inf
    history: list[GenerationSummary] = []
    stopped: StopReason = "generations"
    try:
        while search.generation < generations:
            population, batch = search.ask(), search.batch()
            fitnesses = sign * as_floats("the scores", score(population), InvalidFitness)
            search.tell(fitnesses)
            usable = np.where(np.isfinite(fitnesses), fitnesses, -np.inf)
            leader = int(np.argmax(usable))
            if usable[leader] > best_fitness:
                # Made again from its index: the score function may have written into the population.
                best, best_fitness = batch.candidates(leader, leader + 1)[0], float(usable[leader])
            history.append(_summary(search, usable, sign))
            if callback is not None:
                callback(history[-1])
            if best_fitness >= goal:
                stopped = "target"
                break
    except KeyboardInterrupt:
        stopped = "interrupted"
    return OptimizationResult(search.center, best, sign * best_fitness, tuple(history), stopped, search)


def _summary(search: PGPE, fitnesses: FitnessArray, sign: float) -> GenerationSummary:
    finite = fitnesses[np.isfinite(fitnesses)]
    summary = GenerationSummary(
        generation=search.generation,
        best=math.nan,
        mean=math.nan,
        speed=search.speed,
        clipped=search.clipped,
        gradient_norm=search.gradient_norm,
        stdev_norm=float(np.sqrt(np.square(search.stdev, dtype=np.float64).sum())),
        nonfinite=search.nonfinite,
    )
    if not finite.size:
        return summary
    return replace(summary, best=sign * float(finite.max()), mean=sign * float(finite.mean()))
