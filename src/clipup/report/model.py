"""From loaded runs to the data of a page: plain values that JSON can spell."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from clipup.diagnosis import diagnose
from clipup.report.columns import columns, precision
from clipup.report.commands import repeat_command, train_command
from clipup.report.groups import group_runs, setting_rows
from clipup.report.runs import RUN_LIMIT, LoadedRun, unreadable

PageData = dict[str, object]


@dataclass(frozen=True)
class Detail:
    """How exactly numbers are written."""

    rounded: bool
    stride: int

    @classmethod
    def fitting(cls, runs: Sequence[LoadedRun]) -> Detail:
        """What keeps a page of these runs small."""
        return cls(*precision(sum(len(run.records) for run in runs), len(runs)))


def page_data(runs: Sequence[LoadedRun], *, detail: Detail | None = None, left_out: int = 0) -> PageData:
    """Everything that the page shows, and how many runs it does not."""
    detail = detail or Detail.fitting(runs)
    names = short_names(runs)
    groups = group_runs(runs)
    group_of = {place: number for number, group in enumerate(groups) for place in group.members}
    notes = limit_notes(left_out)
    if detail.stride > 1:
        notes.append(
            f"Of {sum(len(run.records) for run in runs):,} generations in all, one in {detail.stride} and all with a "
            "score are in this page; the records hold the rest."
        )
    if detail.rounded:
        notes.append(
            "To keep this page small, training curves are rounded to a thousandth of their range or finer; "
            "scores and times are exact."
        )
    return {
        "title": page_title(runs),
        "notes": notes,
        "groups": [{"label": group.label, "runs": list(group.members)} for group in groups],
        "settings": [
            {"name": row.name, "help": row.help, "values": list(row.values), "differs": row.differs}
            for row in setting_rows(groups)
        ],
        "runs": [
            run_data(run, names[place], group_of[place], rounded=detail.rounded, stride=detail.stride)
            for place, run in enumerate(runs)
        ],
    }


def run_data(
    run: LoadedRun, name: str, group: int, *, rounded: bool = False, stride: int = 1, first: int = 0
) -> PageData:
    """Everything about a run, its curves from record number `first` on.

    The last net: numbers that nobody thought of become a problem of this run, and hide no other.
    """
    try:
        data = {
            **run_head(run, name, group),
            "columns": columns(run, rounded=rounded, stride=stride, first=first),
        }
        json.dumps(data, allow_nan=False)
    except Exception as error:
        problem = f"cannot be shown: {type(error).__name__}: {' '.join(str(error).split())}"
        empty = unreadable(run.path, *run.problems, problem)
        return {**run_head(empty, name, group), "columns": columns(empty)}
    return data


def run_head(run: LoadedRun, name: str, group: int) -> PageData:
    """Everything about a run but its curves."""
    config, status = run.config, run.status
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
        "problems": list(run.problems),
        "generation": last.generation if last else 0,
        "generations": config.generations if config else None,
        "interactions": _finite(last.total_interactions) if last else 0,
        "seconds": _finite(run.clock[-1].seconds) if run.clock else None,
        "score": _finite(score),
        "score_standard_error": _finite(error),
        "best_score": _finite(best),
        "max_speed": _finite(last.max_speed) if last else None,
        "command": train_command(config) if config else None,
        "repeat": repeat_command(run.path, config.env, config.cluster) if config else None,
        "findings": [finding.as_json() for finding in diagnose(run.records, config)],
    }


def limit_notes(left_out: int) -> list[str]:
    """What to say about runs beyond the limit."""
    return [f"{left_out:,} more runs were found and are left out: a page shows {RUN_LIMIT:,}."] if left_out else []


def short_names(runs: Sequence[LoadedRun]) -> list[str]:
    """A name for each run: its directory's, with as many parents as it takes to tell them apart."""
    names = [run.path.name for run in runs]
    for depth in range(2, 6):
        if len(set(names)) == len(names):
            break
        twice = {name for name in names if names.count(name) > 1}
        names = [
            "/".join(run.path.parts[-depth:]) if name in twice else name for run, name in zip(runs, names, strict=True)
        ]
    return names


def page_title(runs: Sequence[LoadedRun]) -> str:
    """The environments of the runs, or what is left to say when none is known."""
    envs = list(dict.fromkeys(str(run.settings["env"]) for run in runs if "env" in run.settings))
    if not envs:
        return runs[0].path.name if len(runs) == 1 else "Runs"
    return ", ".join(envs[:3]) + (f" and {len(envs) - 3} more" if len(envs) > 3 else "")


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
