"""Tuning: finding the one number."""

from clipup.tuning.plan import Point, SearchSettings, Standing, search
from clipup.tuning.trials import Progress
from clipup.tuning.tune import TuningResult, tune

__all__ = ["Point", "Progress", "SearchSettings", "Standing", "TuningResult", "search", "tune"]
