"""Searches: what to evaluate next, and what to make of the fitnesses."""

from clipup.searches.maximize import GenerationSummary, OptimizationResult, maximize, minimize
from clipup.searches.pgpe import PGPE
from clipup.searches.protocol import RADIUS_FACTOR, Batch, BlockSum, Figures, Search, SearchSettings, SumBlocks
from clipup.searches.registry import SEARCHES, make_search
from clipup.searches.sampling import GaussianBatch, candidates, directions
from clipup.searches.shaping import SHAPINGS, centered_rank

__all__ = [
    "PGPE",
    "RADIUS_FACTOR",
    "SEARCHES",
    "SHAPINGS",
    "Batch",
    "BlockSum",
    "Figures",
    "GaussianBatch",
    "GenerationSummary",
    "OptimizationResult",
    "Search",
    "SearchSettings",
    "SumBlocks",
    "candidates",
    "centered_rank",
    "directions",
    "make_search",
    "maximize",
    "minimize",
]
