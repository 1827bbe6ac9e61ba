"""Train controllers without backpropagation: PGPE with the ClipUp optimizer."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clipup.engines.compiled.task import ArrayTask, MujocoTask
    from clipup.errors import ClipUpError
    from clipup.evaluation.evaluate import evaluate
    from clipup.evaluation.video import record
    from clipup.export.policy import load_policy
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

# Every name is imported at first use: `clipup --help` then needs no numpy, and the searches no environments or files.
_MODULES = {
    "clipup.engines.compiled.task": ("ArrayTask", "MujocoTask"),
    "clipup.errors": ("ClipUpError",),
    "clipup.evaluation.evaluate": ("evaluate",),
    "clipup.evaluation.video": ("record",),
    "clipup.export.policy": ("load_policy",),
    "clipup.optimizers": ("Adam", "ClipUp", "GradientAscent", "HeavyBall", "Optimizer"),
    "clipup.searches": (
        "ARS", "CMAES", "PGPE", "SNES", "XNES", "Batch", "Bounds", "CrossEntropy", "GenerationSummary", "InPlaceES",
        "OpenAIES", "OptimizationResult", "Search", "SepCMAES", "candidates", "centered_rank", "maximize", "minimize",
    ),
    "clipup.training.api": ("TrainingResult", "resume", "train"),
    "clipup.training.seeds": ("SeedsResult", "resume_seeds", "train_seeds"),
}  # fmt: skip
_PLACES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'clipup' has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
