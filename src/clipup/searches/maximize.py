"""A whole search in one call."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import TracebackType
from typing import Generic, Literal, Protocol, Self, TypedDict, TypeVar, Unpack, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from clipup.errors import InvalidArgument, InvalidFitness
from clipup.optimizers.protocol import Optimizer, Vector, as_floats, check_number
from clipup.searches.bounds import Bounds
from clipup.searches.checks import is_whole
from clipup.searches.pgpe import PGPE
from clipup.searches.protocol import Batch, FloatArray, Search

ScoreFunction = Callable[[FloatArray], ArrayLike]
Box = tuple[ArrayLike, ArrayLike] | Bounds
Callback = Callable[["GenerationSummary"], bool | None]
StopReason = Literal["generations", "target", "callback", "interrupted", "stalled"]
SearchT = TypeVar("SearchT", bound=Search)
SearchT_co = TypeVar("SearchT_co", bound=Search, covariant=True)

_RESTARTS = 0x636C6970_75700002  # the second half of the key of the numbers that restarts draw


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
    stdev_min: float | None
    stdev_max: float | None
    fitness_shaping: str
    fitness_max: float | None
    symmetric: bool
    orthogonal: bool
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
    population: int = 0
    restart: int = 0
    """How many restarts came before this generation."""


@dataclass(frozen=True, eq=False, repr=False)
class OptimizationResult(Generic[SearchT_co]):
    """Where a search ended, its history, and why it stopped.

    `center` is the solution of the search. `best` is the candidate with the highest (for `minimize`: lowest) fitness of
    all; if the fitness is noisy, part of `best_fitness` is luck. `search` is the search itself, and can go on. After
    restarts, `center` and `search` are those that found `best`.
    """

    center: FloatArray
    best: FloatArray
    best_fitness: float
    history: tuple[GenerationSummary, ...]
    stopped: StopReason
    search: SearchT_co

    def __repr__(self) -> str:
        """Return one short line; the fields hold the rest."""
        return (
            f"OptimizationResult(best_fitness {self.best_fitness:.6g}, {len(self.center)} parameters, "
            f"{len(self.history)} generations, stopped: {self.stopped})"
        )


@overload
def maximize(
    score: ScoreFunction,
    *,
    generations: int = 100,
    target: float | None = None,
    callback: Callback | None = None,
    bounds: Box | None = None,
    restarts: int | None = None,
    batch_size: int | None = None,
    workers: int | None = None,
    **settings: Unpack[PGPEArguments],
) -> OptimizationResult[PGPE]: ...


@overload
def maximize(
    score: ScoreFunction,
    *,
    search: Callable[..., SearchT],
    generations: int = 100,
    target: float | None = None,
    callback: Callback | None = None,
    bounds: Box | None = None,
    restarts: int | None = None,
    batch_size: int | None = None,
    workers: int | None = None,
    **settings: object,
) -> OptimizationResult[SearchT]: ...


def maximize(
    score: ScoreFunction,
    *,
    search: Callable[..., Search] = PGPE,
    generations: int = 100,
    target: float | None = None,
    callback: Callback | None = None,
    bounds: Box | None = None,
    restarts: int | None = None,
    batch_size: int | None = None,
    workers: int | None = None,
    **settings: object,
) -> OptimizationResult[Search]:
    """Search for the parameters of highest score.

    Parameters
    ----------
    score
        Takes the candidates, of shape ``(n, dimension)``, and returns their n fitnesses; higher is better.
    search
        Which search: :class:`PGPE`, or another class of ours, such as :class:`clipup.SNES`.
    generations
        The largest number of updates, those of all restarts together.
    target
        Stop once a candidate reaches this fitness.
    callback
        Called with the summary of each generation, to show progress; it returns True to stop the search.
    bounds
        ``(low, high)``, numbers or vectors: the score sees candidates within them only (:class:`clipup.Bounds`). Unless
        a `center` is given, the search starts in their middle, if they are finite.
    restarts
        How often a search that has stalled starts anew, each time with twice the candidates (IPOP: Auger and Hansen
        2005). It starts at a random point of the bounds, or, without finite bounds, of its initial distribution. A
        search has stalled if ``10 + 30 * dimension / population`` generations brought no better candidate. If the last
        restart has stalled too, the call ends with ``stopped == "stalled"``. None: never look.
    batch_size
        The score gets at most this many candidates at once (default: all of a generation, or 1 with `workers`).
    workers
        How many processes share the candidates; None and 1 stay in this process. With `workers`, the score always gets
        arrays of `batch_size` candidates, so the result has the same bits for any number of workers, if the score
        depends on its candidates alone. It must be defined at the top level of a module, or of the script that is run,
        which does its work under ``if __name__ == "__main__":``. A worker that dies is replaced. An error in the score
        ends the search with the number of the candidate.
    **settings
        The keyword arguments of the search, without `interactions` and `population_max`. At least ``dimension=`` or
        ``center=``, and ``max_speed=`` (for a search without optimizer: ``stdev=``).

    Notes
    -----
    Ctrl-C ends the search early and returns what was found, with ``stopped == "interrupted"``.

    >>> result = maximize(lambda x: -np.square(x - 1.0).sum(axis=1), dimension=2, max_speed=0.3, seed=1)
    >>> bool(np.abs(result.center - 1.0).max() < 0.3), result.stopped
    (True, 'generations')
    """
    box = None if bounds is None else Bounds.of(bounds)
    first, again = _made(search, settings, 1.0, box)
    return _optimized(first, score, 1.0, generations, target, callback, box, restarts, again, batch_size, workers)


@overload
def minimize(
    score: ScoreFunction,
    *,
    generations: int = 100,
    target: float | None = None,
    callback: Callback | None = None,
    bounds: Box | None = None,
    restarts: int | None = None,
    batch_size: int | None = None,
    workers: int | None = None,
    **settings: Unpack[PGPEArguments],
) -> OptimizationResult[PGPE]: ...


@overload
def minimize(
    score: ScoreFunction,
    *,
    search: Callable[..., SearchT],
    generations: int = 100,
    target: float | None = None,
    callback: Callback | None = None,
    bounds: Box | None = None,
    restarts: int | None = None,
    batch_size: int | None = None,
    workers: int | None = None,
    **settings: object,
) -> OptimizationResult[SearchT]: ...


def minimize(
    score: ScoreFunction,
    *,
    search: Callable[..., Search] = PGPE,
    generations: int = 100,
    target: float | None = None,
    callback: Callback | None = None,
    bounds: Box | None = None,
    restarts: int | None = None,
    batch_size: int | None = None,
    workers: int | None = None,
    **settings: object,
) -> OptimizationResult[Search]:
    """Search for the parameters of lowest score: :func:`maximize` with the sign turned, also in its results.

    `target` and `fitness_max` are scores too: the one to reach from above, and the lowest possible one.

    >>> result = minimize(lambda x: np.square(x).sum(axis=1), center=[2.0, 2.0], max_speed=0.3, target=0.01, seed=1)
    >>> result.stopped, bool(result.best_fitness <= 0.01)
    ('target', True)
    """
    box = None if bounds is None else Bounds.of(bounds)
    first, again = _made(search, settings, -1.0, box)
    return _optimized(first, score, -1.0, generations, target, callback, box, restarts, again, batch_size, workers)


Again = Callable[[int], Search]


class _ScoreExecutor(Protocol):
    """Scores batches of candidates; what `clipup.executors.scores` makes."""

    def __call__(self, batch: Batch) -> Vector: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def _optimized(
    search: Search,
    score: ScoreFunction,
    sign: float,
    generations: int,
    target: float | None,
    callback: Callback | None,
    bounds: Bounds | None,
    restarts: int | None,
    again: Again,
    batch_size: int | None,
    workers: int | None,
) -> OptimizationResult[Search]:
    """Run a search, with the score in this process or in workers."""
    run = partial(
        optimize, search, score, sign, generations, target, callback, bounds=bounds, restarts=restarts, again=again,
        batch_size=batch_size,
    )  # fmt: skip
    if workers is None:
        return run()
    if not is_whole(workers) or workers < 1:
        raise InvalidArgument(f"workers must be a positive whole number, got {workers!r}")
    size = 1 if batch_size is None else batch_size
    if not is_whole(size) or size < 1:
        raise InvalidArgument(f"batch_size must be a positive whole number, got {batch_size!r}")
    # By name: executors stand above searches, and a search without workers needs numpy alone.
    make = cast("Callable[..., _ScoreExecutor]", import_module("clipup.executors.scores").ScoreExecutor)
    with make(score, bounds=bounds, batch_size=size, workers=workers) as scores:
        return run(scores=scores)


def _made(
    search: Callable[..., Search], settings: Mapping[str, object], sign: float, box: Bounds | None
) -> tuple[Search, Again]:
    """Return the search at its start, and how the one after so many restarts is made."""
    known = PGPEArguments.__annotations__.keys()
    for name in settings.keys() - known if search is PGPE else settings.keys() & {"interactions", "population_max"}:
        takes = f"; it takes {', '.join(known)}" if search is PGPE else ", because a score counts no interactions"
        raise InvalidArgument(f"{name!r} is not an argument of this search{takes}")
    given = dict(settings)
    if given.get("fitness_max") is not None:
        given["fitness_max"] = sign * check_number("fitness_max", cast(float, given["fitness_max"]))
    if box is not None and given.get("center") is None:
        middle = box.middle(cast("int | None", given.get("dimension")))
        if middle is not None:
            given["center"] = middle
    try:
        first = search(**given)
    except TypeError as error:
        raise InvalidArgument(f"the search refused its arguments: {error}") from error
    size, spread = first.figures().population, first.figures().stdev_norm / math.sqrt(first.dimension)

    def again(restart: int) -> Search:
        key = np.array([first.seed, _RESTARTS], np.uint64)
        random = np.random.Generator(np.random.Philox(key=key, counter=[0, restart, 0, 0]))
        if box is not None and box.middle(first.dimension) is not None:
            center = random.uniform(box.low, box.high, first.dimension)
        else:
            center = first_center + spread * random.standard_normal(first.dimension)
        anew = {"center": center, "population_size": size * 2**restart, "seed": int(random.integers(2**63))}
        return search(**given | anew)

    first_center = first.center.astype(np.float64)
    return first, again


def optimize(
    search: SearchT,
    score: ScoreFunction,
    sign: float,
    generations: int,
    target: float | None,
    callback: Callback | None,
    *,
    bounds: Bounds | None = None,
    restarts: int | None = None,
    again: Again | None = None,
    batch_size: int | None = None,
    scores: Callable[[Batch], Vector] | None = None,
) -> OptimizationResult[SearchT]:
    """Run any search to its end; a `sign` of -1 minimizes the score. `scores`, if given, is called instead of it."""
    if not is_whole(generations) or generations < 1:
        raise InvalidArgument(f"generations must be a positive whole number, got {generations!r}")
    if batch_size is not None and (not is_whole(batch_size) or batch_size < 1):
        raise InvalidArgument(f"batch_size must be a positive whole number, got {batch_size!r}")
    if restarts is not None and (not is_whole(restarts) or restarts < 0):
        raise InvalidArgument(f"restarts must be a whole number, not negative, got {restarts!r}")
    goal = math.inf if target is None else sign * check_number("target", target)
    box = None if bounds is None else bounds.check_dimension(search.dimension)

    def inside(candidates: FloatArray) -> FloatArray:
        return candidates if box is None else box.fold(candidates)

    finder, best, best_fitness = search, inside(search.center), -math.inf
    history: list[GenerationSummary] = []
    stopped: StopReason = "generations"
    restart, local_best, idle = 0, -math.inf, 0
    try:
        while search.generation < generations and len(history) < generations:
            population, batch = search.ask(), search.batch()
            found = _scores(score, inside(population), batch_size) if scores is None else scores(batch)
            fitnesses = sign * found
            search.tell(fitnesses)
            usable = np.where(np.isfinite(fitnesses), fitnesses, -np.inf)
            leader = int(np.argmax(usable))
            if usable[leader] > best_fitness:
                # Made again from its index: the score function may have written into the population.
                best, best_fitness = inside(batch.candidates(leader, leader + 1))[0], float(usable[leader])
                finder = search
            idle = 0 if usable[leader] > local_best else idle + 1
            local_best = max(local_best, float(usable[leader]))
            finite = usable[np.isfinite(usable)]
            history.append(_summary(search, len(history) + 1 if restart else search.generation, finite, sign, restart))
            if best_fitness == -math.inf:
                raise InvalidFitness(
                    f"no fitness of generation {search.generation} is a finite number, so there is nothing to follow; "
                    "check the score function"
                )
            answer = None if callback is None else callback(history[-1])
            if isinstance(answer, bool | np.bool_) and answer:  # comparisons of numpy's numbers give the latter
                stopped = "callback"
                break
            if best_fitness >= goal:
                stopped = "target"
                break
            if restarts is not None and idle >= 10 + 30 * search.dimension / len(fitnesses):
                if restart == restarts or again is None:
                    stopped = "stalled"
                    break
                restart, local_best, idle = restart + 1, -math.inf, 0
                search = cast(SearchT, again(restart))
    except KeyboardInterrupt:
        stopped = "interrupted"
    return OptimizationResult(inside(finder.center), best, sign * best_fitness, tuple(history), stopped, finder)


def _scores(score: ScoreFunction, population: FloatArray, batch_size: int | None) -> Vector:
    if batch_size is None:
        return as_floats("the scores", score(population), InvalidFitness)
    parts: list[Vector] = []
    for start in range(0, len(population), batch_size):
        part = population[start : start + batch_size]
        asked = len(part)
        found = as_floats("the scores", score(part), InvalidFitness)
        if found.shape != (asked,):
            raise InvalidFitness(f"one score for each of {asked} candidates is needed, got shape {found.shape}")
        parts.append(found)
    return np.concatenate(parts)


def _summary(search: Search, generation: int, finite: Vector, sign: float, restart: int) -> GenerationSummary:
    figures = search.figures()
    return GenerationSummary(
        generation=generation,
        best=sign * float(finite.max()) if finite.size else math.nan,
        mean=sign * float(finite.mean()) if finite.size else math.nan,
        speed=figures.speed,
        clipped=figures.clipped,
        gradient_norm=figures.gradient_norm,
        stdev_norm=figures.stdev_norm,
        nonfinite=figures.nonfinite,
        population=figures.population,
        restart=restart,
    )
