"""The search for `max_speed`: which runs to make, and how long. Bad trials are stopped early.

1. *Scan.* Try values spread geometrically over the range, one seed each. All get half a run, the best three of eight a
   whole one. If the best is clearly at an end of the range, extend the range. (Half a run, because scores mislead
   sooner: on LunarLanderContinuous-v3 after a fifth of a run, values a hundred times too small lead.)
2. *Refine.* Give a whole run to the values half a step to either side of the best.
3. *Finalists.* Give two more seeds to the best three values, and another two to the best two: one seed says little.

The search sees runs only through `TrialEvaluator`, whose answers do not depend on when it is asked. Continuing after an
interruption is therefore the same search again: finished trials are looked up, and every decision is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from clipup.errors import InvalidArgument

SCAN_SHARE, WHOLE = 0.5, 1.0
PROMOTED = 3 / 8
"""Share of the scanned values that get a whole run."""
FINALISTS = ((3, 3), (2, 5))
"""Rounds of (number of values, seeds that each of them gets in total)."""
REFINEMENTS = 2
"""Neighbours of the best value that get a whole run."""
EXTENSIONS = 2
"""How many times the range may be extended by a step."""
CLEARLY = 0.02
"""An end of the range is clearly best if it leads by this share of the spread of the scanned scores. On a plateau,
where any small step works (or where doing nothing pays best at first), going further out does not help."""


@dataclass(frozen=True, order=True)
class Point:
    """Values of the searched settings. None: the setting follows from max_speed as usual."""

    max_speed: float
    radius_factor: float | None = None
    step_ratio: float | None = None

    def settings(self) -> dict[str, float]:
        """The searched settings by name."""
        named = {"max_speed": self.max_speed, "radius_factor": self.radius_factor, "step_ratio": self.step_ratio}
        return {name: value for name, value in named.items() if value is not None}

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:g}" for name, value in self.settings().items())


class TrialEvaluator(Protocol):
    """Trains a point with a seed for a share of a whole run."""

    def value(self, point: Point, seed: int, share: float) -> float:
        """The value of the run after that share, higher is better; -inf if it failed."""
        ...

    def spent(self) -> float:
        """Training done so far, in whole runs, including earlier sessions."""
        ...

    def cost(self, point: Point, seed: int, share: float) -> float:
        """Training that `value` would add, in whole runs."""
        ...


@dataclass(frozen=True)
class Standing:
    """A point and the final values of its seeds."""

    point: Point
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return sum(self.values) / len(self.values) if self.values else -math.inf

    @property
    def standard_error(self) -> float:
        """The standard error of the mean; nan for one seed."""
        count = len(self.values)
        if count < 2:
            return math.nan
        variance = sum((value - self.mean) ** 2 for value in self.values) / (count - 1)
        return math.sqrt(variance / count)


@dataclass(frozen=True)
class TuningSettings:
    """The range to search, and what it may cost."""

    low: float = 0.003
    high: float = 10.0
    points: int = 8
    budget: float = 20.0
    extra: int = 4
    """Trials of the further settings, if they are searched."""

    def __post_init__(self) -> None:
        if not (0 < self.low < self.high < math.inf):
            raise InvalidArgument(f"the range must satisfy 0 < low < high, got {self.low:g} to {self.high:g}")
        if self.points < 3:
            raise InvalidArgument(f"points must be at least 3, got {self.points}")
        least = scan_cost(self.points)
        if not self.budget >= least:
            raise InvalidArgument(
                f"scanning {self.points} values needs a budget of at least {least:g} runs, got {self.budget:g}"
            )


def scan_cost(points: int) -> float:
    """The cost of a scan over `points` values, in whole runs."""
    return points * SCAN_SHARE + _promoted(points) * (WHOLE - SCAN_SHARE)


def planned_cost(settings: TuningSettings, *, with_extra: bool) -> float:
    """The expected cost of a search, in whole runs; at most its budget."""
    whole = scan_cost(settings.points) + REFINEMENTS + settings.extra * with_extra + _finalists_cost()
    return min(settings.budget, whole)


def _finalists_cost(points: int = FINALISTS[0][0]) -> float:
    """The cost of the finalists' further seeds, in whole runs, if `points` values were run to the end."""
    cost, before = 0, 1
    for count, seeds in FINALISTS:
        cost += min(count, points) * (seeds - before)
        before = seeds
    return cost


