"""Train policies for the zoo, score them, and write the catalog.

    python benchmarks/zoo.py NAME [NAME ...] [--runs DIR] [--workers N] [--unfinished]
    python benchmarks/zoo.py --film [NAME ...]        (docs/images/zoo: a small moving picture of each policy)
    python benchmarks/zoo.py --page                   (puts the pictures and the tables into docs/zoo.md)

PLANS has what each training is given. A run that is in DIR already goes on, or is taken as it is if it has finished.
So the command can be stopped and called again. `--unfinished` takes a run as far as it is. The policy is the best
evaluated one of the run. It is scored over 100 fresh episodes, whose seeds no training and no evaluation of a run ever
uses. Without a name, the plans are listed.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import clipup
from clipup.export.policy import BEST_POLICY, POLICY, read_policy
from clipup.zoo.catalog import FOLDER, catalog

EPISODES = 100
PAGE = Path(__file__).parents[1] / "docs/zoo.md"
MARK = "<!-- by benchmarks/zoo.py --page -->"
PICTURES = PAGE.parent / "images/zoo"
PICTURE_SECONDS, PICTURE_RATE, PICTURE_SIZE = 4, 12, 180
LONGER = {"MountainCarContinuous-v0": 17}
"""Pictures of other lengths: this car swings for long before it reaches the flag."""
COLUMNS = 4
CATALOG = FOLDER / "catalog.json"
TUNING = Path(__file__).parent / "results/zoo_tuning.json"
PUBLISHED: dict[str, dict[str, str]] = {
    "Acrobot-v1": {"ARS": "-82.9 (0.5 M)", "PPO": "-73.5 (1 M)"},
    "Ant-v5": {"ARS": "2334 (v3, 75 M)", "PPO": "2515* (10 M)", "SAC": "4844* (2 M)"},
    "BallInCupCatch-v1": {"PPO": "942.4* (Playground, 100 M)"},
    "BipedalWalker-v3": {"PPO": "213.3 (5 M)", "SAC": "297.7 (0.5 M)"},
    "CartPole-v1": {"ARS": "500 (0.05 M)", "PPO": "500 (0.1 M)"},
    "CheetahRun-v1": {"PPO": "883.4* (Playground, 100 M)"},
    "HalfCheetah-v5": {"ARS": "4815 (v3, 12 M)", "PPO": "5819 (v3, 1 M)", "SAC": "9535 (v3, 1 M)"},
    "Hopper-v5": {"ARS": "3344 (v3, 7 M)", "PPO": "2410 (v3, 1 M)", "SAC": "2326 (v3, 1 M)"},
    "Humanoid-v4": {"SAC": "6232 (v3, 2 M)"},
    "Humanoid-v5": {"PPO": "3774* (10 M)", "SAC": "2601* (10 M)"},
    "HumanoidStandup-v5": {"PPO": "165841* (4 M)", "SAC": "138222* (1 M)"},
    "InvertedDoublePendulum-v5": {"PPO": "7622* (10 M)", "SAC": "9000* (2 M)"},
    "InvertedPendulum-v5": {"PPO": "944.9* (4 M)", "SAC": "927.6* (2 M)"},
    "LunarLanderContinuous-v3": {"ARS": "168 (v2, 2 M)", "PPO": "270.9 (v2, 1 M)", "SAC": "260.4 (v2, 0.5 M)"},
    "MountainCarContinuous-v0": {"ARS": "96.7 (0.5 M)", "PPO": "88.3 (0.02 M)", "SAC": "94.7 (0.05 M)"},
    "Pendulum-v1": {"ARS": "-212.5 (2 M)", "PPO": "-172.2 (0.1 M)", "SAC": "-157.0 (0.02 M)"},
    "Pusher-v5": {"PPO": "-49.1* (4 M)", "SAC": "-42.6* (1 M)"},
    "Reacher-v5": {"PPO": "-5.1* (4 M)", "SAC": "-6.4* (1 M)"},
    "Swimmer-v5": {"ARS": "355.3 (v3, 2 M)", "PPO": "281.6 (v3, 1 M)", "SAC": "345.6 (v3, 1 M)"},
    "Walker2d-v5": {"ARS": "2994 (v3, 75 M)", "PPO": "3479 (v3, 1 M)", "SAC": "3863 (v3, 1 M)"},
}
"""Scores of other methods, with the version of the task where it is another, and the training's interactions.

