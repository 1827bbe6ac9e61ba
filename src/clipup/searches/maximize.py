"""A whole search in one call."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypedDict, TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from clipup.errors import InvalidArgument, InvalidFitness
from clipup.optimizers.protocol import Optimizer, Vector, as_floats, check_number
from clipup.searches.checks import is_whole
from clipup.searches.pgpe import PGPE
from clipup.searches.protocol import FloatArray, Search

ScoreFunction = Callable[[FloatArray], ArrayLike]
StopReason = Literal["generations", "target", "callback", "interrupted"]
SearchT = TypeVar("SearchT", bound=Search)


class PGPEArguments(TypedDict, total=False):
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
    """The figures of one generation; `best` and `mean` are over its candidates."""

    generation: int
    best: float
    mean: float
    speed: float
    clipped: bool
    gradient_norm: float | None
    stdev_norm: float
    nonfinite: int


@dataclass(frozen=True, eq=False, repr=False)
class OptimizationResult(Generic[SearchT]):
    """Where a search ended, its history, and why it stopped.

    `center` is the solution of the search. `best` is the candidate with the highest (for `minimize`: lowest) fitness of
    all; if the fitness is noisy, part of `best_fitness` is luck. `search` is the search itself, and can go on.
    """

    center: FloatArray
    best: FloatArray
    best_fitness: float
    history: tuple[GenerationSummary, ...]
    stopped: StopReason
    search: SearchT

    def __repr__(self) -> str:
        """Return one short line; the fields hold the rest."""
        return (
            f"OptimizationResult(best_fitness {self.best_fitness:.6g}, {len(self.center)} parameters, "
            f"{len(self.history)} generations, stopped: {self.stopped})"
        )


def maximize(
    score: ScoreFunction,
    *,
    generations: int = 100,
    target: float | None = None,
    callback: Callable[[GenerationSummary], bool | None] | None = None,
    **settings: Unpack[PGPEArguments],
) -> OptimizationResult[PGPE]:
    """Search for the parameters of highest score.

    Parameters
    ----------
    score
        Takes the candidates, of shape ``(n, dimension)``, and returns their n fitnesses; higher is better.
    generations
        The largest number of updates.
    target
        Stop once a candidate reaches this fitness.
    callback
        Called with the summary of each generation, to show progress; it returns True to stop the search.
    **settings
        The keyword arguments of :class:`PGPE`, without `interactions` and `population_max`. At least ``dimension=`` or
        ``center=``, and ``max_speed=``.

    Ctrl-C ends the search early and returns what was found, with ``stopped == "interrupted"``.

    >>> result = maximize(lambda x: -np.square(x - 1.0).sum(axis=1), dimension=2, max_speed=0.3, seed=1)
    >>> bool(np.abs(result.center - 1.0).max() < 0.3), result.stopped
    (True, 'generations')
    """
    return optimize(_pgpe(settings, 1.0), score, 1.0, generations, target, callback)


def minimize(
    score: ScoreFunction,
    *,
    generations: int = 100,
    target: float | None = None,
    callback: Callable[[GenerationSummary], bool | None] | None = None,
    **settings: Unpack[PGPEArguments],
) -> OptimizationResult[PGPE]:
    """Search for the parameters of lowest score: :func:`maximize` with the sign turned, also in its results.

    `target` and `fitness_max` are scores too: the one to reach from above, and the lowest possible one.

    >>> result = minimize(lambda x: np.square(x).sum(axis=1), center=[2.0, 2.0], max_speed=0.3, target=0.01, seed=1)
    >>> result.stopped, bool(result.best_fitness <= 0.01)
    ('target', True)
    """
    return optimize(_pgpe(settings, -1.0), score, -1.0, generations, target, callback)


def _pgpe(settings: PGPEArguments, sign: float) -> PGPE:
    for name in settings.keys() - PGPEArguments.__annotations__.keys():
        known = ", ".join(PGPEArguments.__annotations__)
        raise InvalidArgument(f"{name!r} is not an argument of this search; it takes {known}")
    fitness_max = settings.get("fitness_max")
    if fitness_max is not None:
        settings = {**settings, "fitness_max": sign * check_number("fitness_max", fitness_max)}
    return PGPE(**settings)


def optimize(
    search: SearchT,
    score: ScoreFunction,
    sign: float,
    generations: int,
    target: float | None,
    callback: Callable[[GenerationSummary], bool | None] | None,
) -> OptimizationResult[SearchT]:
    """Run any search to its end; a `sign` of -1 minimizes the score."""
    if not is_whole(generations) or generations < 1:
        raise InvalidArgument(f"generations must be a positive whole number, got {generations!r}")
    goal = math.inf if target is None else sign * check_number("target", target)
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
            history.append(_summary(search, usable[np.isfinite(usable)], sign))
            if best_fitness == -math.inf:
                raise InvalidFitness(
                    f"no fitness of generation {search.generation} is a finite number, so there is nothing to follow; "
                    "check the score function"
                )
            if callback is not None and callback(history[-1]) is True:
                stopped = "callback"
                break
            if best_fitness >= goal:
                stopped = "target"
                break
    except KeyboardInterrupt:
        stopped = "interrupted"
    return OptimizationResult(search.center, best, sign * best_fitness, tuple(history), stopped, search)


def _summary(search: Search, finite: Vector, sign: float) -> GenerationSummary:
    figures = search.figures()
    best, mean = (float(finite.max()), float(finite.mean())) if finite.size else (math.nan, math.nan)
    step = (figures.speed, figures.clipped, figures.gradient_norm, figures.stdev_norm, figures.nonfinite)
    return GenerationSummary(search.generation, sign * best, sign * mean, *step)
