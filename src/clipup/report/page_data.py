"""From loaded runs to the data of a page: plain values that JSON can represent, as compact as a chart allows."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from clipup.report.commands import repeat_command, train_command
from clipup.report.groups import RunGroup, group_runs, setting_rows
from clipup.report.loading import RUN_LIMIT, LoadedRun, unreadable
from clipup.runs.records import LARGEST

PageData = dict[str, object]
Cell = float | int | None
Columns = dict[str, list[Cell]]

PLAIN = ("population", "fitness_mean", "fitness_best", "speed", "stdev_norm", "gradient_norm", "gradient_agreement")
# A cumulative column is stored as its increments. They are shorter, and exact because they are whole numbers.
CUMULATIVE = ("generation", "total_interactions", "milliseconds")
COLUMN_COUNT = len(PLAIN) + len(CUMULATIVE) + 3

# Two limits keep a page below 1 MB (measured by benchmarks/report_size.py). Up to FULL_CELLS, the page holds every
# digit of the records. Beyond, training curves (never scores or times) are rounded to a step of at most 1/1000 of their
# range: a chart is 200 pixels high. Beyond CELL_LIMIT, rows are thinned evenly; those with a score stay.
FULL_CELLS = 60_000
CELL_LIMIT = 400_000
# The page needs as much space for a run's other data as for this many cells (250 bytes, compressed).
RUN_CELLS = 120


@dataclass(frozen=True)
class Detail:
    """How exactly numbers are written."""

    rounded: bool
    stride: int
    """One record in this many is kept."""

    @classmethod
    def fitting(cls, generations: int, runs: int = 1) -> Detail:
        """The detail that keeps a page small, for a total of `generations` in `runs` runs."""
        cells = generations * COLUMN_COUNT
        room = max(CELL_LIMIT // 4, CELL_LIMIT - runs * RUN_CELLS)
        return cls(cells > FULL_CELLS, max(1, math.ceil(cells / room)))


def page_data(runs: Sequence[LoadedRun], *, left_out: int = 0) -> PageData:
    """Everything that the page shows. `left_out` is the number of runs that it does not show."""
    total = sum(len(run.records) for run in runs)
    detail = Detail.fitting(total, len(runs))
    names, groups = short_names(runs), group_runs(runs)
    group_of = group_numbers(groups)
    notes = limit_notes(left_out)
    if detail.stride > 1:
        notes.append(
            f"This page shows one generation in {detail.stride} of {total:,}, and every generation with a score. "
            "The records of the runs hold the rest."
        )
    if detail.rounded:
        notes.append(
            "To keep this page small, training curves are rounded to a thousandth of their range or finer. "
            "Scores and times are exact."
        )
    return {
        "title": page_title(runs),
        "notes": notes,
        **group_data(groups),
        "runs": [
            run_data(run, names[place], group_of[place], rounded=detail.rounded, stride=detail.stride)
            for place, run in enumerate(runs)
        ],
    }


def group_numbers(groups: Sequence[RunGroup]) -> dict[int, int]:
    """The number of the group of each run, by the run's index."""
    return {place: number for number, group in enumerate(groups) for place in group.members}


def group_data(groups: Sequence[RunGroup]) -> PageData:
    """The groups and their settings."""
    return {
        "groups": [{"label": group.label, "task": group.task, "runs": list(group.members)} for group in groups],
        "settings": [asdict(row) for row in setting_rows(groups)],
    }


def run_data(
    run: LoadedRun, name: str, group: int, *, rounded: bool = False, stride: int = 1, first: int = 0
) -> PageData:
    """Everything about a run, with its curves from record number `first` on.

    Any failure becomes a problem of this run, so that the page can still show the others.
    """
    try:
        data = {**run_head(run, name, group), "columns": columns(run, rounded=rounded, stride=stride, first=first)}
        json.dumps(data, allow_nan=False)
    except Exception as error:
        problem = f"cannot be shown: {type(error).__name__}: {' '.join(str(error).split())}"
        empty = unreadable(run.path, *run.problems, problem)
        return {**run_head(empty, name, group), "columns": columns(empty)}
    return data


