"""A whole search in one call."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from clipup.errors import InvalidArgument
from clipup.search.pgpe import PGPE
from clipup.search.sampling import FloatArray

Score = Callable[[FloatArray], ArrayLike]
StopReason = Literal["generations", "target", "interrupted"]


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
    **settings: Any,
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
    **settings: Any,
) -> OptimizationResult:
    """Search for the parameters of lowest score: :func:`maximize` with the sign turned, also in what it reports.

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
    settings: dict[str, Any],
) -> OptimizationResult:
    if isinstance(generations, bool) or generations < 1:
        raise InvalidArgument(f"generations must be a positive whole number, got {generations!r}")
    _check_settings(settings)
    search = PGPE(**settings)
    best, best_fitness = search.center, -math.inf
    history: list[GenerationSummary] = []
    stopped: StopReason = "generations"
    try:
        while search.generation < generations:
            population = search.ask()
            # A copy: a score function that writes into its argument must not change the best candidate afterwards.
            fitnesses = sign * np.asarray(score(population.copy()), dtype=np.float64)
            search.tell(fitnesses)
            usable = np.where(np.isfinite(fitnesses), fitnesses, -np.inf)
            leader = int(np.argmax(usable))
            if usable[leader] > best_fitness:
                best, best_fitness = population[leader].copy(), float(usable[leader])
            history.append(_summary(search, usable, sign))
            if callback is not None:
                callback(history[-1])
            if target is not None and best_fitness >= sign * target:
                stopped = "target"
                break
    except KeyboardInterrupt:
        stopped = "interrupted"
    return OptimizationResult(search.center, best, sign * best_fitness, tuple(history), stopped, search)


def _summary(search: PGPE, fitnesses: np.ndarray[tuple[int], np.dtype[np.float64]], sign: float) -> GenerationSummary:
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


def _check_settings(settings: dict[str, Any]) -> None:
    allowed = inspect.signature(PGPE).parameters.keys() - {"interactions", "population_max"}
    for name in settings.keys() - allowed:
        raise InvalidArgument(f"{name!r} is not an argument of this search; it takes {', '.join(sorted(allowed))}")
