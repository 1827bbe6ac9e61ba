"""A run's records as columns of numbers, written as small as the eye allows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from clipup.report.runs import LARGEST, LoadedRun

Cell = float | int | None
Columns = dict[str, list[Cell]]

PLAIN = ("population", "fitness_mean", "fitness_best", "speed", "stdev_norm", "gradient_norm", "gradient_agreement")
# A cumulative column is stored as its increments: shorter, and exact, as they are whole numbers.
CUMULATIVE = ("generation", "total_interactions", "milliseconds")
COLUMN_COUNT = len(PLAIN) + len(CUMULATIVE) + 3

# Up to so many cells they are written in full, so that the page holds every bit of the records. Beyond, training curves
# (never scores or times) are rounded to a step of 1/1000 of their range or less: a chart is 200 pixels high. Beyond the
# last limit, lines are left out evenly (those with a score stay). So a page stays below 1 MB; measured by
# benchmarks/report_size.py.
FULL_CELLS = 60_000
CELL_LIMIT = 400_000
# What stands about a run beside its curves takes as much of the page as so many cells (250 bytes, compressed).
RUN_CELLS = 120


def columns(run: LoadedRun, *, rounded: bool = False, stride: int = 1, first: int = 0) -> Columns:
    """The columns of a run from its record number `first` on."""
    seconds = {line.generation: line for line in run.clock}
    kept = [
        record
        for place, record in enumerate(run.records[first:])
        if stride == 1 or place % stride == 0 or record.score is not None or place == len(run.records) - 1
    ]
    clocks = [seconds.get(record.generation) for record in kept]
    result: Columns = {name: [cell(getattr(record, name)) for record in kept] for name in PLAIN}
    result["steps_per_second"] = [cell(line.steps_per_second) if line else None for line in clocks]
    result["score_standard_error"] = [cell(record.score_standard_error) for record in kept]
    if rounded:
        result = {name: round_to_range(values) for name, values in result.items()}
    result["score"] = [cell(record.score) for record in kept]
    result["generation"] = increments([record.generation for record in kept])
    result["total_interactions"] = increments([cell(record.total_interactions) for record in kept])
    # Never coarser than in the file: generations may be shorter than any step that would make the page smaller, and
    # those of equal times could not be told apart.
    times = [line.seconds if line and math.isfinite(line.seconds) else None for line in clocks]
    result["milliseconds"] = increments([None if time is None else round(1000 * time) for time in times])
    return result


def precision(generations: int, runs: int = 1) -> tuple[bool, int]:
    """Whether to round, and one line of how many to keep, for so many generations of so many runs in one page."""
    cells = generations * COLUMN_COUNT
    room = max(CELL_LIMIT // 4, CELL_LIMIT - runs * RUN_CELLS)
    return cells > FULL_CELLS, max(1, math.ceil(cells / room))


def cell(value: float | None) -> Cell:
    """`value` as JSON can spell it: whole numbers without a point, None where it is not finite or nearly so.

    >>> cell(200.0), cell(0.5), cell(float("nan")), cell(10**400)
    (200, 0.5, None, None)
    """
    if value is None or not abs(value) < LARGEST:
        return None
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def round_to_range(values: Sequence[Cell]) -> list[Cell]:
    """Round to the largest step of 1, 2 or 5 times a power of ten that divides the range into 1000 parts or more.

    >>> round_to_range([0.123456, 1.0, None]), round_to_range([12345.678, 22345.678])
    ([0.1235, 1, None], [12350, 22350])
    """
    known = [value for value in values if value is not None]
    spread = max(known, default=0.0) - min(known, default=0.0)
    # A constant column is short already; and it should keep its value to the last digit.
    if not spread > 0:
        return list(values)
    power = math.floor(math.log10(spread / 1000))
    factor = next(factor for factor in (5, 2, 1) if factor * 10.0**power <= spread / 1000 or factor == 1)
    return [
        None if value is None else cell(round(round(value / factor, -power) * factor, max(0, -power)))
        for value in values
    ]


def increments(values: Sequence[Cell]) -> list[Cell]:
    """Differences between consecutive known values; the first stands for itself, gaps stay gaps.

    >>> increments([5, 7, None, 10])
    [5, 2, None, 3]
    """
    result: list[Cell] = []
    last: float | int = 0
    for value in values:
        if value is None:
            result.append(None)
        else:
            result.append(value - last)
            last = value
    return result


def accumulate(values: Iterable[Cell]) -> list[Cell]:
    """The opposite of `increments`; the page does the same."""
    result: list[Cell] = []
    total: float | int = 0
    for value in values:
        total += value or 0
        result.append(None if value is None else total)
    return result
