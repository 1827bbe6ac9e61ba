"""The tables of a reproduction, and the page about all experiments, from result files and the frame in page.md."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from clipup.errors import FileFault
from clipup.evaluation.intervals import summarize_group
from clipup.files import package_text, write_output
from clipup.reproduction.experiments import EXPERIMENTS, FAMILIES, RANKS, SCALES, Experiment, experiment_named
from clipup.reproduction.planned_runs import RUNS_DIRECTORY
from clipup.reproduction.results import GroupResult, Results, RunResult, read_results
from clipup.reproduction.rules import RULES
from clipup.reproduction.targets import claims_of, published_mean, published_percent
from clipup.reproduction.verdicts import NOT_ENOUGH, VERDICTS, Verdict, verdicts

UNFINISHED_DIRECTORY = "unfinished"
GROUP_HEADER = ("group", "paper", "ours: mean ± stdev", "interquartile mean (95 %)", "finished runs", "further runs")
RUN_HEADER = ("group", "seed", "engine", "generations", "interactions", "last score", "best score")
FORECAST_FROM = 20
"""Scores that a curve must have to say where it leads."""
CLAIM_HEADER = ("claim", "where", "paper", "ours", "interval", "runs", "verdict")


@dataclass(frozen=True)
class Table:
    """A title, a header, and rows of equal length."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def text(self) -> str:
        """The table in aligned columns."""
        cells = [self.header, *self.rows]
        widths = [max(len(row[column]) for row in cells) for column in range(len(self.header))]
        padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in cells]
        return "\n".join([self.title, *("  ".join(row).rstrip() for row in padded)])

    def markdown(self) -> str:
        """The table as Markdown, without its title."""
        lines = [self.header, tuple("---" for _ in self.header), *self.rows]
        return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def group_table(results: Results) -> Table:
    """Every group: the paper's mean, ours, and the number of runs behind it."""
    experiment = experiment_named(results.experiment)
    wanted = experiment.runs if results.as_published else results.runs
    rows = [_group_row(group, results, wanted) for group in results.groups]
    return Table(f"{experiment.title}: score after {results.generations} generations", GROUP_HEADER, tuple(rows))


def run_table(results: Results, threshold: float) -> Table:
    """Every run: how far it came, and what it took to reach the threshold."""
    rows: list[tuple[str, ...]] = []
    for group in results.groups:
        for run in group.runs:
            reached = run.interactions_to(threshold)
            best = f"{max(run.scores):.0f}" if run.scores else "–"
            score = "–" if run.score is None else f"{run.score:.0f}"
            rows.append(
                (
                    *(group.label, str(run.seed), run.engine or "–", str(run.generations)),
                    *(_millions(run.interactions), score, best, "–" if reached is None else _millions(reached)),
                )
            )
    header = (*RUN_HEADER, f"interactions to {threshold:.0f}")
    return Table("each run: interactions in millions, scores of 16 episodes", header, tuple(rows))


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """Every claim: the paper's value, ours, and the verdict."""
    rows: list[tuple[str, ...]] = []
    for entry in verdicts:
        runs = f"{entry.runs} of {entry.runs_published}" if entry.runs_published else "–"
        ours, interval = entry.ours or "–", entry.interval or "–"
        rows.append((entry.claim, entry.where, entry.published, ours, interval, runs, entry.text))
    return Table("claims of the paper", CLAIM_HEADER, tuple(rows))


def scale_table(results: Results) -> Table:
    """The paper's table of fitness scales: means, and percentages of the same method's mean with ranks."""
    rows: list[tuple[str, ...]] = []
    for scale, words in SCALES.items():
        cells = [words]
        for family in FAMILIES:
            cells += [_scale_cell(results, family, scale), _published_cell(family, scale)]
        rows.append(tuple(cells))
    header = ["", *(text for label in FAMILIES.values() for text in (f"{label}, ours", "paper"))]
    return Table("as in the paper's tbl:lunarlander", tuple(header), tuple(rows))


def tables(results: Results, verdicts: Sequence[Verdict]) -> tuple[Table, ...]:
    """Every table of an experiment that has content."""
    found: list[Table] = [group_table(results)] if results.groups else []
    threshold = experiment_named(results.experiment).threshold
    if threshold is not None and any(group.runs for group in results.groups):
        found.append(run_table(results, threshold))
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


def _millions(interactions: int) -> str:
    return f"{interactions / 1e6:.2f}"


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


def write_page(results: Path, page: Path) -> None:
    """Write the page from the result files in the directory `results`."""
    if not results.is_dir():
        raise FileFault(f"{results}: no such directory; make result files with: clipup reproduce NAME")
    if not any((results / f"{name}.json").is_file() for name in EXPERIMENTS):
        raise FileFault(f"{results}: contains no result file; make one with: clipup reproduce NAME")
    write_output(page, build_page(results, page).encode("utf-8"))