def search_max_speed(
    evaluator: TrialEvaluator,
    settings: TuningSettings,
    suggest: Callable[[Point, int], Point] | None = None,
    expect: Callable[[float], None] | None = None,
) -> list[Standing]:
    """Return the points that were run to the end, best first. The first is the answer.

    `suggest` gives the n-th variation of a point in further settings, if those are searched. `expect` receives the
    expected total cost in whole runs, at the start and whenever the estimate changes.
    """

    def foresee(more: float) -> None:
        if expect is not None:
            expect(min(settings.budget, evaluator.spent() + more))

    extra = 0 if suggest is None else settings.extra
    step = (settings.high / settings.low) ** (1 / (settings.points - 1))
    grid = [Point(_round(settings.low * step**number)) for number in range(settings.points)]
    race = _Race(evaluator, settings.budget)
    foresee(planned_cost(settings, with_extra=extra > 0))
    race.run(grid)
    for _ in range(EXTENSIONS):
        best = race.best()
        tried = sorted(point.max_speed for point in race.values)
        outward = {tried[0]: 1 / step, tried[-1]: step}.get(best.max_speed)
        if outward is None or not race.leads_clearly(best):
            break
        foresee(WHOLE + REFINEMENTS + extra + _finalists_cost())
        race.run([Point(_round(best.max_speed * outward))])
    best = race.best()
    foresee(REFINEMENTS + extra + _finalists_cost())
    # The neighbours of the best are probably good, and half a run cannot tell them apart.
    race.run_whole([Point(_round(best.max_speed / math.sqrt(step))), Point(_round(best.max_speed * math.sqrt(step)))])
    if suggest is not None:
        best = race.best()
        for number in range(extra):
            foresee(extra - number + _finalists_cost())
            race.run([suggest(best, number)])
    foresee(_finalists_cost(len(race.complete())))
    return _finalists(evaluator, settings, race)


class _Race:
    """One seed per point. Points that fall behind are not run to the end."""

    def __init__(self, evaluator: TrialEvaluator, budget: float) -> None:
        self._evaluator = evaluator
        self._budget = budget
        self.values: dict[Point, dict[float, float]] = {}

    def run(self, points: Sequence[Point]) -> None:
        """Run new points for half a run, and to the end those that are among the best so far."""
        fresh = [point for point in points if point not in self.values]
        for point in fresh:
            self._advance(point, SCAN_SHARE)
        for point in self._ahead(fresh):
            self._advance(point, WHOLE)

    def run_whole(self, points: Sequence[Point]) -> None:
        """Run points to the end, however they do on the way."""
        for point in points:
            self._advance(point, SCAN_SHARE)
            self._advance(point, WHOLE)

    def best(self) -> Point:
        """The best of the points that were run furthest."""
        furthest = max(max(done) for done in self.values.values())
        complete = [point for point, done in self.values.items() if max(done) == furthest]
        return max(complete, key=lambda point: self.values[point][furthest])

    def leads_clearly(self, best: Point) -> bool:
        """Whether `best` leads all other points that were run as far by more than `CLEARLY`."""
        scanned = (values.get(SCAN_SHARE, math.nan) for values in self.values.values())
        seen = [value for value in scanned if math.isfinite(value)]
        furthest = max(self.values[best])
        others = [done[furthest] for point, done in self.values.items() if point != best and furthest in done]
        scale = max(seen, default=0.0) - min(seen, default=0.0)
        return not others or self.values[best][furthest] - max(others) > CLEARLY * scale

    def complete(self) -> list[Point]:
        """The points that were run to the end, best first."""
        done = [point for point, values in self.values.items() if values.get(WHOLE, -math.inf) > -math.inf]
        return sorted(done, key=lambda point: -self.values[point][WHOLE])

    def _advance(self, point: Point, share: float) -> None:
        if self._evaluator.spent() + self._evaluator.cost(point, 0, share) <= self._budget + 1e-9:
            self.values.setdefault(point, {})[share] = self._evaluator.value(point, 0, share)

    def _ahead(self, points: Sequence[Point]) -> list[Point]:
        """The ones of `points` that are among the best scanned so far."""
        scanned = [values[SCAN_SHARE] for values in self.values.values() if SCAN_SHARE in values]
        # Failed runs do not raise the bar: where most runs fail, the few others must still get over it.
        working = sorted((value for value in scanned if math.isfinite(value)), reverse=True)
        if not working:
            return []
        bar = working[min(_promoted(len(scanned)), len(working)) - 1]
        return [point for point in points if self.values.get(point, {}).get(SCAN_SHARE, -math.inf) >= bar]


def _finalists(evaluator: TrialEvaluator, settings: TuningSettings, race: _Race) -> list[Standing]:
    standings = [Standing(point, (race.values[point][WHOLE],)) for point in race.complete()]
    if not standings:
        raise InvalidArgument("no trial was run to its end: every run failed, or the budget is too small")
    for count, seeds in FINALISTS:
        # One more seed for all of them or for none: standings are sorted by their number of seeds first.
        for seed in range(1, seeds):
            places = [place for place in range(min(count, len(standings))) if len(standings[place].values) == seed]
            cost = sum(evaluator.cost(standings[place].point, seed, WHOLE) for place in places)
            if evaluator.spent() + cost > settings.budget + 1e-9:
                break
            for place in places:
                value = evaluator.value(standings[place].point, seed, WHOLE)
                standings[place] = replace(standings[place], values=(*standings[place].values, value))
        # A mean over more seeds is better evidence, unless a run failed.
        standings.sort(key=lambda standing: (standing.mean == -math.inf, -len(standing.values), -standing.mean))
    return standings


def _promoted(count: int) -> int:
    return max(1, math.ceil(PROMOTED * count))


def _round(value: float) -> float:
    """Round to three digits: no task tells values apart more finely, and they are easy to type."""
    return float(f"{value:.3g}")
