"""The search for `max_speed`: which runs to make, and how long. Bad trials are stopped early.

Where `max_speed` cannot matter (`clipup.diagnosis.scale`), the same search is made for `radius_factor`, the radius over
the longest step.

0. *Difference.* Try the lowest, the middle and the highest value. If three whole runs score the same, the setting makes
   no difference, and the search ends.

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
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


MOST_POINTS = 1000
RANGES: Mapping[str, tuple[float, float]] = {"max_speed": (0.003, 10.0), "radius_factor": (1.5, 150.0)}
"""The settings that can be searched first, with the range that is searched unless another is given."""


@dataclass(frozen=True)
class Point:
    """Values of the searched settings. None: the setting is as in the configuration, or follows from max_speed."""

    max_speed: float | None = None
    radius_factor: float | None = None
    step_ratio: float | None = None
    population: int | None = None

    def settings(self) -> dict[str, float]:
        """The searched settings by name."""
        named = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: value for name, value in named.items() if value is not None}

    def value(self, setting: str) -> float:
        """The value of a setting that the point has."""
        return self.settings()[setting]

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

    low: float = RANGES["max_speed"][0]
    high: float = RANGES["max_speed"][1]
    points: int = 8
    budget: float = 20.0
    extra: int = 4
    """Trials of the further settings, if they are searched."""
    setting: str = "max_speed"
    """The setting that is searched first: one of `RANGES`."""

    def __post_init__(self) -> None:
        if self.setting not in RANGES:
            raise InvalidArgument(f"the setting must be one of {', '.join(RANGES)}, got {self.setting!r}")
        if not (0 < self.low < self.high < math.inf):
            raise InvalidArgument(f"the range must satisfy 0 < low < high, got {self.low:g} to {self.high:g}")
        if not 3 <= self.points <= MOST_POINTS:
            raise InvalidArgument(f"points must be at least 3 and at most {MOST_POINTS}, got {self.points!r:.20}")
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

    def at(value: float) -> Point:
        return Point(**{settings.setting: _round(value)})  # pyright: ignore[reportArgumentType]  (a float setting)

    grid = [at(settings.low * step**number) for number in range(settings.points)]
    race = _Race(evaluator, settings.budget)
    foresee(planned_cost(settings, with_extra=extra > 0))
    if race.no_difference([grid[0], grid[len(grid) // 2], grid[-1]]):
        return [Standing(point, (race.values[point][WHOLE],)) for point in race.complete()]
    race.run(grid)
    for _ in range(EXTENSIONS):
        best = race.best()
        tried = sorted(point.value(settings.setting) for point in race.values)
        outward = {tried[0]: 1 / step, tried[-1]: step}.get(best.value(settings.setting))
        if outward is None or not race.leads_clearly(best):
            break
        foresee(WHOLE + REFINEMENTS + extra + _finalists_cost())
        race.run([at(best.value(settings.setting) * outward)])
    best = race.best()
    foresee(REFINEMENTS + extra + _finalists_cost())
    # The neighbours of the best are probably good, and half a run cannot tell them apart.
    race.run_whole([at(best.value(settings.setting) * factor) for factor in (1 / math.sqrt(step), math.sqrt(step))])
    if suggest is not None:
        best = race.best()
        for number in range(extra):
            foresee(extra - number + _finalists_cost())
            race.run([suggest(best, number)])
    foresee(_finalists_cost(len(race.complete())))
    return _finalists(evaluator, settings, race, foresee)


class _Race:
    """One seed per point. Points that fall behind are not run to the end."""

    def __init__(self, evaluator: TrialEvaluator, budget: float) -> None:
        self._evaluator = evaluator
        self._budget = budget
        self.values: dict[Point, dict[float, float]] = {}

    def run(self, points: Sequence[Point]) -> None:
        """Run new points for half a run, and to the end those that are among the best so far."""
        for point in points:
            if point not in self.values:
                self._advance(point, SCAN_SHARE)
        for point in self._ahead(points):
            self._advance(point, WHOLE)

    def no_difference(self, points: Sequence[Point]) -> bool:
        """Whether whole runs of these points have equal values; the points are run as far as it takes to know."""
        for share in (SCAN_SHARE, WHOLE):
            for point in points:
                self._advance(point, share)
            found = [self.values.get(point, {}).get(share, -math.inf) for point in points]
            if not all(math.isfinite(value) and math.isclose(value, found[0], rel_tol=1e-12) for value in found):
                return False
        return True

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


def _finalists(
    evaluator: TrialEvaluator, settings: TuningSettings, race: _Race, foresee: Callable[[float], None]
) -> list[Standing]:
    standings = [Standing(point, (race.values[point][WHOLE],)) for point in race.complete()]
    if not standings:
        raise InvalidArgument("no trial was run to its end: every run failed, or the budget is too small")
    for count, seeds in FINALISTS:
        # One more seed for all of them or for none: standings are sorted by their number of seeds first.
        for seed in range(1, seeds):
            places = [place for place in range(min(count, len(standings))) if len(standings[place].values) == seed]
            if not _add_seed(evaluator, settings, standings, places, seed):
                break
        _sort(standings)
    # The first value that was dropped after one seed gets its seeds too, if luck alone may be why it lost.
    best = standings[0]
    place = next((place for place, standing in enumerate(standings) if len(standing.values) == 1), 0)
    luck = best.standard_error * math.sqrt(len(best.values))
    if place and standings[place].mean + luck > best.mean:
        for seed in range(1, len(best.values)):
            if seed < FINALISTS[0][1] or standings[place].mean >= best.mean:
                foresee(max(1, FINALISTS[0][1] - seed))
                _add_seed(evaluator, settings, standings, [place], seed)
    _sort(standings)
    return standings


def _add_seed(
    evaluator: TrialEvaluator, settings: TuningSettings, standings: list[Standing], places: Sequence[int], seed: int
) -> bool:
    """Run one more seed of each of these standings; False, and none is run, where the budget does not allow it."""
    cost = sum(evaluator.cost(standings[place].point, seed, WHOLE) for place in places)
    if evaluator.spent() + cost > settings.budget + 1e-9:
        return False
    for place in places:
        if len(standings[place].values) != seed:
            continue  # the budget did not allow the seed before
        value = evaluator.value(standings[place].point, seed, WHOLE)
        standings[place] = replace(standings[place], values=(*standings[place].values, value))
    return True


def _sort(standings: list[Standing]) -> None:
    """Best first. A mean over more seeds is better evidence, unless a run failed."""
    standings.sort(key=lambda standing: (standing.mean == -math.inf, -len(standing.values), -standing.mean))


def _promoted(count: int) -> int:
    return max(1, math.ceil(PROMOTED * count))


def _round(value: float) -> float:
    """Round to three digits: no task tells values apart more finely, and they are easy to type."""
    return float(f"{value:.3g}")
