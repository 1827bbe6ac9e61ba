"""Schedules: settings of a search that change over a run, as a factor of what was set.

A schedule is a line of text, so that it fits into a flag, a configuration file and a report. It is a pure function of
the generations and interactions that a run has made, so a resumed run goes on exactly where it was.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from clipup.errors import InvalidArgument
from clipup.searches.protocol import SearchSettings

SCHEDULED = ("max_speed", "step_ratio", "radius", "population", "stdev_learning_rate")
"""The settings that can have a schedule."""
SHAPES = ("constant", "linear", "cosine", "piecewise")
UNITS = ("generations", "interactions")
_EXAMPLE = "like 'max_speed: cosine 1 to 0.1 over 500 generations'"
_NUMBER = r"[-+0-9.eE_]+"


@dataclass(frozen=True)
class Schedule:
    """A factor over the course of a run.

    `points` are positions and factors: two for "linear" and "cosine", which go from the first to the second and stay
    there, one or more for "piecewise", each of which holds until the next one.

    >>> schedule = parse_schedules("max_speed: linear 1 to 0.5 over 10 generations")["max_speed"]
    >>> [schedule.factor(generations=at, interactions=0) for at in (0, 5, 10, 20)]
    [1.0, 0.75, 0.5, 0.5]
    """

    shape: str
    points: tuple[tuple[float, float], ...]
    unit: str = UNITS[0]

    def factor(self, generations: int, interactions: int) -> float:
        """Return the factor after so many generations and interactions."""
        at = float(generations if self.unit == "generations" else interactions)
        if self.shape in {"constant", "piecewise"}:
            return [factor for start, factor in self.points if start <= at][-1]
        (_, first), (end, last) = self.points
        done = min(1.0, at / end)
        if self.shape == "cosine":
            done = (1 - math.cos(math.pi * done)) / 2
        return first + (last - first) * done


def parse_schedules(text: str) -> Mapping[str, Schedule]:
    """Return the schedules in `text`, by the name of their setting, or refuse it. A semicolon divides them.

    >>> parse_schedules("population: piecewise 1, 2 at 100, 4 at 300 generations")["population"].points
    ((0.0, 1.0), (100.0, 2.0), (300.0, 4.0))
    >>> parse_schedules("step_ratio: constant 0.5; max_speed: cosine 1 to 0.1 over 2e6 interactions")["max_speed"].unit
    'interactions'
    """
    found: dict[str, Schedule] = {}
    for part in text.split(";"):
        name, colon, rest = (piece.strip() for piece in part.partition(":"))
        if not colon or name not in SCHEDULED:
            raise InvalidArgument(
                f"schedule must name one of {', '.join(SCHEDULED)}, {_EXAMPLE}, got {part.strip()[:60]!r}"
            )
        if name in found:
            raise InvalidArgument(f"schedule must name {name} once, got it twice")
        found[name] = _parse(" ".join(rest.split()))
    return found


def _parse(text: str) -> Schedule:
    shape = text.partition(" ")[0]
    if shape == "constant" and (match := re.fullmatch(rf"constant ({_NUMBER})", text)):
        return Schedule(shape, ((0.0, _factor(match[1])),))
    ramp = re.fullmatch(
        rf"(linear|cosine) ({_NUMBER}) to ({_NUMBER}) over ({_NUMBER}) (generations|interactions)", text
    )
    if ramp:
        points = ((0.0, _factor(ramp[2])), (_position(ramp[4]), _factor(ramp[3])))
        return Schedule(ramp[1], points, ramp[5])
    steps = re.fullmatch(rf"piecewise ({_NUMBER})((?:, {_NUMBER} at {_NUMBER})+) (generations|interactions)", text)
    if steps:
        later = [each.split(" at ") for each in steps[2].removeprefix(", ").split(", ")]
        points = ((0.0, _factor(steps[1])), *((_position(at), _factor(factor)) for factor, at in later))
        if any(one[0] >= other[0] for one, other in pairwise(points)):
            raise InvalidArgument(f"the positions of a piecewise schedule must grow, got {text[:80]!r}")
        return Schedule("piecewise", points, steps[3])
    raise InvalidArgument(
        "a schedule is 'constant F', 'linear F to F over N UNIT', 'cosine F to F over N UNIT' or "
        f"'piecewise F, F at N, … UNIT', with UNIT generations or interactions, got {text[:60]!r}"
    )


def _positive(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise InvalidArgument(f"{what} of a schedule must be a positive number, got {text[:30]!r}")
    return value


def _factor(text: str) -> float:
    return _positive(text, "the factor")


def _position(text: str) -> float:
    return _positive(text, "the position")


def scheduled(
    settings: SearchSettings, schedules: Mapping[str, Schedule], generations: int, interactions: int
) -> SearchSettings:
    """Return the settings of the generation that comes after so many generations and interactions.

    The population stays even, at least 2, and at most `population_max`. The radius is no setting of a generation, but
    part of a search's state: its factor is for `Adjustable.adjust`.
    """
    factors = {name: schedule.factor(generations, interactions) for name, schedule in schedules.items()}
    population = 2 * max(1, round(settings.population * factors.get("population", 1.0) / 2))
    if settings.interactions is not None and settings.population_max is not None:
        population = min(population, settings.population_max)
    return replace(
        settings,
        max_speed=settings.max_speed * factors.get("max_speed", 1.0),
        step_ratio=settings.step_ratio * factors.get("step_ratio", 1.0),
        population=population,
        stdev_learning_rate=settings.stdev_learning_rate * factors.get("stdev_learning_rate", 1.0),
    )
