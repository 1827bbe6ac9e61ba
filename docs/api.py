"""Builds docs/api.md from the docstrings of the public names: ``python docs/api.py > docs/api.md``."""

from __future__ import annotations

import importlib
import inspect

MODULES = ("clipup", "clipup.policies", "clipup.engines", "clipup.evaluation", "clipup.diagnosis", "clipup.report")
HEAD = """# The public names

<!-- Built by: python docs/api.py > docs/api.md -->

These names are a promise. Everything else may change without notice. `help(clipup.PGPE)`, for example, shows the
arguments, the formulas and an example. `import clipup` needs numpy alone. The names marked with * need `clipup[train]`
when they are used.

`clipup.torch.ClipUp` and `clipup.optax.clipup` are public too. They need `clipup[torch]` and `clipup[optax]`, and are
not on this page. [Searches](searches.md#clipup-in-loops-of-your-own) describes them."""
NEED_SIMULATORS = {
    f"clipup.{name}" for name in ("ArrayTask", "MujocoTask", "TrainingResult", "evaluate", "resume", "train")
}


def purpose(thing: object) -> str:
    """Return the first line of a docstring. A name without one is refused: it is not documented."""
    text = inspect.getdoc(thing)
    if not text or not (inspect.isclass(thing) or inspect.isfunction(thing)):
        raise SystemExit(f"{thing!r} has no docstring")
    return text.splitlines()[0].replace("``", "`").replace(":func:", "").replace("|", "\\|")


def render() -> str:
    """Return the page."""
    parts = [HEAD]
    for name in MODULES:
        module = importlib.import_module(name)
        lines = [
            f"## `{name}`",
            "",
            (module.__doc__ or "").splitlines()[0],
            "",
            "| name | what it is |",
            "| --- | --- |",
        ]
        for entry in sorted(module.__all__, key=str.lower):
            star = " *" if f"{name}.{entry}" in NEED_SIMULATORS else ""
            lines.append(f"| `{entry}`{star} | {purpose(getattr(module, entry))} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    print(render(), end="")
