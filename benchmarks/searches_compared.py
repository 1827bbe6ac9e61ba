"""Every search with ClipUp and Adam, on functions and control tasks, beside evosax, EvoTorch and pycma.

    python benchmarks/searches_compared.py --rival-python PYTHON [--rival-python PYTHON] [--only PART]
    python benchmarks/searches_compared.py --table     prints the tables of docs/comparison.md
    python benchmarks/searches_compared.py --page      puts them into the page, and draws its pictures

Each PYTHON is an interpreter that has evotorch, or evosax, or cma; a library that none of them has is left out. PART is
one of these:

- *functions*: the loss of the center after equally many evaluations, at 10 to 10,000 parameters, 40 candidates a
  generation. Every method is tuned by its one number, on a seed that is not reported: it starts at a standard deviation
  of 0.3 (or at the best one of the dimension before) and goes to half a power of ten more or less for as long as that
  is better. (`search_contestants.py` says how the settings of each method follow from this number.)
- *control*: the score of the center after equally many interactions, on the compiled engine. Of five values of
  `max_speed`, the one with the best mean over the last quarter of two runs, which are not reported, is taken.
- *times*: seconds of an ask and tell, 40 candidates, at 10³ to 10⁶ parameters, all methods by turns. It needs an idle
  machine, and is measured anew each time.

Stopped, it goes on where it was: what benchmarks/results/searches_compared.json has of the first two parts is not
computed again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rollout_speed import processor
from search_contestants import FULL_MATRIX, FUNCTIONS, METHODS, POINTS, SOLVED

HERE = Path(__file__).parent
RESULT = HERE / "results" / "searches_compared.json"
PAGE = HERE.parent / "docs" / "comparison.md"
POPULATION = 40
GRID = {10: (5_000, 5), 100: (10_000, 3), 1000: (6_000, 3), 10_000: (2_400, 3)}  # evaluations, seeds
LEFT_OUT = {  # nothing gets far there, or the time was short
    1000: ("bowl 1e6", "Rosenbrock, noise"),
    10_000: ("bowl 1", "bowl 1e6", "bowl 1e3, noise", "Rosenbrock, noise"),
}
LADDER = {number: 10.0 ** (number / 2) for number in range(-8, 5)}  # standard deviations, 1e-4 to 100
TIMED = (1000, 10_000, 100_000, 1_000_000)
REPEATS = 11
OUR_BEST = "PGPE, ClipUp"

TASKS = {  # interactions
    "CartPole-v1": 50_000,
    "Pendulum-v1": 800_000,
    "Acrobot-v1": 300_000,
    "MountainCarContinuous-v0": 400_000,
}
POLICY = "mlp:16"
MAX_SPEEDS = (0.1, 0.3, 1.0, 3.0, 10.0)
CONTROL_SEEDS, TUNING_SEEDS = (1, 2, 3, 4, 5), (101, 102)
CONTROL: dict[str, tuple[str, str]] = {
    "PGPE, ClipUp": ("pgpe", "clipup"),
    "PGPE, Adam": ("pgpe", "adam"),
    "OpenAI-ES, ClipUp": ("openai-es", "clipup"),
    "OpenAI-ES, Adam": ("openai-es", "adam"),
    "ARS, ClipUp": ("ars", "clipup"),
    "ARS, Adam": ("ars", "adam"),
    "SNES": ("snes", ""),
    "xNES": ("xnes", ""),
    "CMA-ES": ("cma-es", ""),
    "separable CMA-ES": ("sep-cma-es", ""),
    "cross-entropy": ("cross-entropy", ""),
}
Row = dict[str, Any]


class Interpreter:
    """An interpreter that has some of the libraries, waiting for requests."""

    def __init__(self, python: str, *, one_thread: bool) -> None:
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC")  # the last one is JAX's
        limits = dict.fromkeys(names, "1") if one_thread else {}
        self._process = subprocess.Popen(
            [python, str(HERE / "search_contestants.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **limits, "PYTHONWARNINGS": "ignore", "JAX_PLATFORMS": "cpu"},
        )
        self.versions: dict[str, str] = self._answer()

    def _answer(self) -> Any:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise SystemExit("an interpreter died; its last words are above")
        return json.loads(line)

    def ask(self, **request: object) -> Any:
        """Send a request and return its answer."""
        if self._process.stdin:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the interpreter."""
        self._process.communicate(timeout=60)


