"""Which runs to make, and how long: a geometric search over `max_speed` that stops bad trials early.

1. *Scan.* Values spread geometrically over the range, one seed each. All get half a run, the best three of eight a
   whole one. If the best stands clearly at an end of the range, it is extended. (Sooner, scores mislead: on
   LunarLanderContinuous-v3 after a fifth of a run, values a hundred times too small are ahead of the right one.)
2. *Refine.* The values half a step to either side of the best get a whole run.
3. *Finalists.* The best three get two more seeds, the best two of them another two: one seed says little.

The search sees runs only through `Evaluator`, whose answers do not depend on when it is asked. So going on after an
interruption is nothing but searching again: what was already run is looked up, and every decision falls the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from clipup.errors import InvalidArgument

SCAN_SHARE, WHOLE = 0.5, 1.0
PROMOTED = 3 / 8
"""The share of the values of a scan that get a whole run."""
FINALISTS = ((3, 3), (2, 5))
"""So many values go on until they have so many seeds each."""
REFINEMENTS = 2
"""So many neighbours of the best get a whole run."""
EXTENSIONS = 2
"""How often the range may be extended by a step."""
CLEARLY = 0.02
"""An end of the range is clearly best when it beats the next by this share of the spread that the scan saw. On a
plateau, where any small step will do (or where doing nothing pays best at first), further out is no better."""


@dataclass(frozen=True, order=True)
class Point:
    """The settings that are searched over. None: follow from max_speed as usual."""

    max_speed: float
    radius_factor: float | None = None
    step_ratio: float | None = None

    def settings(self) -> dict[str, float]:
        """The settings by name, those that are searched."""
        named = {"max_speed": self.max_speed, "radius_factor": self.radius_factor, "step_ratio": self.step_ratio}
        return {name: value for name, value in named.items() if value is not None}


class Evaluator(Protocol):
    """Runs a point with a seed until a share of a whole run is done."""

    def value(self, point: Point, seed: int, share: float) -> float:
        """How good the run is after that share; -inf if it failed. Higher is better."""
        ...

    def spent(self) -> float:
        """Whole runs' worth done so far, those of earlier sessions included."""
        ...

    def cost(self, point: Point, seed: int, share: float) -> float:
        """Whole runs' worth that `value` would add."""
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


@dataclass(frozen=True)
class SearchSettings:
    """Where to search and how much it may cost."""

    low: float = 0.003
    high: float = 10.0
    points: int = 8
    budget: float = 20.0
    extra: int = 4
    """Trials for the further settings, when they are asked for."""

    def __post_init__(self) -> None:
        if not (0 < self.low < self.high < math.inf):
            raise InvalidArgument(f"the range must be 0 < low < high, got {self.low:g} to {self.high:g}")
        if self.points < 3:
            raise InvalidArgument(f"points must be at least 3, got {self.points}")
        least = scan_cost(self.points)
        if not self.budget >= least:
            raise InvalidArgument(
                f"a budget of {self.budget:g} runs is too little to scan {self.points} values: at least {least:g}"
            )


def scan_cost(points: int) -> float:
    """Whole runs' worth of a scan over so many values."""
    return points * SCAN_SHARE + _promoted(points) * (WHOLE - SCAN_SHARE)


def planned_cost(settings: SearchSettings, *, with_extra: bool) -> float:
    """About how many whole runs' worth a search takes; at most its budget."""
    whole = scan_cost(settings.points) + REFINEMENTS + settings.extra * with_extra + _finalists_cost()
    return min(settings.budget, whole)


def _finalists_cost(points: int = FINALISTS[0][0]) -> float:
    """Whole runs' worth of the further seeds, when so many points were run to the end."""
    cost, before = 0, 1
    for count, seeds in FINALISTS:
        cost += min(count, points) * (seeds - before)
        before = seeds
    return cost


