"""Tuning: find `max_speed` for a task."""

from clipup.tuning.speed_search import Point, Standing, TuningSettings, search_max_speed
from clipup.tuning.trials import TrialProgress
from clipup.tuning.tune import TuningResult, tune

__all__ = ["Point", "Standing", "TrialProgress", "TuningResult", "TuningSettings", "search_max_speed", "tune"]
