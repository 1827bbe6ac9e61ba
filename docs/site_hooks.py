"""What mkdocs does besides its own work to make the site from docs/ (`hooks` in mkdocs.yml).

- A link out of docs/ leads to a page of the site: programs are shown, pictures and results are copied.
- A notebook is executed and becomes an ordinary page.
- Formulas become MathML, which browsers draw without a script.
- Every public name has its signature and docstring on a page of the reference, linked from api.md. Docstrings are
  Markdown but for two habits, which `Docstrings` translates: a paragraph that ends in ``::``, and examples.
"""

from __future__ import annotations

import importlib
import json
import os
import posixpath
import re
import runpy
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

from griffe import Extension, Object
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
MODULES: tuple[str, ...] = runpy.run_path(str(ROOT / "docs/api.py"))["MODULES"]
LANGUAGES = {".py": "python", ".toml": "toml", ".yml": "yaml", ".sh": "sh"}
# Code first: what looks like a link inside of it is none.
CODE_OR_LINK = re.compile(
    r"(?P<code>^ *(?P<fence>`{3,}).*?^ *(?P=fence)|`[^`\n]*`)"
    r"|(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)",
    re.DOTALL | re.MULTILINE,
)
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
FOUND_LAST = "---\nsearch:\n  boost: 0.2\n---\n\n"

_origin: dict[str, str] = {}
"""The file in the repository that a generated page shows, by the page's place in the site."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name headings as GitHub does, so that one link works in both places. Show notebooks as pages."""
    from pymdownx.slugs import slugify

    config.mdx_configs.setdefault("toc", {})["slugify"] = slugify(case="lower")
    config.nav = _with_pages_for_notebooks(config.nav)
    return config