def search(
    evaluator: Evaluator,
    settings: SearchSettings,
    suggest: Callable[[Point, int], Point] | None = None,
    expect: Callable[[float], None] | None = None,
) -> list[Standing]:
    """Return the points that were run to the end, the best first; the first is the answer.

    `suggest` gives the n-th variation of a point in further settings, where those are searched too. `expect`
    is told about how many whole runs' worth it will be in all: at first, and whenever more is known.
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
    # Neighbours of the best are good by all likelihood, and half a run says too little to tell them apart.
    race.run_whole([Point(_round(best.max_speed / math.sqrt(step))), Point(_round(best.max_speed * math.sqrt(step)))])
    if suggest is not None:
        best = race.best()
        for number in range(extra):
            foresee(extra - number + _finalists_cost())
            race.run([suggest(best, number)])
    foresee(_finalists_cost(len(race.complete())))
    return _finalists(evaluator, settings, race)


class _Race:
    """One seed for each point; those that fall behind are not run to the end."""

    def __init__(self, evaluator: Evaluator, budget: float) -> None:
        self._evaluator = evaluator
        self._budget = budget
        self.values: dict[Point, dict[float, float]] = {}

    def run(self, points: Sequence[Point]) -> None:
        """Run new points as far as they deserve, against each other and against those before."""
        fresh = [point for point in points if point not in self.values]
        for point in fresh:
            self._advance(point, SCAN_SHARE)
        for point in self._ahead(fresh):
            self._advance(point, WHOLE)

    def run_whole(self, points: Sequence[Point]) -> None:
        """Run points to the end, whatever they look like on the way."""
        for point in points:
            self._advance(point, SCAN_SHARE)
            self._advance(point, WHOLE)

    def best(self) -> Point:
        """The best point that was run to the end, or as far as any."""
        furthest = max(max(done) for done in self.values.values())
        complete = [point for point, done in self.values.items() if max(done) == furthest]
        return max(complete, key=lambda point: self.values[point][furthest])

    def leads_clearly(self, best: Point) -> bool:
        """Whether `best` beats every other point that came as far by more than a trifle."""
        seen = [
            values[SCAN_SHARE] for values in self.values.values() if math.isfinite(values.get(SCAN_SHARE, math.nan))
        ]
        furthest = max(self.values[best])
        others = [done[furthest] for point, done in self.values.items() if point != best and furthest in done]
        scale = max(seen, default=0.0) - min(seen, default=0.0)
        return not others or self.values[best][furthest] - max(others) > CLEARLY * scale

    def complete(self) -> list[Point]:
        """Points that were run to the end, the best first."""
        done = [point for point, values in self.values.items() if values.get(WHOLE, -math.inf) > -math.inf]
        return sorted(done, key=lambda point: -self.values[point][WHOLE])

    def _advance(self, point: Point, share: float) -> None:
        if self._evaluator.spent() + self._evaluator.cost(point, 0, share) <= self._budget + 1e-9:
            self.values.setdefault(point, {})[share] = self._evaluator.value(point, 0, share)

    def _ahead(self, points: Sequence[Point]) -> list[Point]:
        """Those of `points` that are among the best of all that were scanned."""
        scanned = [values[SCAN_SHARE] for values in self.values.values() if SCAN_SHARE in values]
        # Runs that failed set no bar: where most fail, the few that do not would be below it.
        working = sorted((value for value in scanned if math.isfinite(value)), reverse=True)
        if not working:
            return []
        bar = working[min(_promoted(len(scanned)), len(working)) - 1]
        return [point for point in points if self.values.get(point, {}).get(SCAN_SHARE, -math.inf) >= bar]


def _finalists(evaluator: Evaluator, settings: SearchSettings, race: _Race) -> list[Standing]:
    standings = [Standing(point, (race.values[point][WHOLE],)) for point in race.complete()]
    if not standings:
        raise InvalidArgument("no trial came to its end: every run failed, or the budget is too small")
    for count, seeds in FINALISTS:
        # One more seed for each of them, or for none: by having more than the others, a bad value would win.
        for seed in range(1, seeds):
            places = [place for place in range(min(count, len(standings))) if len(standings[place].values) == seed]
            cost = sum(evaluator.cost(standings[place].point, seed, WHOLE) for place in places)
            if evaluator.spent() + cost > settings.budget + 1e-9:
                break
            for place in places:
                value = evaluator.value(standings[place].point, seed, WHOLE)
                standings[place] = replace(standings[place], values=(*standings[place].values, value))
        # More seeds say more, unless what they say is that a run failed.
        standings.sort(key=lambda standing: (standing.mean == -math.inf, -len(standing.values), -standing.mean))
    return standings


def _promoted(count: int) -> int:
    return max(1, math.ceil(PROMOTED * count))


def _round(value: float) -> float:
    """Three digits: no task tells more apart, and people can type them."""
    return float(f"{value:.3g}")