def first_with(interpreters: Sequence[Interpreter]) -> dict[str, Interpreter]:
    """Return the methods that can take part, with the interpreter that runs each."""
    return {
        name: found[0]
        for name, method in METHODS.items()
        if (found := [one for one in interpreters if method.package in one.versions])
    }


def tuned(value: Callable[[float], tuple[float, float]], start: int) -> tuple[float, dict[str, float | None]]:
    """Climb the ladder from rung `start` to the least value; return the number, and the first part of all values."""
    known: dict[int, tuple[float, float]] = {}
    best = start
    while True:
        for rung in (best, best - 1, best + 1):
            if rung in LADDER and rung not in known:
                known[rung] = value(LADDER[rung])
        least = min(sorted(known), key=known.__getitem__)
        if least == best:
            return LADDER[best], {f"{LADDER[rung]:.3g}": _number(known[rung][0]) for rung in sorted(known)}
        best = least


def _number(value: float) -> float | None:
    return float(f"{value:.4g}") if math.isfinite(value) else None


def _infinite(value: float | None) -> float:
    return math.inf if value is None else value


def solved_at(curve: Sequence[float], evaluations: int) -> float:
    """Return the evaluations after which the loss was solved, or infinity."""
    return next((evaluations * (place + 1) / POINTS for place, loss in enumerate(curve) if loss <= SOLVED), math.inf)


def compare_functions(store: Store, pythons: Sequence[str], dimensions: Sequence[int]) -> None:
    """Compare all methods on all functions at these dimensions.

    Tuning begins at the number that was found for the same method and function at the dimension before.
    """
    interpreters = [Interpreter(python, one_thread=True) for python in pythons]
    players = first_with(interpreters)
    store.versions(interpreters)
    rungs: dict[tuple[str, str], int] = {}
    for row in store.content.get("functions", []):
        rungs[row["method"], row["function"]] = round(2 * math.log10(row["stdev"]))
    for dimension in dimensions:
        evaluations, seeds = GRID[dimension]
        for function in FUNCTIONS:
            if function in LEFT_OUT.get(dimension, ()):
                continue
            for method, player in players.items():
                key = {"function": function, "dimension": dimension, "method": method}
                if dimension > METHODS[method].largest or store.has("functions", key):
                    continue
                request = {**key, "task": "quality", "evaluations": evaluations, "population": POPULATION}

                def curve(stdev: float, seed: int, player: Interpreter = player, request: Row = request) -> list[float]:
                    return player.ask(**request, stdev=stdev, seed=seed)

                def value(stdev: float, curve: Any = curve, evaluations: int = evaluations) -> tuple[float, float]:
                    found = curve(stdev, 0)
                    return (max(found[-1], SOLVED), solved_at(found, evaluations))

                stdev, tried = tuned(value, rungs.get((method, function), -1))
                rungs[method, function] = round(2 * math.log10(stdev))
                curves = [curve(stdev, seed) for seed in range(1, seeds + 1)]
                store.add("functions", {
                    **key,
                    "stdev": _number(stdev),
                    "tried": tried,
                    "losses": [_number(found[-1]) for found in curves],
                    "solved at": [_number(solved_at(found, evaluations)) for found in curves],
                    "median curve": [_number(statistics.median(at)) for at in zip(*curves, strict=True)],
                })  # fmt: skip
    for interpreter in interpreters:
        interpreter.close()


def control_scores(env: str, method: str, max_speed: float, seed: int) -> list[float]:
    """Return the score of the center at `POINTS` moments of a training run."""
    import gymnasium

    import clipup
    from clipup.policies.named import make_policy

    space = gymnasium.make(env).action_space
    observations = int(np.prod(gymnasium.make(env).observation_space.shape or (1,)))
    actions = int(getattr(space, "n", 0)) or int(np.prod(space.shape or (1,)))
    count = make_policy(POLICY, observations, actions).parameter_count
    search, optimizer = CONTROL[method]
    settings: Row = {"search": search, "max_speed": max_speed}
    if optimizer == "adam":
        settings |= {"step_size": 3 * max_speed / math.sqrt(count), "radius": 15 * max_speed}
    if optimizer:
        settings["optimizer"] = optimizer
    result = clipup.train(
        env,
        preset="none",
        policy=POLICY,
        population=POPULATION,
        generations=None,
        total_interactions=TASKS[env],
        evaluate_every=5,
        engine="compiled",
        workers=1,
        seed=seed,
        **settings,
    )
    known = [(record.total_interactions, record.score) for record in result.records if record.score is not None]
    grid = [TASKS[env] * (place + 1) / POINTS for place in range(POINTS)]
    passed = [[score for steps, score in known if steps <= moment] for moment in grid[:-1]]
    return [*(scores[-1] if scores else math.nan for scores in passed), known[-1][1]]


