"""Train controllers without backpropagation: PGPE with the ClipUp optimizer."""

import importlib
from typing import TYPE_CHECKING

from clipup.errors import ClipUpError
from clipup.optimizers import Adam, ClipUp, GradientAscent, HeavyBall, Optimizer
from clipup.searches import (
    ARS,
    CMAES,
    PGPE,
    SNES,
    XNES,
    Batch,
    Bounds,
    CrossEntropy,
    GenerationSummary,
    InPlaceES,
    OpenAIES,
    OptimizationResult,
    Search,
    SepCMAES,
    candidates,
    centered_rank,
    maximize,
    minimize,
)

if TYPE_CHECKING:
    from clipup.engines.compiled.task import ArrayTask, MujocoTask
    from clipup.evaluation.evaluate import evaluate
    from clipup.evaluation.video import record
    from clipup.export.policy import load_policy
    from clipup.training.api import TrainingResult, resume, train
    from clipup.training.seeds import SeedsResult, resume_seeds, train_seeds

__version__ = "0.1.0"

__all__ = [
    "ARS",
    "CMAES",
    "PGPE",
    "SNES",
    "XNES",
    "Adam",
    "ArrayTask",
    "Batch",
    "Bounds",
    "ClipUp",
    "ClipUpError",
    "CrossEntropy",
    "GenerationSummary",
    "GradientAscent",
    "HeavyBall",
    "InPlaceES",
    "MujocoTask",
    "OpenAIES",
    "OptimizationResult",
    "Optimizer",
    "Search",
    "SeedsResult",
    "SepCMAES",
    "TrainingResult",
    "candidates",
    "centered_rank",
    "evaluate",
    "load_policy",
    "maximize",
    "minimize",
    "record",
    "resume",
    "resume_seeds",
    "train",
    "train_seeds",
]

# The parts that know environments and files are imported at first use, so that `import clipup` needs numpy alone.
_LATER = {
    "ArrayTask": "clipup.engines.compiled.task",
    "MujocoTask": "clipup.engines.compiled.task",
    "SeedsResult": "clipup.training.seeds",
    "TrainingResult": "clipup.training.api",
    "evaluate": "clipup.evaluation.evaluate",
    "load_policy": "clipup.export.policy",
    "record": "clipup.evaluation.video",
    "resume": "clipup.training.api",
    "resume_seeds": "clipup.training.seeds",
    "train": "clipup.training.api",
    "train_seeds": "clipup.training.seeds",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'clipup' has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)
