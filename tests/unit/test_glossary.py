"""Every number that a person or a program is shown has an entry in docs/glossary.md, and one name everywhere."""

from __future__ import annotations

import ast
import dataclasses
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from clipup.cli import bench, envs, evaluate, runs, tune
from clipup.diagnosis.finding import Finding
from clipup.evaluation.evaluate import Summary
from clipup.report.charts import CHARTS
from clipup.reproduction.page import CLAIM_HEADER, GROUP_HEADER
from clipup.runs.config import RunConfig, settings
from clipup.runs.names import NAMES, TIME_LEFT
from clipup.runs.records import ClockRecord, Record
from clipup.runs.rundir import Status
from clipup.tracking.live import LiveDisplay
from clipup.tracking.protocol import RunInfo
from clipup.tracking.terminal import PlainDisplay
from clipup.training.bench import Speed
from clipup.tuning.baseline import Gain

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/clipup"
RECORD = Record(
    generation=2, population=20, interactions=50, total_interactions=100, fitness_mean=1.0, fitness_best=2.0, best=3.0,
    score=4.0, score_standard_error=0.5, speed=0.1, max_speed=0.2, clipped=True, stdev_norm=1.0, gradient_norm=1.0,
    gradient_agreement=0.5, nonfinite=3, tied=0.0, population_bound=False,
)  # fmt: skip
CLOCK = ClockRecord(2, 10.0, 12345.0)
INFO = RunInfo(RunConfig(env="A", generations=10), None, 0, "linear", 4, "compiled", "asked for", "1 thread")


def entries() -> Iterator[tuple[str, set[str]]]:
    """The name and the keys of each row of the page."""
    for line in (ROOT / "docs/glossary.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 3:
            yield cells[0], set(re.findall(r"`(\w+)`", " ".join(cells[1:])))


KEYS = {key for _, keys in entries() for key in keys}
SHOWN = {name for names, _ in entries() for name in [names, *names.split(", ")]}


def described(keys: object) -> list[str]:
    """Those of some keys that the page lacks; a setting is described by `clipup train --help`."""
    return sorted(set(keys) - KEYS - set(settings()))  # type: ignore[call-overload]


NO_OUTPUT = {"next_steps"}
"""Functions whose dictionaries are not printed."""


def dictionary_keys(path: Path) -> set[str]:
    """The keys of every dictionary that is written out in a module."""
    tree = ast.parse(path.read_text("utf-8"))
    tree.body = [node for node in tree.body if getattr(node, "name", "") not in NO_OUTPUT]
    keys = [key for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys]
    return {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}


@pytest.mark.parametrize(
    "kind", [Record, ClockRecord, Status, Summary, Speed, Gain, Finding], ids=lambda kind: kind.__name__
)
def test_every_key_of_a_record_is_described(kind: type) -> None:
    assert described(field.name for field in dataclasses.fields(kind)) == []


def test_every_key_of_the_records_has_one_name() -> None:
    kept = {field.name for kind in (Record, ClockRecord) for field in dataclasses.fields(kind)}
    assert set(NAMES) == kept
    assert len(set(NAMES.values())) == len(NAMES)
    of_the_page = {
        key: name for name, keys in reversed(list(entries())) for key in keys if key in NAMES and name in NAMES.values()
    }
    assert of_the_page == NAMES


@pytest.mark.parametrize(
    "module",
    [path for path in sorted(SOURCE.glob("cli/*.py")) if "print_json(" in path.read_text("utf-8")],
    ids=lambda path: path.stem,
)
def test_every_key_that_a_command_prints_as_json_is_described(module: Path) -> None:
    assert described(dictionary_keys(module)) == []


@pytest.mark.parametrize("module", ["signal_rules", "step_rules", "diagnose"])
def test_every_number_behind_a_finding_is_described(module: str) -> None:
    assert described(dictionary_keys(SOURCE / f"diagnosis/{module}.py")) == []


def test_every_label_of_the_live_table_is_a_name_of_the_glossary() -> None:
    display = LiveDisplay(io.StringIO())
    display.begin(INFO)
    for _ in range(2):
        display.generation(RECORD, CLOCK)
    table, curve = display._render().renderables
    display.end(Status("finished"))
    labels = {str(cell) for column in (0, 2) for cell in table.columns[column].cells} | {str(curve).split()[0]}
    assert len(labels) == 13
    assert sorted(labels - SHOWN) == []


def test_every_label_of_the_plain_lines_is_a_name_of_the_glossary() -> None:
    stream = io.StringIO()
    display = PlainDisplay(stream)
    display.begin(INFO)
    display.generation(RECORD, CLOCK)
    parts = stream.getvalue().splitlines()[-1].split("  ")
    labels = {re.match(r"[^\d]*[^\d\s]", part)[0] for part in parts}  # type: ignore[index]
    assert labels <= {*NAMES.values(), TIME_LEFT} and len(labels) == 12


def test_the_report_and_its_figures_use_the_same_names() -> None:
    text = (SOURCE / "report/static/data.js").read_text("utf-8")
    titles = dict(re.findall(r"key: '(\w+)', title: '([^']+)'", text))
    assert {key: title.lower() for key, title in titles.items()} == {key: NAMES[key].lower() for key in titles}
    assert [chart.field for chart in CHARTS] == list(titles)


def test_every_column_and_every_key_number_of_the_report_is_described() -> None:
    tables, panels, data = (
        (SOURCE / f"report/static/{name}.js").read_text("utf-8") for name in ("tables", "panels", "data")
    )
    (head,) = re.findall(r"const head = \[('Run'.*?)\];", tables)
    labels = re.findall(r"'([^']+)'", head)
    labels += re.findall(r"'((?:lower|upper) quartile)'", tables)
    labels += [name for call in re.findall(r"tile\((.*?),", panels) for name in re.findall(r"'([^']+)'", call)]
    labels += re.findall(r"title: '([^']+)', label", data)
    assert len(labels) > 15
    assert sorted({label.lower() for label in labels} - SHOWN) == []


def test_every_column_of_a_command_is_described() -> None:
    headers = {*runs.HEADER, *envs.HEADER, *GROUP_HEADER, *CLAIM_HEADER} - {""}
    assert sorted(headers - SHOWN) == []


def test_the_words_of_the_other_commands_are_described() -> None:
    said = {
        evaluate: ("mean", "standard error", "median", "min", "max"),
        bench: ("simulator alone", "training", "ratio", "threads", "lanes"),
        tune: ("seeds", "whole runs", "against", "95 % interval"),
    }
    for module, words in said.items():
        text = Path(module.__file__).read_text("utf-8")
        assert all(word in text and word in SHOWN for word in words), module.__name__