def build_page(results: Path, page: Path) -> str:
    """The text of the page at the path `page`, from the result files in the directory `results`."""
    found = {name: read_results(path) for name in EXPERIMENTS if (path := results / f"{name}.json").is_file()}
    link = Path(os.path.relpath(results, page.parent)).as_posix()
    parts = [_overview(found), *_unfinished(results, link)]
    parts += [_section(experiment, found.get(name), results, link) for name, experiment in EXPERIMENTS.items()]
    template = package_text("clipup.reproduction", "page.md")
    return template.replace("%%RULES%%", _rules()).replace("%%EXPERIMENTS%%", "\n".join(parts))


def _overview(found: dict[str, Results]) -> str:
    rows = [f"| experiment | runs finished | {' | '.join(VERDICTS)} |", "| --- " * (2 + len(VERDICTS)) + "|"]
    for name, experiment in EXPERIMENTS.items():
        results = found.get(name)
        done = sum(len(group.finished) for group in results.groups) if results else 0
        full = results is not None and results.as_published
        wanted = experiment.runs * len(experiment.groups)
        state = f"{done if full else 0} of {wanted}" if wanted else ("drawn" if results else "not drawn")
        begun = sum(len(group.runs) for group in results.groups) - done if results else 0
        further = [f"{done} of {results.generations} generations"] if results and done and not full else []
        further += [f"{begun} begun"] if begun else []
        if results and further:
            settings = ", with other settings" if results.changes else ""
            state += f" (and {', '.join(further)}{settings})"
        said = [entry.verdict for entry in verdicts(results)] if results else [NOT_ENOUGH] * len(claims_of(name))
        counts = " | ".join(str(said.count(verdict)) for verdict in VERDICTS)
        rows.append(f"| [{name}](#{name}) | {state} | {counts} |")
    return "\n".join(rows) + "\n"


def _unfinished(results: Path, link: str) -> list[str]:
    """How to continue the unfinished runs that are kept beside the results."""
    if not (results / UNFINISHED_DIRECTORY).is_dir():
        return []
    return [
        f"[{results.name}/{UNFINISHED_DIRECTORY}]({link}/{UNFINISHED_DIRECTORY}) holds the runs that are not finished, "
        "with their newest checkpoints. To continue them: "
        f"`mkdir -p reproduction/{RUNS_DIRECTORY} && cp -r {results.name}/{UNFINISHED_DIRECTORY}/* "
        f"reproduction/{RUNS_DIRECTORY}/`, then run the commands below.\n"
    ]


def _section(experiment: Experiment, results: Results | None, directory: Path, link: str) -> str:
    lines = [f"## {experiment.name}", "", f"{experiment.title} (paper: {experiment.where}).", ""]
    if experiment.note:
        lines += [experiment.note, ""]
    if results is None:
        return "\n".join([*lines, f"Not run yet: `clipup reproduce {experiment.name}`", ""])
    about = results.provenance
    versions = ", ".join(f"{name} {version}" for name, version in about.versions.items())
    lines += [
        f"Command: `{about.command}`. File: [{experiment.name}.json]({link}/{experiment.name}.json), "
        f"collected {about.created} at commit {about.commit or 'unknown'}, {about.hardware.get('cpu', '?')} "
        f"({about.hardware.get('cores', '?')} cores); {versions}.",
        "",
    ]
    if results.changes:
        changed = ", ".join(f"{name} = {value}" for name, value in results.changes.items())
        lines += [f"**These are not the paper's settings**: {changed}. No claim is judged from these runs.", ""]
    if results.groups:
        interactions = sum(run.interactions for group in results.groups for run in group.runs)
        seconds = sum(run.seconds for group in results.groups for run in group.runs)
        runs = sum(len(group.runs) for group in results.groups)
        hours = f"{seconds / 3600:.2f} hours of runs"
        lines += [f"{runs} run{'' if runs == 1 else 's'}, {interactions / 1e6:.1f} million interactions, {hours}.", ""]
    if experiment.name == "fitness-scale":
        lines += _exploration(results)
    lines += _solved(results, experiment.threshold)
    if experiment.name == "humanoid-bullet":
        lines += [*_projection(results), *_forecasts(results, experiment.threshold)]
    for table in tables(results, verdicts(results)):
        lines += [f"**{table.title}**", "", table.markdown(), ""]
    for kind in experiment.figures:
        if (directory / f"{experiment.name}-{kind}.png").is_file():
            lines += [f"![{experiment.title}: {kind}]({link}/{experiment.name}-{kind}.png)", ""]
    policy = directory / "policies" / f"{experiment.name}.safetensors"
    if policy.is_file():
        shown = f"{directory.name}/policies/{experiment.name}.safetensors"
        lines += [f"To see a policy of this experiment: `clipup evaluate {shown}`, `clipup record {shown}`.", ""]
    return "\n".join(lines)


