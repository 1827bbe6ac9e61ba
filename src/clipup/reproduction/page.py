"""The page about the reproduction, built from the result files alone."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import numpy as np

from clipup.reproduction.experiments import EXPERIMENTS, RANKS, SCALES, Experiment
from clipup.reproduction.results import Results, read_results
from clipup.reproduction.rules import RULES
from clipup.reproduction.runs import RUNS_FOLDER
from clipup.reproduction.tables import tables
from clipup.reproduction.targets import claims_of, published_mean
from clipup.reproduction.verdicts import AGREES, DIFFERS, NOT_ENOUGH, verdicts

UNFINISHED_FOLDER = "unfinished"
HEAD = """# The paper, reproduced

<!-- Built from the files under results/ by: clipup reproduce --page docs/reproduction.md --results results -->

Each experiment of "ClipUp: A Simple and Powerful Optimizer for Distribution-based Policy Evolution" (Toklu, Liskowski,
Srivastava 2020, arXiv:2008.02387) is one command. Its settings are in `src/clipup/reproduction/experiments.py` and in
the presets of the tasks, the published values in `src/clipup/reproduction/targets.toml`; every number below comes from
the result file named beside it. A score is the mean of 16 episodes of the current solution on the environment's own
reward. Intervals are stratified bootstrap intervals. The state of each experiment is in the first table: **what is not
complete says so**.
"""


def build_page(results: Path, page: Path) -> str:
    """The text of the page that lies at `page`, from the result files in the folder `results`."""
    found = {name: read_results(path) for name in EXPERIMENTS if (path := results / f"{name}.json").is_file()}
    link = Path(os.path.relpath(results, page.parent)).as_posix()
    parts = [HEAD, _overview(found), *_unfinished(results, link)]
    parts += [_section(experiment, found.get(name), results, link) for name, experiment in EXPERIMENTS.items()]
    return "\n".join([*parts, _rules(), _notes()])


def _overview(found: dict[str, Results]) -> str:
    rows = ["| experiment | runs finished | claims: agree / differ / not enough runs |", "| --- | --- | --- |"]
    for name, experiment in EXPERIMENTS.items():
        results = found.get(name)
        done = sum(len(group.finished) for group in results.groups) if results else 0
        full = results is not None and results.as_published
        wanted = experiment.runs * len(experiment.groups)
        state = f"{done if full else 0} of {wanted}" if wanted else ("drawn" if results else "not drawn")
        if results is not None and not full:
            kind = "smaller" if results.changes else "other"
            state += f" ({done} {kind} ones of {results.generations} generations)"
        said = [verdict.verdict for verdict in verdicts(results)] if results else []
        missing = 0 if results else len(claims_of(name))
        counts = f"{said.count(AGREES)} / {said.count(DIFFERS)} / {said.count(NOT_ENOUGH) + missing}"
        rows.append(f"| [{name}](#{name}) | {state} | {counts} |")
    return "\n".join(rows) + "\n"


def _unfinished(results: Path, link: str) -> list[str]:
    """How to go on with runs whose directories lie beside the results."""
    folder = results / UNFINISHED_FOLDER
    if not folder.is_dir():
        return []
    return [
        f"Long runs that are not finished lie whole, with their newest checkpoint, in "
        f"[{UNFINISHED_FOLDER}]({link}/{UNFINISHED_FOLDER}). To go on with them: "
        f"`mkdir -p reproduction/{RUNS_FOLDER} && cp -r {results.name}/{UNFINISHED_FOLDER}/* "
        f"reproduction/{RUNS_FOLDER}/`, then the commands below.\n"
    ]


def _section(experiment: Experiment, results: Results | None, folder: Path, link: str) -> str:
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
        lines += [f"**Not the paper's settings**: {changed}. No claim is judged from these runs.", ""]
    if results.groups:
        interactions = sum(run.interactions for group in results.groups for run in group.runs)
        seconds = sum(run.seconds for group in results.groups for run in group.runs)
        runs = sum(len(group.runs) for group in results.groups)
        hours = f"{seconds / 3600:.2f} hours of runs"
        lines += [f"{runs} run{'' if runs == 1 else 's'}, {interactions / 1e6:.1f} million interactions, {hours}.", ""]
    if experiment.name == "fitness-scale":
        lines += _exploration(results)
    if experiment.name == "humanoid-bullet":
        lines += _projection(results)
    for table in tables(results, verdicts(results)):
        lines += [f"**{table.title}**", "", table.markdown(), ""]
    for kind in experiment.figures:
        if (folder / f"{experiment.name}-{kind}.png").is_file():
            lines += [f"![{experiment.title}: {kind}]({link}/{experiment.name}-{kind}.png)", ""]
    policy = folder / "policies" / f"{experiment.name}.safetensors"
    if policy.is_file():
        shown = f"{folder.name}/policies/{experiment.name}.safetensors"
        lines += [f"A policy of it: `clipup evaluate {shown}`, `clipup record {shown}`.", ""]
    return "\n".join(lines)


def _exploration(results: Results) -> list[str]:
    """Where the fitness scale still shows with ClipUp: in the standard deviation, which PGPE updates, not ClipUp."""
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
        f"Of Adam's {len(means)} means without ranks, {below} lie below the published ones.",
        "",
        "ClipUp makes the steps of the center independent of the fitness scale. The standard deviation is updated by "
        "PGPE without it, in proportion to the fitness and by at most 20 % a generation, so there the scale does show. "
        "That is the likely reason for the wider scatter of the runs with large fitnesses; it was not tested apart. "
        "Norm of the standard deviation after the last generation, median "
        f"(smallest … largest) of ClipUp's runs, from 4.5 at the start: {'; '.join(ends)}.",
        "",
    ]


def _projection(results: Results) -> list[str]:
    """How long the paper's billion interactions would take on its machine of 64 virtual CPUs, at the measured pace."""
    runs = [run for group in results.groups for run in group.runs if run.workers and run.seconds]
    core_seconds = sum(run.seconds * (run.workers or 1) for run in runs)
    if not core_seconds:
        return []
    pace = sum(run.interactions for run in runs) / core_seconds
    way = [(run.scores[0], run.scores[-1]) for run in runs if run.scores]
    first, last = (float(np.median(scores)) for scores in zip(*way, strict=True)) if way else (0.0, 0.0)
    trained = [(run.fitness_start, run.fitness_end) for run in runs if run.fitness_start is not None]
    fitness = " and ".join(f"from {start:.2f} to {end:.2f}" for start, end in trained)
    hours = [f"{count / pace / 64 / 3600:.1f}" for count in (0.75e9, 1e9)]
    return [
        f"The trained fitness (mean of the population, first and last tenth of the generations) went {fitness}, "
        f"the score, which counts the alive bonus, from {first:.0f} at the first evaluation to {last:.0f} at the last. "
        f"At the {pace:.0f} interactions a second and core of these runs, which shared their machine, the paper's "
        f"0.75e9 and 1e9 interactions would take {' and '.join(hours)} hours on 64 cores "
        "(the paper: about 15 and 24 hours on 64 vCPUs).",
        "",
    ]


