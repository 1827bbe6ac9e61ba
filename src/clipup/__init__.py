"""Train controllers without backpropagation: PGPE with the ClipUp optimizer."""

from clipup.errors import ClipUpError
from clipup.optimizers import Adam, ClipUp, GradientAscent, HeavyBall, Optimizer
from clipup.search import (
    PGPE,
    Batch,
    GenerationSummary,
    OptimizationResult,
    candidates,
    centered_rank,
    maximize,
    minimize,
)

__version__ = "0.1.0"

__all__ = [
    "PGPE",
    "Adam",
    "Batch",
    "ClipUp",
    "ClipUpError",
    "GenerationSummary",
    "GradientAscent",
    "HeavyBall",
    "OptimizationResult",
    "Optimizer",
    "candidates",
    "centered_rank",
    "maximize",
    "minimize",
]
