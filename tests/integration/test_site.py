"""The documentation site is built without a warning, its notebooks run, and it needs no other host."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytest.importorskip("mkdocs", reason="needs clipup[docs]")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site") / "built"
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(directory)],
        cwd=ROOT, capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "NO_MKDOCS_2_WARNING": "1", "CI": "true"},
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    return directory


def text_of(page: Path) -> str:
    return page.read_text("utf-8")


def test_every_page_of_the_documentation_is_in_the_site(site: Path) -> None:
    for page in [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/tutorials/*.*")]:
        place = page.relative_to(ROOT / "docs").with_suffix("")
        assert (site / ("" if place.name == "index" else place) / "index.html").is_file() or place.name == "index"
    assert (site / "index.html").is_file() and (site / "tutorials/index.html").is_file()


def test_the_home_page_has_the_robot_and_the_command(site: Path) -> None:
    home = text_of(site / "index.html")
    assert "images/humanoid.gif" in home and (site / "images/humanoid.gif").is_file()
    assert "clipup" in home and "LunarLanderContinuous-v3" in home


def test_a_notebook_shows_what_it_printed_and_drew(site: Path) -> None:
    search, report = (text_of(site / f"tutorials/{name}/index.html") for name in ("search_alone", "reading_a_report"))
    assert "CMAES  " in search and "data:image/png;base64," in search
    assert re.search(r"generation 11: mean fitness +-\d", report) and "data:image/png;base64," in report


def test_every_public_name_has_its_signature_and_its_docstring(site: Path) -> None:
    import clipup

    page = text_of(site / "reference/clipup/index.html")
    assert [name for name in clipup.__all__ if f'id="clipup.{name}"' not in page] == []
    assert "the one number to tune" in page and "population_size" in page
    assert 'reference/clipup/#clipup.PGPE"' in text_of(site / "api/index.html")


def test_formulas_are_drawn_by_the_browser_itself(site: Path) -> None:
    page = text_of(site / "algorithm/index.html")
    assert page.count("<math") > 30
    assert "arithmatex" not in page and "\\frac" not in page


def test_the_site_can_be_searched_and_has_a_light_and_a_dark_side(site: Path) -> None:
    index = text_of(site / "search/search_index.json")
    assert "gradient agreement" in index and "reference/clipup" in index
    home = text_of(site / "index.html")
    assert 'data-md-color-scheme="slate"' in home and 'data-md-color-scheme="default"' in home


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    loaded = r'<(?:script|img|iframe|video|source)[^>]*\bsrc="(https?:)?//|<link[^>]*\brel="(?:stylesheet|preconnect)"[^>]*href="https?://'
    assert [page for page in site.rglob("*.html") if re.search(loaded, text_of(page))] == []
