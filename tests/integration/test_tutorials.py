"""The tutorials do what they say: a page is run from top to bottom, in an empty directory, as a reader would.

- ``sh`` blocks are given to bash. A command that fails ends the page.
- ``python`` blocks share their names, like the cells of a notebook. One with a title is saved under it instead.
- A ``text`` block is what the block before it printed. Numbers may differ. A line with … stands for any lines.
- Other languages are not allowed: what is shown is run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TUTORIALS = ROOT / "docs/tutorials"
SLOW = {"cluster.md", "tuning.md"}
NOTEBOOKS = sorted(TUTORIALS.glob("*.ipynb"))
BLOCK = re.compile(r'^```(\w*)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
# Reads the blocks, runs them, and prints a line of JSON for each: its exit code and what it printed.
READER = """
import contextlib, io, json, subprocess, sys, traceback
names = {"__name__": "page"}
sys.path.insert(0, "")
answers = sys.stdout
for line in sys.stdin:
    language, text = json.loads(line)
    code, said = 0, io.StringIO()
    if language == "sh":
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        code, printed = done.returncode, done.stdout
    else:
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                exec(compile(text, "page", "exec"), names)
        except BaseException:
            code = 1
            traceback.print_exc(file=said)
        printed = said.getvalue()
    print(json.dumps([code, printed]), file=answers, flush=True)
    if code:
        break
"""


@dataclass(frozen=True)
class Block:
    """One block of code of a page."""

    language: str
    title: str
    text: str


def blocks(page: Path) -> list[Block]:
    """Every block of a page, in order."""
    return [Block(*found) for found in BLOCK.findall(page.read_text("utf-8"))]


def run_page(page: Path, directory: Path) -> None:
    """Run a page in `directory`, or fail with the block that did not do what the page says."""
    directory.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", READER], cwd=directory, env=_environment(directory.with_name("bin")), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    printed = ""
    try:
        for block in blocks(page):
            if block.language == "text":
                assert looks_like(printed, block.text), f"{page.name} promises\n{block.text}\nand got\n{printed}"
            elif block.title:
                (directory / block.title).write_text(block.text, "utf-8")
            else:
                assert block.language in ("sh", "python"), f"{page.name} has a block in {block.language or 'nothing'}"
                process.stdin.write(json.dumps([block.language, block.text]) + "\n")
                process.stdin.flush()
                code, printed = json.loads(process.stdout.readline())
                assert code == 0, f"{page.name}: exit code {code} from\n{block.text}\n{printed}"
    finally:
        process.stdin.close()
        process.wait(timeout=60)
        process.stdout.close()


def _environment(programs: Path) -> dict[str, str]:
    """A shell in which `clipup` and `python` are those of this interpreter and this source."""
    programs.mkdir()
    for name, words in (("clipup", "-m clipup "), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
        (programs / name).chmod(0o755)
    path = os.pathsep.join([str(programs), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "ignore", "COLUMNS": "120"}


def looks_like(printed: str, promised: str) -> bool:
    """Whether the output is what the page shows, apart from numbers.

    >>> looks_like("a 1.5\\nb\\nc 200 s\\n", "a 2.5\\n…\\nc 3 s\\n"), looks_like("a\\n", "b\\n")
    (True, False)
    """
    pattern = "".join(
        r"(?s:.*)" if line.strip() == "…" else _without_numbers(re.escape(line.strip())) + r"\s*\n"
        for line in promised.strip("\n").splitlines()
    )
    return re.fullmatch(pattern, "".join(f"{line.strip()}\n" for line in printed.strip("\n").splitlines())) is not None


def _without_numbers(pattern: str) -> str:
    return re.sub(r"(?:\\-)?\d+(?:\\\.\d+)?", r"-?\\d[\\d.e+-]*", pattern)


WITH_CODE = sorted(page for page in TUTORIALS.glob("*.md") if blocks(page))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.stem, marks=pytest.mark.slow if page.name in SLOW else ()) for page in WITH_CODE],
)
def test_every_block_of_a_tutorial_does_what_the_page_says(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path / "page")


def test_there_are_eight_tutorials_and_two_of_them_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 2
    assert len(WITH_CODE) + len(NOTEBOOKS) == 8
    listed = (TUTORIALS / "index.md").read_text("utf-8")
    assert all(f"]({page.name})" in listed for page in (*WITH_CODE, *NOTEBOOKS))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_what_it_printed(notebook: Path) -> None:
    """The site shows what it prints today: see test_site.py, which executes it."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code and all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_commands_of_the_readme_work_as_printed_after_the_first(tmp_path: Path) -> None:
    first, *later = [block for block in blocks(ROOT / "README.md") if "LunarLander" in block.text]
    page = tmp_path / "readme.md"
    command = first.text.rpartition("&& ")[2]  # the environment is made by the test session
    page.write_text("".join(f"```sh\n{text}```\n" for text in (command, *(block.text for block in later))))
    run_page(page, tmp_path / "page")


def test_output_is_compared_but_for_its_numbers() -> None:
    assert looks_like("scored 5.25 ± 0.1\n", "scored 17 ± 3\n")
    assert looks_like("scored -5 in runs/a\n", "scored 5 in runs/a\n")
    assert not looks_like("scored badly\n", "scored 17\n")
    assert looks_like("one\ntwo\nthree\n", "…\nthree\n")
    assert not looks_like("one\ntwo\n", "one\n")
