"""The search: PGPE, its fitness shaping, its noise."""

from clipup.searches.fitness import centered_rank
from clipup.searches.maximize import GenerationSummary, OptimizationResult, maximize, minimize
from clipup.searches.pgpe import PGPE
from clipup.searches.sampling import Batch, candidates, directions

__all__ = [
    "PGPE",
    "Batch",
    "GenerationSummary",
    "OptimizationResult",
    "candidates",
    "centered_rank",
    "directions",
    "maximize",
    "minimize",
]
