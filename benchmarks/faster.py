"""What makes training cheaper at equal quality? One change at a time, at equal interactions, three seeds each.

    python benchmarks/faster.py [TASK ...] [--jobs N] [--work DIR]
    python benchmarks/faster.py --humanoid CHANGE RUN     takes a run of the Humanoid into the results
    python benchmarks/faster.py --race DIR                takes four starts of it, of which the best went on
    python benchmarks/faster.py --page                    puts the tables into docs/faster.md

CHANGES has what is tried, TASKS where. Every run makes as many interactions as TASKS says, on one thread of the
compiled engine, and trains on cheaper physics (ALL). Its value is the mean score of its center over the last quarter of
them; a score is the mean of 16 episodes on the task's own physics. Settings were written down before the first run.
What is tried has seeds that no other page reports; the Humanoid is compared with the runs of docs/reproduction.md.

The Humanoid takes longer, so its runs are made one by one, with `clipup train Humanoid-v4`, and taken as far as they
are. Stopped, this goes on where it was. Writes benchmarks/results/faster.json.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

import clipup
from clipup.evaluation.intervals import summarize_group
from clipup.runs.records import read_records
from clipup.runs.rundir import RunDirectory

RESULTS = Path(__file__).parent / "results" / "faster.json"
PAGE = Path(__file__).parents[1] / "docs" / "faster.md"
MARK = "<!-- by benchmarks/faster.py --page -->"
HUMANOID = "Humanoid-v4"
RACES = "Humanoid-v4, the best of four starts"
STARTS_END = 5_000_000
PROCESSORS = 2
LONG = 15_000_000
"""Interactions after which a run that is not solved counts as slow."""
MILLIONS = (0.5, 1, 2, 4, 6, 10, 16, 24)
SOLVED = 6000.0
SEEDS = (301, 302, 303)
ORTHOGONAL = "orthogonal"
TASKS: dict[str, dict[str, Any]] = {
    "Hopper-v5": {"max_speed": 0.05, "total_interactions": 1_500_000},
    "Walker2d-v5": {"max_speed": 0.015, "total_interactions": 5_000_000},
    "Ant-v5": {"max_speed": 0.01, "total_interactions": 4_000_000, "physics": "integrator=Euler"},
}
ALL: dict[str, Any] = {
    "preset": "none",
    "engine": "compiled",
    "physics": "integrator=Euler, timestep=0.004",
    "policy": "linear-bias",
    "reward_offset": -1.0,
    "generations": 100_000,
    "workers": 1,
}
THRESHOLDS = {"Hopper-v5": 2000.0, "Walker2d-v5": 1000.0, "Ant-v5": 1500.0}
BASE = "λ = 40, at most 200, T = 30,000"
SMALL: dict[str, Any] = {"population": 40, "population_max": 200, "interactions": 30_000, "evaluate_every": 10}
CHANGES: dict[str, dict[str, Any]] = {
    "λ = 100, at most 800, T = 75,000 (the paper's Walker2d)": {
        "population": 100,
        "population_max": 800,
        "interactions": 75_000,
        "evaluate_every": 4,
    },
    "λ = 100": {"population": 100, "evaluate_every": 8},
    BASE: SMALL,
    "λ = 40": {"population": 40, "evaluate_every": 20},
    "λ = 20": {"population": 20, "evaluate_every": 40},
    "… step ratio 0.73": {**SMALL, "step_ratio": 0.73},
    "… step ratio 1": {**SMALL, "step_ratio": 1.0},
    "… pairs share their starts": {**SMALL, "episode_seeds": "pair"},
    "… orthogonal directions": {**SMALL, ORTHOGONAL: True},
    "… reward_cap 2": {**SMALL, "reward_cap": 2.0},
    "λ = 40, reward_cap 2": {"population": 40, "evaluate_every": 20, "reward_cap": 2.0},
    "… the 24 inputs that are always zero removed": {
        **SMALL,
        "policy": "linear-bias+inputs:0-32,39-50,57-68,75-86,93-104",
    },
    "… all 78 contact forces removed": {**SMALL, "policy": "linear-bias+inputs:0-26"},
}
"""What is tried, by its name in the table. A name with … changes BASE. All are evaluated about equally often."""
ABOUT_INPUTS = [change for change in CHANGES if change.endswith("removed")]


def tried(task: str) -> list[str]:
    """What is tried on a task: fewer inputs where there are dead ones, on the Ant, and all else on the others."""
    return [BASE, *ABOUT_INPUTS] if task == "Ant-v5" else [change for change in CHANGES if change not in ABOUT_INPUTS]


def train(task: str, change: str, seed: int, work: Path) -> dict[str, Any]:
    """Make one run from its start; return its curve."""
    settings = {**ALL, **TASKS[task], **CHANGES[change]}
    # Not a setting of runs yet: the default of this process is changed instead.
    clipup.PGPE.__init__.__kwdefaults__["orthogonal"] = settings.pop(ORTHOGONAL, False)
    run = work / f"{task}-{list(CHANGES).index(change)}-{seed}"
    shutil.rmtree(run, ignore_errors=True)
    clipup.train(task, run=run, seed=seed, **settings)
    _, curve = taken(run)
    shutil.rmtree(run)
    return curve


def value(task: str, curve: dict[str, Any]) -> float:
    """The mean score over the last quarter of the interactions."""
    start = 0.75 * TASKS[task]["total_interactions"]
    pairs = zip(curve["interactions"], curve["scores"], strict=True)
    return statistics.fmean([score for interactions, score in pairs if interactions >= start] or [curve["scores"][-1]])


def reached(curve: dict[str, Any], threshold: float, what: str = "interactions") -> float | None:
    """Interactions, or minutes, at the first score of at least the threshold; None where there is none."""
    pairs = zip(curve.get(what, []), curve["scores"], strict=False)
    return next((amount for amount, score in pairs if score >= threshold), None)


def taken(run: Path) -> tuple[str, dict[str, Any]]:
    """Return the seed and the curve of a run directory."""
    clock = {tick["generation"]: tick["seconds"] for tick in map(json.loads, (run / "clock.jsonl").open())}
    scored = [record for record in read_records(run / "records.jsonl") if record.score is not None]
    return str(RunDirectory(run).read_config().seed), {
        "interactions": [record.total_interactions for record in scored],
        "scores": [round(record.score or 0.0, 1) for record in scored],
        "minutes": [round(clock[record.generation] / 60, 1) for record in scored],
    }


def outcome(race: dict[str, Any]) -> tuple[str, bool, float, float]:
    """Return the seed that went on, whether it was solved, and the interactions and minutes of all starts until then.

    The starts ran side by side, each on one processor; the best one went on with all of them.
    """
    chosen = max(race, key=lambda seed: race[seed]["interactions"][-1])
    others, best = [curve for seed, curve in race.items() if seed != chosen], race[chosen]
    solved = reached(best, SOLVED) is not None
    end, minutes = ((reached(best, SOLVED, what) if solved else best[what][-1]) for what in ("interactions", "minutes"))
    alone = float(np.interp(STARTS_END, best["interactions"], best["minutes"]))
    starts = (alone + sum(curve["minutes"][-1] for curve in others)) / PROCESSORS
    return chosen, solved, end + sum(curve["interactions"][-1] for curve in others), starts + minutes - alone


def race_rows(races: dict[str, Any]) -> list[str]:
    """Return the rows about the races in docs/faster.md, but for the scores over 100 episodes."""
    rows: list[str] = []
    for first, race in races.items():
        chosen, solved, interactions, minutes = outcome(race)
        seeds, no = f"{first} to {max(map(int, race))}", "" if solved else "not in "
        rows.append(f"| {seeds} | {chosen} | {no}{interactions / 1e6:.1f} million | {no}{minutes:.0f} |")
    return rows


def early_table(found: dict[str, Any]) -> list[str]:
    """Return how runs with a cap of 1 stood when starts end, the best first, and when they were solved."""
    curves = {
        f"{seed} (E)" if change.endswith("(E)") else seed: curve
        for change, seeds in found[HUMANOID].items()
        if change.endswith(("(the preset)", "(E)"))
        for seed, curve in seeds.items()
    }
    for race in found[RACES].values():
        chosen = outcome(race)[0]
        curves[chosen] = race[chosen]
    rows: list[tuple[float, str]] = []
    for seed, curve in curves.items():
        end, last = reached(curve, SOLVED), curve["interactions"][-1]
        if end is None and last < LONG:
            continue
        score = float(np.interp(STARTS_END, curve["interactions"], curve["scores"]))
        solved = f"not in {last / 1e6:.1f} million" if end is None else f"{end / 1e6:.1f} million"
        rows.append((score, f"| {seed} | {score:.0f} | {solved} |"))
    return [
        "| seed | score after 5 million | 6000 passed after |",
        "| --- | --- | --- |",
        *(row for _, row in sorted(rows, reverse=True)),
    ]


def humanoid_table(changes: dict[str, Any]) -> list[str]:
    """Return the table of the Humanoid's runs: when it was solved, and scores on the way (means within a fifth)."""
    header = ["change", "seed", f"to {SOLVED:.0f}", *(f"{place:g} M" for place in MILLIONS)]
    lines = ["| " + " | ".join(header) + " |", "| --- " * len(header) + "|"]
    for change, curves in changes.items():
        for seed, curve in curves.items():
            pairs = list(zip(curve["interactions"], curve["scores"], strict=True))
            end = reached(curve, SOLVED)
            minutes = reached(curve, SOLVED, "minutes")
            solved = f"not in {pairs[-1][0] / 1e6:.1f} M" if end is None else f"{end / 1e6:.1f} M"
            cells = [change, seed, solved if minutes is None else f"{solved}, {minutes:.0f} min"]
            for place in MILLIONS:
                near = [score for interactions, score in pairs if 0.8 <= interactions / (place * 1e6) <= 1.2]
                cells.append(f"{statistics.fmean(near):.0f}" if near and pairs[-1][0] >= 0.97e6 * place else "")
            lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def table(found: dict[str, Any]) -> list[str]:
    """Return the tables of docs/faster.md."""
    lines = ["### Humanoid-v4", "", *humanoid_table(found[HUMANOID])] if HUMANOID in found else []
    for task, changes in found.items():
        if task in (HUMANOID, RACES):
            continue
        millions = TASKS[task]["total_interactions"] / 1e6
        lines += [f"### {task}, {millions:g} million interactions", ""]
        lines += [f"| change | mean score (95 %) | of each seed | interactions to {THRESHOLDS[task]:.0f}, thousands |"]
        lines += ["| --- | --- | --- | --- |"]
        for change in CHANGES:
            if change not in changes:
                continue
            curves = [changes[change][str(seed)] for seed in SEEDS if str(seed) in changes[change]]
            values = [value(task, curve) for curve in curves]
            summary = summarize_group(values)
            ends = [reached(curve, THRESHOLDS[task]) for curve in curves]
            texts = ["–" if end is None else f"{end / 1e3:.0f}" for end in ends]
            interval = f"{summary.interval.low:.0f} … {summary.interval.high:.0f}" if len(values) > 1 else "–"
            each = ", ".join(f"{one:.0f}" for one in values)
            lines.append(f"| {change} | {summary.mean:.0f} ({interval}) | {each} | {', '.join(texts)} |")
        lines.append("")
    return lines


