"""What pytest leaves out: the modules of a library that is not installed."""

from importlib.util import find_spec

OPTIONAL = {"src/clipup/torch.py": "torch", "src/clipup/optax.py": "optax"}
collect_ignore = [path for path, library in OPTIONAL.items() if find_spec(library) is None]