def _exploration(results: Results) -> list[str]:
    """How the fitness scale still affects ClipUp's runs: through the standard deviation, which PGPE updates."""
    ends: list[str] = []
    for scale, words in SCALES.items():
        norms = [run.stdev_norm for run in results.group(f"clipup-{scale}").finished if run.stdev_norm is not None]
        if not norms:
            return []
        ends.append(f"{words} {np.median(norms):.2f} ({min(norms):.2f} … {max(norms):.2f})")
    means = [
        (float(np.mean(group.final_scores)), published)
        for group in results.groups
        if group.name.startswith("adam") and not group.name.endswith(RANKS) and group.finished
        if (published := published_mean(results.experiment, group.name)) is not None
    ]
    below = sum(ours < published for ours, published in means)
    return [
        f"Of Adam's {len(means)} means without ranks, {below} are below the published ones.",
        "",
        "ClipUp makes the steps of the center independent of the fitness scale. It does not update the standard "
        "deviation: PGPE does, in proportion to the fitness and by at most 20 % per generation, so the scale matters "
        "there. This is the likely reason why runs with large fitnesses scatter more; it was not tested separately. "
        "Norm of the standard deviation after the last generation of ClipUp's runs, which start at 4.5, as median "
        f"(smallest … largest): {'; '.join(ends)}.",
        "",
    ]


def _solved(results: Results, threshold: float | None) -> list[str]:
    """How many runs of each group passed the threshold, and after how many interactions; nothing if none did."""
    if threshold is None:
        return []
    texts: list[str] = []
    passed = 0
    for group in results.groups:
        places = sorted(place for run in group.runs if (place := run.interactions_to(threshold)) is not None)
        passed += len(places)
        after = f" (after {', '.join(f'{place / 1e6:.1f}' for place in places)} million interactions)" if places else ""
        texts.append(f"{len(places)} of {len(group.runs)} with {group.label}{after}")
    return [f"Runs that passed {threshold:.0f}, the solving threshold: {'; '.join(texts)}.", ""] if passed else []


def _projection(results: Results) -> list[str]:
    """How far training has come, and how long the paper's billion interactions would take at its pace on 64 CPUs."""
    runs = [run for group in results.groups for run in group.runs]
    way = [(run.scores[0], run.scores[-1]) for run in runs if run.scores]
    if not way:
        return []
    first, last = (float(np.median(scores)) for scores in zip(*way, strict=True))
    trained = [(run.fitness_start, run.fitness_end) for run in runs if run.fitness_start is not None]
    fitness = " and ".join(f"from {start:.2f} to {end:.2f}" for start, end in trained)
    text = (
        f"The training fitness (mean of the population, first and last tenth of the generations) went {fitness}. "
        f"The score, which includes the alive bonus, went from {first:.0f} at the first evaluation to {last:.0f} at "
        "the last."
    )
    timed = [run for run in runs if run.workers]  # else on all cores of whatever machines
    core_seconds = sum(run.seconds * (run.workers or 1) for run in timed)
    if core_seconds:
        pace = sum(run.interactions for run in timed) / core_seconds
        hours = [f"{count / pace / 64 / 3600:.1f}" for count in (0.75e9, 1e9)]
        text += (
            f" These runs shared their machine and made {pace:.0f} interactions per second and core. At that pace, the "
            f"paper's 0.75e9 and 1e9 interactions would take {' and '.join(hours)} hours on 64 cores (the paper: about "
            "15 and 24 hours on 64 vCPUs)."
        )
    return [text, ""]


def _forecasts(results: Results, threshold: float | None) -> list[str]:
    """Where the curves of runs that have not reached the threshold lead to."""
    runs = [run for group in results.groups for run in group.runs]
    texts = [] if threshold is None else [_forecast(run, threshold) for run in runs]
    return [line for text in texts if text for line in (text, "")]


def _forecast(run: RunResult, threshold: float) -> str:
    """Where a straight line through the scores of a run's second half reaches the threshold."""
    places, scores = np.asarray(run.score_interactions) / 1e6, np.asarray(run.scores)
    if len(scores) < FORECAST_FROM or run.interactions_to(threshold) is not None:
        return ""
    late = places >= places[-1] / 2
    slope, start = np.polyfit(places[late], scores[late], 1)
    line = (
        f"A straight line through the scores of the second half of seed {run.seed}, from {places[late][0]:.1f} million "
        f"interactions on, gains {slope:.3g} per million"
    )
    if slope <= 0:
        return f"{line}: it never reaches {threshold:.0f}, the solving threshold."
    end = (threshold - start) / slope
    hours = (1e6 * end - run.interactions) * run.seconds / run.interactions * (run.workers or 1) / 2 / 3600
    return (
        f"{line}. It reaches {threshold:.0f}, the solving threshold, after {end:.0f} million: {hours:.0f} more hours "
        "of two processors at this pace. No run here is long enough to say whether the curve stays straight."
    )


def _rules() -> str:
    used = {claim.rule for name in EXPERIMENTS for claim in claims_of(name)}
    texts = {name: inspect.getdoc(rule) or "" for name, rule in RULES.items() if name in used}
    return "\n".join(f"- *{name}*: {text.splitlines()[0]}" for name, text in texts.items()) + "\n"
