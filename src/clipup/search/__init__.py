"""The search: PGPE, its fitness shaping, its noise."""

from clipup.search.fitness import centered_rank
from clipup.search.maximize import GenerationSummary, OptimizationResult, maximize, minimize
from clipup.search.pgpe import PGPE
from clipup.search.sampling import Batch, candidates, directions

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
