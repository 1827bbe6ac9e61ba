"""Searches: what to evaluate next, and what to make of the fitnesses."""

from clipup.searches.ars import ARS
from clipup.searches.bounds import Bounds
from clipup.searches.cma_es import CMAES, SepCMAES
from clipup.searches.cross_entropy import CrossEntropy
from clipup.searches.in_place import Candidate, InPlaceES
from clipup.searches.maximize import GenerationSummary, OptimizationResult, maximize, minimize
from clipup.searches.openai_es import OpenAIES
from clipup.searches.pgpe import PGPE
from clipup.searches.protocol import (
    RADIUS_FACTOR,
    Adjustable,
    Batch,
    BlockSum,
    Figures,
    Search,
    SearchSettings,
    SumBlocks,
)
from clipup.searches.registry import SEARCHES, make_search, unused_settings
from clipup.searches.sampling import GaussianBatch, candidates, directions
from clipup.searches.shaping import SHAPINGS, centered_rank
from clipup.searches.snes import SNES
from clipup.searches.xnes import XNES

__all__ = [
    "ARS",
    "CMAES",
    "PGPE",
    "RADIUS_FACTOR",
    "SEARCHES",
    "SHAPINGS",
    "SNES",
    "XNES",
    "Adjustable",
    "Batch",
    "BlockSum",
    "Bounds",
    "Candidate",
    "CrossEntropy",
    "Figures",
    "GaussianBatch",
    "GenerationSummary",
    "InPlaceES",
    "OpenAIES",
    "OptimizationResult",
    "Search",
    "SearchSettings",
    "SepCMAES",
    "SumBlocks",
    "candidates",
    "centered_rank",
    "directions",
    "make_search",
    "maximize",
    "minimize",
    "unused_settings",
]
