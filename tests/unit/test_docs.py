"""The pages for people: their links lead somewhere, and their examples run."""

from __future__ import annotations

import functools
import importlib
import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

import clipup
from clipup.cli import main
from clipup.searches import SEARCHES

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/tutorials/*.*")]
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def without_code(text: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(
        r"^#+ +(.+)$", re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def code_blocks(name: str, language: str = "python") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / name).read_text("utf-8"), re.DOTALL | re.MULTILINE)


@each_page
def test_every_link_leads_to_a_file_and_a_heading_that_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        assert file.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(file), f"{page.name} links to {target}"


def test_every_page_is_linked_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    moved = {"rollouts.md"}
    assert all(f"](docs/{page.name})" in readme for page in ROOT.glob("docs/*.md") if page.name not in moved)


def test_every_promise_of_the_readme_is_linked_to_a_test_that_exists() -> None:
    table = (ROOT / "README.md").read_text("utf-8").partition("## What it promises")[2].partition("\n## ")[0]
    promises = [line for line in table.splitlines() if line.startswith("| **")]
    assert len(promises) >= 10
    for line in promises:
        tests = re.findall(r"\[`(test_\w+)`\]\((tests/[\w/]+\.py)\)", line)
        assert tests, line
        for name, file in tests:
            assert f"def {name}(" in (ROOT / file).read_text("utf-8"), f"{file} has no {name}"


def test_the_readme_says_what_every_extra_brings() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    table = (ROOT / "README.md").read_text("utf-8").partition("## Extras")[2].partition("\n## ")[0]
    named = {name for line in table.splitlines() for name in re.findall(r"`([\w]+)`", line.split(" | ")[0])}
    assert named == set(extras)


def test_the_score_of_the_humanoid_is_that_of_its_evaluation() -> None:
    found = json.loads((ROOT / "results/evaluations/humanoid-v4-cheaper-physics.json").read_text())
    shown = f"{found['mean']:.0f} ± {found['standard_error']:.0f} over {found['episodes']}"
    for page in ("README.md", "docs/index.md"):
        assert shown in " ".join((ROOT / page).read_text("utf-8").split()), page
    other = json.loads((ROOT / "results/evaluations/humanoid-v4-small-population.json").read_text())
    shown = f"{other['mean']:.0f} ± {other['standard_error']:.0f} over {other['episodes']}"
    assert shown in " ".join((ROOT / "README.md").read_text("utf-8").split())


def test_the_page_about_speed_has_the_scores_of_its_evaluations() -> None:
    page = (ROOT / "docs/faster.md").read_text("utf-8")
    for seed in ("", "-seed-1", "-seed-2"):
        name = f"humanoid-v4-cheaper-physics{seed}.json"
        found = json.loads((ROOT / "results/evaluations" / name).read_text())
        shown = f"{found['mean']:.0f} ± {found['standard_error']:.0f}"
        assert f"{shown} ([evaluation](../results/evaluations/{name}))" in page


def test_the_page_about_speed_has_what_the_seeds_of_the_preset_came_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    faster = importlib.import_module("faster")
    page = faster.PAGE.read_text("utf-8")
    (curves,) = [
        curves
        for change, curves in json.loads(faster.RESULTS.read_text("utf-8"))[faster.HUMANOID].items()
        if "(the preset)" in change
    ]
    paths = sorted((ROOT / "results/evaluations").glob("humanoid-v4-preset-seed-*.json"))
    assert paths
    for path in paths:
        seed, found = path.stem.rpartition("-")[2], json.loads(path.read_text())
        to_6000, minutes = (faster.reached(curves[seed], faster.SOLVED, what) for what in ("interactions", "minutes"))
        score = f"{found['mean']:.0f} ± {found['standard_error']:.0f}, median {found['median']:.0f}"
        link = f"([evaluation](../results/evaluations/{path.name}))"
        assert f"| {seed} | {to_6000 / 1e6:.1f} million | {minutes:.0f} | {score} {link} |" in page


def test_the_page_about_speed_has_what_the_best_of_four_starts_came_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    faster = importlib.import_module("faster")
    races = json.loads(faster.RESULTS.read_text("utf-8"))[faster.RACES]
    page = faster.PAGE.read_text("utf-8")
    assert len(races) >= 5
    for first, row in zip(races, faster.race_rows(races), strict=True):
        name = f"humanoid-v4-race-{first}.json"
        found = json.loads((ROOT / "results/evaluations" / name).read_text())
        score = f"{found['mean']:.0f} ± {found['standard_error']:.0f}, median {found['median']:.0f}"
        assert f"{row} {score} ([evaluation](../results/evaluations/{name})) |" in page


def test_the_page_about_speed_has_the_tables_of_its_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    faster = importlib.import_module("faster")
    found = json.loads(faster.RESULTS.read_text("utf-8"))
    assert "\n".join(faster.table(found)) in faster.PAGE.read_text("utf-8")
    assert "\n".join(faster.early_table(found)) in faster.PAGE.read_text("utf-8")
    quality = importlib.import_module("gradient_quality")
    found = json.loads(quality.RESULT.read_text("utf-8"))
    assert "\n".join(quality.table(found)) in faster.PAGE.read_text("utf-8")
    assert "\n".join(quality.repeated_table(found)) in faster.PAGE.read_text("utf-8")
    physics = importlib.import_module("training_physics")
    found = json.loads(physics.RESULT.read_text("utf-8"))
    assert "\n".join(physics.table(found)) in faster.PAGE.read_text("utf-8")
    inputs = importlib.import_module("humanoid_inputs")
    found = json.loads(inputs.RESULT.read_text("utf-8"))
    assert "\n".join(inputs.table(found)) in faster.PAGE.read_text("utf-8")


def test_the_example_of_the_readme_finds_the_optimum(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = code_blocks("README.md")
    names: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), names)
    assert abs(names["search"].center - 3.0).max() < 0.2
    assert capsys.readouterr().out


def test_the_examples_of_the_page_about_searches_run_and_show_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for block in code_blocks("docs/searches.md"):
        exec(compile(block, "searches.md", "exec"), names)
    shown = capsys.readouterr().out.splitlines()
    assert f"# {shown[0]}" in code_blocks("docs/searches.md")[0]
    assert names["result"].best_fitness > -5


def test_every_search_is_on_its_page() -> None:
    page = (ROOT / "docs/searches.md").read_text("utf-8")
    for kind in SEARCHES:
        assert f"| `{kind}` | `clipup." in page


def test_the_commands_of_the_page_about_searches_are_understood(capsys: pytest.CaptureFixture[str]) -> None:
    for block in code_blocks("docs/searches.md", "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words:
                assert main([*words[1:], "--dry-run"]) == 0, line
    capsys.readouterr()


def test_the_examples_of_the_page_about_engines_run(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for block in code_blocks("docs/engines.md"):
        exec(compile(block, "engines.md", "exec"), names)
    shown = capsys.readouterr().out.splitlines()
    assert f"# {shown[-1]}" in code_blocks("docs/engines.md")[-1]


def test_the_twenty_lines_of_the_page_about_tasks_are_a_task_that_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (block,) = code_blocks("docs/tasks.md")
    (tmp_path / "hopper.py").write_text(block)
    monkeypatch.chdir(tmp_path)
    result = clipup.train("hopper.py:Hopper", generations=3, population=20, evaluation_episodes=2)
    assert result.generation == 3 and result.score is not None


def test_the_examples_of_the_page_about_policies_train_and_its_commands_are_understood(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, compiled, python, _ = code_blocks("docs/policies.md")
    train = functools.partial(clipup.train, generations=1, population=4, evaluation_episodes=1, workers=1)
    monkeypatch.setattr(clipup, "train", train)
    names: dict[str, object] = {"clipup": clipup}
    exec(compile(compiled, "policies.md", "exec"), names)
    exec(compile(python, "policies.md", "exec"), names)
    assert train("CartPole-v1", policy=names["Half"], engine="gymnasium").policy.network.state_size == 4
    for line in code_blocks("docs/policies.md", "sh")[0].splitlines():
        words = shlex.split(line, comments=True)
        assert main([*words[1:], "--dry-run"]) == 0, line
    capsys.readouterr()


def test_the_scores_without_velocities_are_those_of_their_evaluations() -> None:
    page = (ROOT / "docs/policies.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if " ± " in line]
    names = ["gru16", "linear-bias", "double-pendulum-gru8", "double-pendulum-linear-bias", "hopper-gru16",
             "hopper-linear-bias"]  # fmt: skip
    for row, name in zip(rows[-len(names) :], names, strict=True):
        found = json.loads((ROOT / f"results/evaluations/hidden-velocities-{name}.json").read_text())
        policy = "linear-bias" if name.endswith("linear-bias") else name.rpartition("-")[2].replace("gru", "gru:")
        assert f"| `{policy}` |" in row
        assert f"{found['mean']:.1f} ± {found['standard_error']:.1f} |" in row and found["episodes"] == 100
        assert (ROOT / found["policy"]).is_file()
    lasting = json.loads((ROOT / "results/evaluations/hidden-velocities-double-pendulum-gru8.json").read_text())
    assert f"{sum(value > 9300 for value in lasting['returns'])} of 100 episodes" in page


def test_every_file_that_the_map_for_newcomers_names_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = {path for path in re.findall(r"(?<![\w./])(?:[\w.-]+/)+(?:[\w-]+\.\w+)?", text) if ".venv" not in path}
    roots = (ROOT, ROOT / "src/clipup", ROOT / "tests")
    assert sorted(path for path in named if not any((root / path).exists() for root in roots)) == []
