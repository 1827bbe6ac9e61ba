"""The speeds that README and docs/engines.md name are those of the committed measurement."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
NAMES = {
    "LunarLanderContinuous-v3": "LunarLanderContinuous-v3",
    "Walker2d-v4": "Walker2d-v4",
    "Humanoid-v4": "Humanoid-v4",
    "pybullet_envs_gymnasium:HumanoidBulletEnv-v0": "Bullet's Humanoid, one process",
}
PHASES = {"first": "first generations", "late": "with a good policy"}
EARLY = {("Humanoid-v4", "late"): "after 14 generations"}  # no good policy has been trained yet
COLUMNS = ("ours over evotorch", "ours over simulator", "ours over same calls")


def measured() -> dict[str, Any]:
    return json.loads((ROOT / "benchmarks/results/rollout_speed.json").read_text())


def test_the_table_of_speeds_is_the_committed_measurement() -> None:
    found = measured()
    rows = []
    for env, phases in found["tasks"].items():
        for phase, usual in PHASES.items():
            if phases.get(phase) is None:
                continue
            # The simulator alone is no yardstick in one process: there is nothing but it.
            ratios = [phases[phase].get(column) for column in (COLUMNS if ":" not in env else COLUMNS[:1])]
            cells = ["" if ratio is None else f"{ratio:.2f}" for ratio in (*ratios, None, None)][:3]
            targets = ["" if target is None else f" ({target:g})" for target in (*found["targets"][env], None)]
            shown = " | ".join(f"{cell}{target}" for cell, target in zip(cells, targets, strict=True))
            words = EARLY.get((env, phase), usual)
            rows.append(f"| {NAMES[env]}, {words} | {shown} |".replace("  |", " |"))
    section = (ROOT / "docs/engines.md").read_text().partition("### EnvPool's")[2]
    table = [line for line in section.splitlines() if line.startswith("| ")]
    assert [line for line in table if any(line.startswith(f"| {name}, ") for name in NAMES.values())] == rows


def test_the_table_of_the_compiled_engine_is_the_committed_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    script = importlib.import_module("compiled_speed")
    lines = script.table(json.loads(script.RESULT.read_text()))
    assert "\n".join(lines) in (ROOT / "docs/engines.md").read_text()


def test_what_is_not_physics_is_the_committed_profile() -> None:
    found = json.loads((ROOT / "benchmarks/results/compiled_profile.json").read_text())
    humanoid = found["Humanoid-v4"]
    shares = [100 * humanoid["shares of a generation"][name] for name in ("ask", "tell", "merge the moments")]
    said = "`ask` takes {:.1f} % of the time, `tell` {:.1f} %, the merge of the moments {:.1f} %".format(*shares)
    policy = found["microseconds of a step of the Humanoid's policy"]
    step = humanoid["microseconds of a step on one thread"]
    page = " ".join((ROOT / "docs/engines.md").read_text().split())
    assert said in page
    assert f"Of the {step:.0f} µs of a step, the policy takes {policy:.1f} µs" in page
    pendulum = found["Pendulum-v1"]["shares of a generation"]
    assert f"`ask` and `tell` are then {100 * (pendulum['ask'] + pendulum['tell']):.0f} % of the time" in page


def test_the_readme_names_the_range_of_the_committed_measurement() -> None:
    tasks = json.loads((ROOT / "benchmarks/results/compiled_speed.json").read_text())["tasks"]
    name = "over bare physics"
    ratios = [found[name] for phases in tasks.values() for found in phases.values() if name in found]
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"make {min(ratios):.2f} to {max(ratios):.2f} times as many steps a second as MuJoCo alone" in readme
