import os
import runpy
import subprocess
import sys
from pathlib import Path

import clipup

ALONE = """
import importlib.abc, sys

class NumpyAlone(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        root = name.partition(".")[0]
        if root not in sys.stdlib_module_names and root not in {"numpy", "clipup"}:
            raise ModuleNotFoundError(f"not to be imported: {name}", name=root)

sys.meta_path.insert(0, NumpyAlone())
import clipup
import numpy as np
clipup.minimize(lambda x: np.square(x).sum(axis=1), dimension=2, max_speed=0.1, generations=2, seed=1)
print(*sorted(name for name in sys.modules if name.startswith("clipup.") and name.count(".") == 1))
"""


def test_importing_and_searching_needs_numpy_alone_and_loads_no_other_part():
    search_path = f"import sys; sys.path[:0] = {sys.path!r}"  # as a prefix: -I ignores PYTHONPATH
    output = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", search_path + ALONE],
        check=True, capture_output=True, text=True, timeout=60, env=os.environ,
    ).stdout  # fmt: skip
    parts = [
        "compilation",
        "errors",
        "optimizers",
        "processors",
        "searches",
    ]  # of compilation its math
    assert output.split() == [f"clipup.{part}" for part in parts]


def test_every_public_name_is_documented_and_on_the_page_of_names():
    root = Path(__file__).parents[2]
    page = runpy.run_path(str(root / "docs/api.py"))["render"]()
    assert (root / "docs/api.md").read_text() == page, "make it anew: python docs/api.py > docs/api.md"
    assert all(f"| `{name}`" in page for name in clipup.__all__)