def _rules() -> str:
    lines = ["## How claims are judged", ""]
    lines += ["A claim is judged once half as many runs as the paper had have made all their generations; claims about"]
    lines += ["the size of updates, which hold for every run, once one run went far enough (1 generation for the first"]
    lines += [
        "update, 150 for the others). Where the runs scatter too much for a rule to tell, the verdict stays *not enough"
    ]
    lines += ["runs*, even when there are as many as in the paper. The rules:", ""]
    used = {claim.rule for name in EXPERIMENTS for claim in claims_of(name)}
    for name, rule in RULES.items():
        if name in used:
            lines.append(f"- *{name}*: {(inspect.getdoc(rule) or '').splitlines()[0]}")
    return "\n".join(lines) + "\n"


def _notes() -> str:
    return """## What is not the same as in the paper

- The tasks are today's: LunarLanderContinuous-v3, Walker2d-v4 and Humanoid-v4 (EnvPool) for the v2 tasks of Gym 0.17;
  `pybullet_envs_gymnasium` for PyBullet's own HumanoidBulletEnv-v0.
- Humanoid-v4 differs from v2 in two ways that a run can notice: v2 takes a small cost of impacts off the reward, and
  has contact forces in its last 84 observations where its MuJoCo fills them (which one the paper used, it does not
  say). In v4 that cost is 0 and those observations are zeros.
- The center starts at zero, the paper's near it. Candidates with equal fitness share their rank.
- The paper does not say how often its curves evaluate the current solution; here it is every 5 generations.
- Alive bonuses are removed as in the paper: from training, not from the scores.
- `reduction` counts a run that never reached the threshold with all its interactions.
"""