def main() -> None:
    """Make the runs that are missing, and write the results after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", choices=[[], *TASKS], metavar="TASK")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("runs/faster"))
    parser.add_argument("--humanoid", nargs=2, metavar=("CHANGE", "RUN"))
    parser.add_argument("--race", type=Path, metavar="DIR")
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if arguments.humanoid:
        change, run = arguments.humanoid
        seed, curve = taken(Path(run))
        found.setdefault(HUMANOID, {}).setdefault(change, {})[seed] = curve
        RESULTS.write_text(json.dumps(found, ensure_ascii=False) + "\n")
        return
    if arguments.race:
        race = dict(map(taken, sorted(arguments.race.glob("seed-*/"))))
        found.setdefault(RACES, {})[min(race, key=int)] = race
        RESULTS.write_text(json.dumps(found, ensure_ascii=False) + "\n")
        print("\n".join([*race_rows(found[RACES]), "", *early_table(found)]))
        return
    if arguments.page:
        before, _, after = PAGE.read_text("utf-8").split(MARK)
        PAGE.write_text(MARK.join([before, "\n" + "\n".join(table(found)), after]), "utf-8")
        return
    wanted = [
        (task, change, seed)
        for task in arguments.tasks or TASKS
        for seed in SEEDS
        for change in tried(task)
        if str(seed) not in found.get(task, {}).get(change, {})
    ]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        waiting = {pool.submit(train, *one, arguments.work): one for one in wanted}
        for future in as_completed(waiting):
            task, change, seed = waiting[future]
            found.setdefault(task, {}).setdefault(change, {})[str(seed)] = future.result()
            RESULTS.write_text(json.dumps(found, ensure_ascii=False) + "\n")
            print(task, change, seed, round(value(task, found[task][change][str(seed)])), flush=True)


if __name__ == "__main__":
    main()