From benchmark.md of github.com/DLR-RM/rl-baselines3-zoo, commit 0088472b8cb6: one trained agent for each method and
task, older versions of MuJoCo's tasks. With *: from docs/BENCHMARKS.md of github.com/kengz/SLM-Lab, commit
faf3d9097d9d: the moving average of training returns at the end, over four runs. Those of dm_control's tasks are on
MuJoCo Playground's copies of them, from the page "MuJoCo Playground Benchmark" of SLM Lab 5.3 (runs of March 2026).
"""
EULER = "integrator=Euler, iterations=10, timestep=0.00375"
"""Physics of the Humanoid's robots. Written here, so that a change of a preset changes no plan."""
PLANS: dict[str, dict[str, Any]] = {
    "Acrobot-v1": {"env": "Acrobot-v1", "policy": "linear", "population": 40, "generations": 100},
    "CartPole-v1": {"env": "CartPole-v1", "policy": "linear"},
    "MountainCarContinuous-v0": {
        "env": "MountainCarContinuous-v0",
        "policy": "linear",
        "max_speed": 0.097,
        "population": 100,
        "generations": 100,
    },
    "Pendulum-v1": {
        "env": "Pendulum-v1",
        "policy": "mlp:16",
        "max_speed": 0.985,
        "population": 200,
        "generations": 500,
        "normalize": True,
    },
    "LunarLanderContinuous-v3": {"env": "LunarLanderContinuous-v3"},
    "InvertedPendulum-v5": {"env": "InvertedPendulum-v5", "policy": "linear", "population": 40, "generations": 100},
    "InvertedDoublePendulum-v5": {
        "env": "InvertedDoublePendulum-v5",
        "policy": "linear-bias",
        "population": 100,
        "generations": 200,
    },
    "Reacher-v5": {"env": "Reacher-v5", "policy": "mlp:16", "population": 200, "generations": 300},
    "Swimmer-v5": {"env": "Swimmer-v5", "policy": "linear-bias", "population": 40, "generations": 200},
    "Hopper-v5": {
        "env": "Hopper-v5",
        "policy": "linear-bias",
        "reward_offset": -1.0,
        "population": 100,
        "generations": 200,
    },
    "Pusher-v5": {"env": "Pusher-v5", "max_speed": 0.02, "population": 100, "generations": 300},
    "HalfCheetah-v5": {"env": "HalfCheetah-v5", "max_speed": 0.0178, "population": 60, "generations": 300},
    "Walker2d-v5": {
        "env": "Walker2d-v5",
        "preset": "none",
        "policy": "linear-bias",
        "reward_offset": -1.0,
        "max_speed": 0.01,
        "population": 100,
        "generations": 300,
    },
    "Stool": {
        "env": "clipup.zoo.tasks.stool:Stool",
        "max_speed": 0.01,
        "population": 100,
        "generations": 250,
    },
    "CartPole-hidden-velocities": {
        "env": "clipup.zoo.tasks.hidden_velocities:CartPole",
        "policy": "gru:16",
        "max_speed": 0.3,
        "generations": 100,
    },
    "Humanoid-v4": {
        "env": "Humanoid-v4",
        "preset": "humanoid-small",
        "physics": EULER,
        "evaluate_every": 10,
        "generations": 375,
        "seed": 501,
    },
    "Humanoid-v5": {
        "env": "Humanoid-v5",
        "preset": "humanoid-small",
        "physics": EULER,
        "reward_cap": 1.0,
        "max_speed": 0.03,
        "population_max": 200,
        "interactions": 30_000,
        "evaluate_every": 40,
        "generations": 1400,
        "seed": 4,
    },
    "HumanoidStandup-v5": {
        "env": "HumanoidStandup-v5",
        "physics": EULER,
        "max_speed": 0.0965,
        "population": 40,
        "generations": 150,
    },
    "Ant-v5": {
        "env": "Ant-v5",
        "policy": "linear-bias+inputs:0-26",
        "reward_offset": -1.0,
        "physics": "integrator=Euler",
        "max_speed": 0.01,
        "population": 60,
        "generations": 500,
    },
    "BipedalWalker-v3": {"env": "BipedalWalker-v3", "max_speed": 0.02, "population": 60, "generations": 500},
    "BallInCupCatch-v1": {"env": "BallInCupCatch-v1", "max_speed": 0.1, "population": 40, "generations": 160},
    "CheetahRun-v1": {"env": "CheetahRun-v1", "max_speed": 0.376, "population": 40, "generations": 300},
}
for _plan in PLANS.values():
    _plan.setdefault("seed", 1)


def train(name: str, runs: Path, workers: int | None, *, unfinished: bool) -> Path:
    """Train what is left of a run; return its directory."""
    run, status = runs / name, runs / name / "status.json"
    if not status.exists():
        clipup.train(run=run, workers=workers, **PLANS[name])
    elif not unfinished and json.loads(status.read_text())["state"] != "finished":
        clipup.resume(run, workers=workers)
    return run


def add(name: str, run: Path) -> dict[str, Any]:
    """Score the run's best policy, copy it into the package, and return its entry of the catalog."""
    path = next(run / file for file in (BEST_POLICY, POLICY) if (run / file).exists())
    module, separator, _ = PLANS[name]["env"].rpartition(":")
    found = clipup.evaluate(path, episodes=EPISODES, seed=1, imports=(module,) if separator else ())
    task = read_policy(path)[1]
    seconds = json.loads((run / "clock.jsonl").read_text().splitlines()[-1])["seconds"]
    target = FOLDER / "policies" / f"{name}.safetensors"
    target.parent.mkdir(exist_ok=True)
    shutil.copyfile(path, target)
    return {
        "settings": PLANS[name],
        "score": round(found.summary.mean, 3),
        "standard_error": round(found.summary.standard_error, 3),
        "episodes": EPISODES,
        "interactions": task.total_interactions,
        "seconds": round(seconds, 1),
        "published": PUBLISHED.get(name, {}),
    }