def _with_pages_for_notebooks(nav: object) -> object:
    if isinstance(nav, str):
        return re.sub(r"\.ipynb$", ".md", nav)
    if isinstance(nav, list):
        return [_with_pages_for_notebooks(entry) for entry in nav]
    if isinstance(nav, dict):
        return {title: _with_pages_for_notebooks(entry) for title, entry in nav.items()}
    return nav


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what the pages need besides docs/*.md: notebooks, the reference, and files of the repository."""
    _origin.clear()
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        files.remove(file)
        _add(files, config, f"docs/{file.src_uri}", executed(ROOT / "docs" / file.src_uri))
    for name in MODULES:
        files.append(File.generated(config, f"reference/{name}.md", content=reference(name)))
    waiting = [
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        *(_repository_path(file.src_uri) for file in files.documentation_pages()),
    ]
    seen: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path in seen or not (ROOT / path).is_file():
            continue
        seen.add(path)
        if not path.startswith("docs/"):
            _add_from_repository(files, config, path)
        if path.endswith((".md", ".ipynb")):
            waiting += links_of(path)
    return files


def links_of(path: str) -> Iterator[str]:
    """The files of the repository to which a page links."""
    for match in CODE_OR_LINK.finditer((ROOT / path).read_text("utf-8")):
        target = match["target"]
        if target and not re.match(r"[a-z]+:|#", target):
            yield posixpath.normpath(posixpath.join(posixpath.dirname(path), target.partition("#")[0]))


def _add_from_repository(files: Files, config: MkDocsConfig, path: str) -> None:
    suffix = Path(path).suffix
    if suffix == ".md":
        _add(files, config, path, (ROOT / path).read_text("utf-8"))
    elif suffix in LANGUAGES or not suffix:
        text = (ROOT / path).read_text("utf-8")
        fence = f'````{LANGUAGES.get(suffix, "sh")} linenums="1"\n{text}````\n'
        _add(files, config, path, f"{UNSEARCHED}# {Path(path).name}\n\n`{path}`\n\n{fence}")
    else:
        files.append(File.generated(config, site_path(path), abs_src_path=str(ROOT / path)))


def _add(files: Files, config: MkDocsConfig, path: str, content: str) -> None:
    _origin[site_path(path)] = path
    files.append(File.generated(config, site_path(path), content=content))


def site_path(path: str) -> str:
    """Where a file of the repository is in the site.

    >>> site_path("docs/training.md"), site_path("README.md"), site_path("examples/optimize.py")
    ('training.md', 'index.md', 'repository/examples/optimize.py.md')
    """
    if path == "README.md":
        return "index.md"
    if path.startswith("docs/"):
        return re.sub(r"\.ipynb$", ".md", path.removeprefix("docs/"))
    suffix = Path(path).suffix
    shown = suffix in LANGUAGES or not suffix
    return f"repository/{path}{'.md' if shown else ''}"


def _repository_path(uri: str) -> str:
    return _origin.get(uri, f"docs/{uri}")


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to where their target is in the site. A link to a directory becomes plain text."""
    uri = page.file.src_uri
    here = _repository_path(uri)

    def moved(match: re.Match[str]) -> str:
        target, text = match["target"], match["text"]
        if match["code"] is not None or re.match(r"[a-z]+:|#", target):
            return match[0]
        path, sign, anchor = target.partition("#")
        aim = posixpath.normpath(posixpath.join(posixpath.dirname(here), path))
        if (ROOT / aim).is_dir():
            return text
        place = posixpath.relpath(site_path(aim), posixpath.dirname(uri) or ".")
        return f"{match['picture']}[{text}]({place}{sign}{anchor})"

    if not here.endswith((".md", ".ipynb")):
        return markdown  # a program
    if here == "docs/api.md":
        markdown = _with_links_to_the_reference(markdown)
    return CODE_OR_LINK.sub(moved, markdown)


def _with_links_to_the_reference(markdown: str) -> str:
    module, lines = "", []
    for line in markdown.splitlines():
        if heading := re.match(r"## `([\w.]+)`", line):
            module = heading[1]
        lines.append(re.sub(r"^\| `(\w+)`", rf"| [`\1`][{module}.\1]", line) if module else line)
    return "\n".join(lines)


def reference(name: str) -> str:
    """The page of a module: its public names, in the order of api.md."""
    module = importlib.import_module(name)
    parts = [f"{FOUND_LAST}# {name}", (module.__doc__ or "").splitlines()[0]]
    for entry in sorted(module.__all__, key=str.lower):
        home = getattr(module, entry).__module__
        if home.endswith(f".{entry}"):  # a function of the name of its module, which would be found in its place
            title = f"    options: {{heading: {name}.{entry}, toc_label: {entry}}}"
            parts.append(f"[](){{ #{name}.{entry} }}\n\n::: {home}.{entry}\n{title}")
        else:
            parts.append(f"::: {name}.{entry}")
    return "\n\n".join(parts)


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn formulas into MathML."""
    from latex2mathml.converter import convert

    def formula(match: re.Match[str]) -> str:
        tex = unescape(match[2]).strip()
        display = "block" if tex.startswith(r"\[") else "inline"
        return convert(tex[2:-2].strip(), display=display)

    return re.sub(r'<(span|div) class="arithmatex">(.*?)</\1>', formula, html, flags=re.DOTALL)


def executed(path: Path) -> str:
    """Run a notebook in a new directory, and return it as Markdown: text, code and what the code printed or drew."""
    import tempfile

    import nbformat
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # another choice would draw nothing here
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as directory:
        try:
            # Sockets in the directory: no port is opened.
            kernel = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=str(Path(directory, "kernel")))
            NotebookClient(notebook, km=kernel, timeout=120, resources={"metadata": {"path": directory}}).execute()
        except CellExecutionError as error:
            raise PluginError(f"{path.relative_to(ROOT)}: {error}") from error
    return "\n\n".join(part for cell in notebook.cells for part in _cell_parts(cell))


def _cell_parts(cell: dict[str, object]) -> Iterator[str]:
    if cell["cell_type"] == "markdown":
        yield str(cell["source"])
        return
    yield f"````python\n{cell['source']}\n````"
    printed = ""
    for output in json.loads(json.dumps(cell["outputs"])):
        data = output.get("data", {})
        if "image/png" in data:
            yield f'<img alt="what the code draws" src="data:image/png;base64,{data["image/png"].strip()}">'
        else:
            printed += output.get("text") or data.get("text/plain", "")
    if printed:
        yield f"````text\n{printed.rstrip()}\n````"


class Docstrings(Extension):
    """Makes Markdown of docstrings (`extensions` in mkdocs.yml)."""

    def on_object(self, *, obj: Object, **_: object) -> None:
        """Translate the docstring of a name."""
        if obj.docstring is not None:
            text = re.sub(r"::$", ":", obj.docstring.value, flags=re.MULTILINE)
            obj.docstring.value = re.sub(r"^>>> .*(?:\n.+)*", r"```pycon\n\g<0>\n```", text, flags=re.MULTILINE)