def run_head(run: LoadedRun, name: str, group: int) -> PageData:
    """Everything about a run except its curves."""
    config, status = run.config, run.status
    findings, failure = run.diagnose()
    scored = [record for record in run.records if record.score is not None]
    last, final = (run.records[-1] if run.records else None), (scored[-1] if scored else None)
    ended_at_end = status.state == "finished" and status.score is not None
    score = status.score if ended_at_end else final.score if final else None
    error = status.score_standard_error if ended_at_end else final.score_standard_error if final else None
    best = max((record.score for record in scored if record.score is not None), default=None)
    if best is not None and score is not None:
        best = max(best, score)
    return {
        "name": name,
        "path": str(run.path),
        "group": group,
        "seed": config.seed if config else None,
        "state": status.state,
        "reason": status.reason,
        "problems": [*run.problems, *failure],
        "generation": last.generation if last else 0,
        "generations": config.generations if config else None,
        "interactions": _finite(last.total_interactions) if last else 0,
        "seconds": _finite(run.clock[-1].seconds) if run.clock else None,
        "score": _finite(score),
        "score_standard_error": _finite(error),
        "best_score": _finite(best),
        "max_speed": _finite(last.max_speed) if last else None,
        "command": train_command(config) if config else None,
        "repeat": repeat_command(run.path, config.env, config.cluster, config.policy, config.wrapper)
        if config
        else None,
        "findings": [finding.as_json() for finding in findings],
    }


def limit_notes(left_out: int) -> list[str]:
    """What the page says about runs beyond the limit."""
    return [f"A page shows at most {RUN_LIMIT:,} runs; {left_out:,} more were found and left out."] if left_out else []


def short_names(runs: Sequence[LoadedRun]) -> list[str]:
    """A name for each run: its directory's, with as many parents as are needed to tell the runs apart."""
    names = [run.path.name for run in runs]
    for depth in range(2, 6):
        if len(set(names)) == len(names):
            break
        twice = {name for name in names if names.count(name) > 1}
        longer = ["/".join(run.path.parts[-depth:]) for run in runs]
        names = [long if name in twice else name for name, long in zip(names, longer, strict=True)]
    return names


def page_title(runs: Sequence[LoadedRun]) -> str:
    """The environments of the runs; where none is known, the name of the run or a general title."""
    envs = list(dict.fromkeys(str(run.settings["env"]) for run in runs if "env" in run.settings))
    if not envs:
        return runs[0].path.name if len(runs) == 1 else "Runs"
    return ", ".join(envs[:3]) + (f" and {len(envs) - 3} more" if len(envs) > 3 else "")


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def columns(run: LoadedRun, *, rounded: bool = False, stride: int = 1, first: int = 0) -> Columns:
    """The columns of a run, from record number `first` on."""
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
    # Times are never rounded further than in the file: two generations with equal times could not be told apart.
    times = [line.seconds if line and math.isfinite(line.seconds) else None for line in clocks]
    result["milliseconds"] = increments([None if time is None else round(1000 * time) for time in times])
    return result


def cell(value: float | None) -> Cell:
    """`value` for JSON: a whole number without its point, None for a value that is not finite or very large.

    >>> cell(200.0), cell(0.5), cell(float("nan")), cell(10**400)
    (200, 0.5, None, None)
    """
    if value is None or not abs(value) < LARGEST:
        return None
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def round_to_range(values: Sequence[Cell]) -> list[Cell]:
    """Round to the largest step (1, 2 or 5 times a power of ten) that divides the range into at least 1000 parts.

    >>> round_to_range([0.123456, 1.0, None]), round_to_range([12345.678, 22345.678])
    ([0.1235, 1, None], [12350, 22350])
    """
    known = [value for value in values if value is not None]
    spread = max(known, default=0.0) - min(known, default=0.0)
    # A constant column compresses well anyway, so it keeps every digit.
    if not spread > 0:
        return list(values)
    power = math.floor(math.log10(spread / 1000))
    factor = next(factor for factor in (5, 2, 1) if factor * 10.0**power <= spread / 1000 or factor == 1)
    return [
        None if value is None else cell(round(round(value / factor, -power) * factor, max(0, -power)))
        for value in values
    ]


def increments(values: Sequence[Cell]) -> list[Cell]:
    """The first value, then the differences between consecutive known values. Gaps stay gaps.

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
