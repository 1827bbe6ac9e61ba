"""The tables of a reproduction, as cells: the command prints them, the page shows them, the tests compare them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clipup.evaluation.intervals import summarize_group
from clipup.reproduction.experiments import FAMILIES, RANKS, SCALES, experiment_named
from clipup.reproduction.results import GroupResult, Results
from clipup.reproduction.targets import published_mean, published_percent
from clipup.reproduction.verdicts import Verdict


@dataclass(frozen=True)
class Table:
    """A header and rows of equal length."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def text(self) -> str:
        """In columns."""
        cells = [self.header, *self.rows]
        widths = [max(len(row[column]) for row in cells) for column in range(len(self.header))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
        ]
        return "\n".join([self.title, *lines])

    def markdown(self) -> str:
        """As Markdown, without the title."""
        lines = [self.header, tuple("---" for _ in self.header), *self.rows]
        return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def group_table(results: Results) -> Table:
    """Every group: the paper's mean, ours, and how many runs stand behind it."""
    experiment = experiment_named(results.experiment)
    wanted = experiment.runs if results.as_published else results.runs
    rows = [_group_row(group, results, wanted) for group in results.groups]
    header = ("group", "paper", "ours: mean ± stdev", "interquartile mean (95 %)", "finished runs", "further runs")
    return Table(f"{experiment.title}: score after {results.generations} generations", header, tuple(rows))


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """Every claim: what the paper says, what ours is, and the verdict."""
    rows = [
        (
            entry.claim,
            entry.where,
            entry.published,
            entry.ours or "–",
            entry.interval or "–",
            _runs(entry),
            entry.verdict,
        )
        for entry in verdicts
    ]
    header = ("claim", "where", "paper", "ours", "interval", "runs", "verdict")
    return Table("claims of the paper", header, tuple(rows))


def scale_table(results: Results) -> Table:
    """The paper's own table of fitness scales: mean, and percent of the same method's mean with ranks."""
    rows: list[tuple[str, ...]] = []
    for scale, words in SCALES.items():
        cells = [words]
        for family in FAMILIES:
            cells += [_scale_cell(results, family, scale), _published_cell(family, scale)]
        rows.append(tuple(cells))
    header = ["", *(text for label in FAMILIES.values() for text in (f"{label}, ours", "paper"))]
    return Table("as in the paper's tbl:lunarlander", tuple(header), tuple(rows))


def tables(results: Results, verdicts: Sequence[Verdict]) -> tuple[Table, ...]:
    """Every table of an experiment that has something in it."""
    found: list[Table] = [group_table(results)] if results.groups else []
    if results.experiment == "fitness-scale":
        found.append(scale_table(results))
    return (*found, verdict_table(verdicts)) if verdicts else tuple(found)


def _group_row(group: GroupResult, results: Results, wanted: int) -> tuple[str, ...]:
    published = published_mean(results.experiment, group.name)
    scores = group.final_scores
    ours = middle = "–"
    if scores:
        summary = summarize_group(scores)
        ours = f"{summary.mean:.2f}" + ("" if math.isnan(summary.stdev) else f" ± {summary.stdev:.2f}")
        interval = f" ({summary.interval.low:.2f} … {summary.interval.high:.2f})" if summary.count > 1 else ""
        middle = f"{summary.interquartile_mean:.2f}{interval}"
    unfinished = [run for run in group.runs if not run.complete]
    further = "–"
    if unfinished:
        farthest = max(unfinished, key=lambda run: run.generations)
        score = "" if farthest.score is None else f": {farthest.score:.0f}"
        further = f"{len(unfinished)}, farthest at generation {farthest.generations}{score}"
    paper = "–" if published is None else f"{published:.2f}"
    return (group.label, paper, ours, middle, f"{len(scores)} of {wanted}", further)


def _scale_cell(results: Results, family: str, scale: str) -> str:
    scores = results.group(f"{family}-{scale}").final_scores
    reference = results.group(f"{family}-{RANKS}").final_scores
    if not scores or not reference:
        return "–"
    value = float(np.mean(scores))
    return f"{value:.2f} ({100.0 * value / float(np.mean(reference)):.2f} %)"


def _published_cell(family: str, scale: str) -> str:
    group = f"{family}-{scale}"
    return f"{published_mean('fitness-scale', group):.2f} ({published_percent(group):.2f} %)"


def _runs(verdict: Verdict) -> str:
    return f"{verdict.runs} of {verdict.runs_published}" if verdict.runs_published else "–"