def compare_control(store: Store, tasks: Sequence[str]) -> None:
    """Compare our searches on control tasks."""
    for env in tasks:
        for method in CONTROL:
            key = {"env": env, "method": method}
            if store.has("control", key):
                continue

            def value(max_speed: float, env: str = env, method: str = method) -> float:
                curves = [control_scores(env, method, max_speed, seed) for seed in TUNING_SEEDS]
                return float(np.mean([scores[-POINTS // 4 :] for scores in curves]))

            tried = {max_speed: value(max_speed) for max_speed in MAX_SPEEDS}
            max_speed = max(MAX_SPEEDS, key=tried.__getitem__)
            curves = [control_scores(env, method, max_speed, seed) for seed in CONTROL_SEEDS]
            store.add("control", {
                **key,
                "max_speed": max_speed,
                "tried": {str(number): _number(score) for number, score in tried.items()},
                "scores": [_number(scores[-1]) for scores in curves],
                "median curve": [_number(statistics.median(at)) for at in zip(*curves, strict=True)],
            })  # fmt: skip


def measure_times(store: Store, pythons: Sequence[str]) -> None:
    """Time an ask and tell of each method, by turns."""
    load = round(os.getloadavg()[0], 2)
    interpreters = [Interpreter(python, one_thread=False) for python in pythons]
    players = first_with(interpreters)
    store.versions(interpreters)
    store.content |= {"times": [], "load before the times": load}
    for dimension in TIMED:
        limits = {name: METHODS[name].largest for name in players}
        # A full matrix takes part at 1000 parameters, but for xNES: there a generation takes tens of seconds.
        chosen = [name for name in players if dimension <= (TIMED[0] if limits[name] == FULL_MATRIX else limits[name])]
        seconds: dict[str, list[float]] = {name: [] for name in chosen}
        for repeat in range(REPEATS + 2):
            for name in chosen:
                request = {"method": name, "dimension": dimension, "population": POPULATION}
                taken = players[name].ask(task="time", **request)
                if repeat > 1:  # the first ones compile
                    seconds[name].append(taken)
        for name, taken in seconds.items():
            found = {"seconds": _number(statistics.median(taken)), "least": _number(min(taken))}
            store.add("times", {"dimension": dimension, "method": name, **found, "most": _number(max(taken))})
    for interpreter in interpreters:
        interpreter.close()


class Store:
    """The result file. It is written anew after each row, whole or not at all."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.content: Row = json.loads(path.read_text()) if path.exists() else {}

    def has(self, part: str, key: Row) -> bool:
        """Return whether a row with this key is there."""
        return any(all(row[name] == value for name, value in key.items()) for row in self.content.get(part, []))

    def add(self, part: str, row: Row) -> None:
        """Add a row."""
        self.content.setdefault(part, []).append(row)
        names = ("function", "env", "dimension", "method", "stdev", "max_speed", "losses", "scores", "seconds")
        print(part, *(row[name] for name in names if name in row), flush=True)
        self.write()

    def versions(self, interpreters: Iterable[Interpreter]) -> None:
        """Note what was compared, and where."""
        known: dict[str, str] = self.content.setdefault("versions", {})
        for interpreter in reversed(list(interpreters)):
            known.update(interpreter.versions)

    def write(self) -> None:
        """Write the file, one row a line."""
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False, cwd=HERE)
        self.content["where"] = {
            "processor": processor(),
            "processors": os.cpu_count(),
            "python": sys.version.split()[0],
            "commit": commit.stdout.strip(),
        }
        lines = list[str]()
        for name, value in sorted(self.content.items()):
            text = json.dumps(value)
            if isinstance(value, list):
                text = "[\n" + ",\n".join("  " + json.dumps(row) for row in value) + "\n ]"
            lines.append(f" {json.dumps(name)}: {text}")
        beside = self._path.with_suffix(".part")
        beside.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        beside.replace(self._path)


# The tables of docs/comparison.md


def rank(row: Row) -> tuple[float, float]:
    """Order rows of one function: first by their median loss, among the solved by the evaluations they took."""
    loss = statistics.median(_infinite(value) for value in row["losses"])
    return max(loss, SOLVED), statistics.median(_infinite(value) for value in row["solved at"])


def shown(row: Row) -> str:
    """Return the median loss of a row, or after how many evaluations the function was solved."""
    loss, moment = rank(row)
    if loss <= SOLVED:
        return f"solved, {moment / 1000:.1f}k"
    return "broke down" if math.isinf(loss) else _plain(loss)


def _plain(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def function_table(result: Row, dimension: int) -> list[str]:
    """The median losses of all methods at one dimension; the best of each column is bold."""
    rows = [row for row in result["functions"] if row["dimension"] == dimension]
    functions = [name for name in FUNCTIONS if any(row["function"] == name for row in rows)]
    best = {name: min((row for row in rows if row["function"] == name), key=rank)["method"] for name in functions}
    lines = [f"| {dimension:,} parameters | {' | '.join(functions)} |", "| --- " * (len(functions) + 1) + "|"]
    for method in METHODS:
        own = {row["function"]: row for row in rows if row["method"] == method}
        if own:
            cells = [shown(own[name]) if name in own else "" for name in functions]
            marked = [
                f"**{cell}**" if best[name] == method else cell for cell, name in zip(cells, functions, strict=True)
            ]
            lines.append(f"| {method} | {' | '.join(marked)} |")
    return lines


def losing_table(result: Row) -> list[str]:
    """Where PGPE with ClipUp stands in each case: among our searches, and the best of all beside it."""
    lines = [
        "| function | parameters | place of PGPE with ClipUp | it reaches | the best | reaches |",
        "| --- " * 6 + "|",
    ]
    for dimension in GRID:
        for function in FUNCTIONS:
            rows = [row for row in result["functions"] if (row["function"], row["dimension"]) == (function, dimension)]
            if not any(row["method"] == OUR_BEST for row in rows):
                continue
            order = sorted(rows, key=rank)
            place = next(number for number, row in enumerate(order, 1) if row["method"] == OUR_BEST)
            cells = [function, f"{dimension:,}", f"{place} of {len(order)}", shown(order[place - 1])]
            lines.append(f"| {' | '.join(cells)} | {order[0]['method']} | {shown(order[0])} |")
    return lines


def control_table(result: Row) -> list[str]:
    """The median scores on control tasks, with the least and the most; the best median is bold."""
    rows = result["control"]
    envs = [env for env in TASKS if any(row["env"] == env for row in rows)]
    best = {env: max(statistics.median(row["scores"]) for row in rows if row["env"] == env) for env in envs}
    lines = [f"| search | {' | '.join(envs)} |", "| --- " * (len(envs) + 1) + "|"]
    for method in CONTROL:
        own = {row["env"]: row["scores"] for row in rows if row["method"] == method}
        cells = [_score(own[env], best[env]) if env in own else "" for env in envs]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return lines


def _score(scores: Sequence[float], best: float) -> str:
    median = statistics.median(scores)
    text = f"**{_plain(median)}**" if median == best else _plain(median)
    return f"{text} ({_plain(min(scores))} to {_plain(max(scores))})"


def time_table(result: Row) -> list[str]:
    """The median milliseconds of an ask and tell."""
    rows = {(row["method"], row["dimension"]): row for row in result.get("times", [])}
    lines = [f"| milliseconds | {' | '.join(f'{size:,}' for size in TIMED)} |", "| --- " * (len(TIMED) + 1) + "|"]
    for method in METHODS:
        own = [rows.get((method, size)) for size in TIMED]
        if any(own):
            cells = ["" if row is None else f"{1000 * row['seconds']:.3g}" for row in own]
            lines.append(f"| {method} | {' | '.join(cells)} |")
    return lines


def tables(result: Row) -> list[str]:
    """Every table of the page, each as one text."""
    found = [
        function_table(result, size) for size in GRID if any(row["dimension"] == size for row in result["functions"])
    ]
    found += [losing_table(result), control_table(result)]
    if result.get("times"):
        found.append(time_table(result))
    return ["\n".join(lines) for lines in found]


def with_tables(page: str, found: Iterable[str]) -> str:
    """Return the page with each table in the place of the one that has the same first cell."""
    blocks = page.split("\n\n")
    for table in found:
        first = table.partition(" | ")[0]
        blocks = [table if block.partition(" | ")[0] == first else block for block in blocks]
    return "\n\n".join(blocks).rstrip("\n") + "\n"


# Its pictures

HIGHLIGHTED = ("PGPE, ClipUp", "PGPE, Adam", "OpenAI-ES, ClipUp", "OpenAI-ES, Adam", "ARS, ClipUp", "SNES", "CMA-ES",
               "separable CMA-ES")  # fmt: skip


def draw(result: Row) -> None:
    """Draw the median curves of functions and control tasks, and the times."""
    from clipup.report.charts import new_figure

    sizes = [size for size in GRID if any(row["dimension"] == size for row in result["functions"])]
    figure = new_figure(3.1 * len(sizes), 2.3 * len(FUNCTIONS) + 0.6)
    panels = figure.subplots(len(FUNCTIONS), len(sizes), squeeze=False)
    for line, function in zip(panels, FUNCTIONS, strict=True):
        for axes, size in zip(line, sizes, strict=True):
            rows = [row for row in result["functions"] if (row["function"], row["dimension"]) == (function, size)]
            _panel(axes, f"{function}, {size:,}", rows, GRID[size][0])
            axes.set_yscale("log")
            axes.set_visible(bool(rows))
    _finish(figure, panels[0][0], "evaluations", "loss of the center", "comparison-functions")

    figure = new_figure(9.2, 6.2)
    panels = figure.subplots(2, 2)
    for axes, env in zip(panels.flat, TASKS, strict=True):
        _panel(axes, env, [row for row in result["control"] if row["env"] == env], TASKS[env])
    _finish(figure, panels[0][0], "interactions", "score of the center", "comparison-control")


def _panel(axes: Any, title: str, rows: Sequence[Row], budget: int) -> None:
    from clipup.report.charts import COLORS

    moments = [budget * (place + 1) / POINTS for place in range(POINTS)]
    for row in sorted(rows, key=lambda row: row["method"] in HIGHLIGHTED):
        heights = [math.nan if value is None else max(value, SOLVED) if "function" in row else value
                   for value in row["median curve"]]  # fmt: skip
        if row["method"] in HIGHLIGHTED:
            place = HIGHLIGHTED.index(row["method"])
            width = 2.4 if place == 0 else 1.2
            axes.plot(moments[1::2], heights[1::2], color=COLORS[place], linewidth=width, label=row["method"])
        else:
            axes.plot(moments[1::2], heights[1::2], color="#c9ced4", linewidth=0.8)
    axes.set_title(title, fontsize=8)
    axes.tick_params(which="both", labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#eceef1")
    axes.set_axisbelow(True)


def _finish(figure: Any, panel: Any, below: str, left: str, name: str) -> None:
    import matplotlib

    from clipup.report.charts import save_figure

    lines = {line.get_label(): line for line in panel.get_lines() if not line.get_label().startswith("_")}
    order = [method for method in HIGHLIGHTED if method in lines]
    figure.legend([lines[method] for method in order], order, loc="outside upper center", ncols=4, frameon=False,
                  fontsize=8)  # fmt: skip
    figure.supxlabel(below, fontsize=9)
    figure.supylabel(left, fontsize=9)
    text = {"svg.fonttype": "none"}  # letters as letters, not as curves: the file is a third as large
    with tempfile.TemporaryDirectory() as folder, matplotlib.rc_context(text):
        for path in save_figure(figure, Path(folder) / name):
            if path.suffix == ".svg":
                shutil.copy(path, PAGE.parent / "images" / path.name)


def main() -> None:
    """Compare what is not there yet, or show what is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rival-python", metavar="PYTHON", action="append", default=[])
    parser.add_argument("--only", choices=("functions", "control", "times"), help="one of the three parts")
    parser.add_argument("--dimensions", type=int, nargs="+", choices=GRID, default=list(GRID), help="of the functions")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="of control")
    parser.add_argument("--table", action="store_true", help="print the tables of the page")
    parser.add_argument("--page", action="store_true", help="put the tables into the page, and draw its pictures")
    parser.add_argument("--output", type=Path, default=RESULT)
    arguments = parser.parse_args()
    store = Store(arguments.output)
    if arguments.table:
        print("\n\n".join(tables(store.content)))
        return
    if arguments.page:
        PAGE.write_text(with_tables(PAGE.read_text("utf-8"), tables(store.content)), "utf-8")
        draw(store.content)
        return
    pythons = [sys.executable, *arguments.rival_python]
    if arguments.only in (None, "functions"):
        compare_functions(store, pythons, arguments.dimensions)
    if arguments.only in (None, "control"):
        compare_control(store, arguments.tasks)
    if arguments.only in (None, "times"):
        measure_times(store, pythons)


if __name__ == "__main__":
    main()