def film(name: str) -> Path:
    """Record the beginning of an episode as a small animated picture; return its path."""
    import imageio.v3 as imageio
    import PIL.Image

    with tempfile.TemporaryDirectory() as folder:
        video = Path(folder) / "video.mp4"
        seconds = str(LONGER.get(name, PICTURE_SECONDS))
        words = ["zoo", "play", name, "-o", str(video), "--max-seconds", seconds, "--quiet"]
        subprocess.run([sys.executable, "-m", "clipup", *words], check=True)
        rate = float(imageio.immeta(video, plugin="FFMPEG")["fps"])
        frames = imageio.imread(video, plugin="FFMPEG")
    chosen = [frames[int(i * rate / PICTURE_RATE)] for i in range(int(len(frames) * PICTURE_RATE / rate))]
    pictures = [PIL.Image.fromarray(frame) for frame in chosen]
    size = (round(pictures[0].width * PICTURE_SIZE / pictures[0].height), PICTURE_SIZE)
    small = [picture.resize(size, PIL.Image.Resampling.LANCZOS) for picture in pictures]
    PICTURES.mkdir(parents=True, exist_ok=True)
    path = PICTURES / f"{name}.webp"
    duration = 1000 // PICTURE_RATE
    small[0].save(path, save_all=True, append_images=small[1:], duration=duration, loop=0, quality=55, method=6)
    return path


def gallery() -> list[str]:
    """Return the pictures of docs/zoo.md, as a table."""
    cells = [f"![{entry.name}](images/zoo/{entry.name}.webp)<br>{entry.name}" for entry in catalog()]
    cells += [""] * (-len(cells) % COLUMNS)
    rows = [cells[i : i + COLUMNS] for i in range(0, len(cells), COLUMNS)]
    return ["| " + " | ".join(row) + " |" for row in [[" "] * COLUMNS, ["---"] * COLUMNS, *rows]]


def tables() -> list[str]:
    """Return the lines of the two tables in docs/zoo.md: the scores, and what the training took."""
    methods = ("ARS", "PPO", "SAC")
    scores = [["name", "policy", "score", *methods]]
    trainings = [["name", "max speed", "by `clipup tune`", "population", "interactions", "seconds"]]
    tuned = json.loads(TUNING.read_text())
    for entry in catalog():
        policy, config = read_policy(entry.path)[0].network.describe(), entry.config
        score = f"{entry.score:.1f} ± {entry.standard_error:.1f} ({entry.interactions / 1e6:.2g} M)"
        scores.append([entry.name, f"`{policy}`", score, *(entry.published.get(name, "") for name in methods)])
        growing = config.population_max is not None and config.interactions is not None
        population = f"{config.population} to {config.population_max}" if growing else f"{config.population}"
        cost = [f"{entry.interactions / 1e6:.2f} M", f"{max(1.0, entry.seconds):.0f}"]
        answer = _answer(tuned[entry.name]) if entry.name in tuned else ""
        trainings.append([entry.name, f"{config.max_speed:g}", answer, population, *cost])
    lines: list[str] = []
    for header, *rows in (scores, trainings):
        lines += ["| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows)] + [""]
    return [re.sub(r"(?<=\d) M\b", "\N{NO-BREAK SPACE}M", line) for line in lines[:-1]]


def _answer(tuning: dict[str, Any]) -> str:
    """Return what a search of zoo_tuning.py found, in a few words."""
    scores: dict[str, list[float]] = tuning["scores"]
    if len(scores) > 1 and len({score for values in scores.values() for score in values}) == 1:
        return "no difference"
    return next(iter(scores)).removeprefix("max_speed ").replace("_", " ")


def main() -> None:
    """Train, score and store what was named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *PLANS], metavar="NAME")
    parser.add_argument("--runs", type=Path, default=Path("runs/zoo"))
    parser.add_argument("--workers", type=int)
    parser.add_argument("--unfinished", action="store_true", help="take a run that is there as far as it is")
    parser.add_argument("--film", action="store_true", help="film the policies instead of training them")
    parser.add_argument("--page", action="store_true", help="put the pictures and the tables into docs/zoo.md")
    arguments = parser.parse_args()
    if arguments.film:
        for name in arguments.names or [entry.name for entry in catalog()]:
            print(path := film(name), path.stat().st_size, flush=True)
        return
    for name in arguments.names or ():
        entry = add(name, train(name, arguments.runs, arguments.workers, unfinished=arguments.unfinished))
        entries = json.loads(CATALOG.read_text()) if CATALOG.exists() else {}
        entries[name] = entry
        CATALOG.write_text(json.dumps(dict(sorted(entries.items())), indent=1) + "\n")
        print(name, json.dumps(entry), flush=True)
    if arguments.page:
        before, _, after = PAGE.read_text("utf-8").split(MARK)
        PAGE.write_text(MARK.join([before, "\n" + "\n".join([*gallery(), "", *tables()]) + "\n", after]), "utf-8")
    elif not arguments.names:
        print("\n".join(PLANS))


if __name__ == "__main__":
    main()
